// Apollo Client's subscriptions over plain HTTP, an answer in parts. See line-protocol.mjs for its use.

import { drive, headers, pass, settle, url } from "./line-protocol.mjs";

// sample: begins
import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from "@apollo/client";
import { RetryLink } from "@apollo/client/link/retry";

const client = new ApolloClient({
  link: ApolloLink.from([
    new RetryLink({ attempts: { max: Infinity } }), // HttpLink alone does not come back
    new HttpLink({ uri: url, headers }),
  ]),
  cache: new InMemoryCache(),
});

function follow({ query, variables }, { next, error, complete }) {
  const results = client.subscribe({ query: gql(query), variables });
  const subscription = results.subscribe({ next, error, complete });
  return () => subscription.unsubscribe();
}
// sample: ends

drive({
  subscribe: (request, sink) => follow(request, { ...sink, next: (result) => pass(result, sink) }),
  query: ({ query, variables }, sink) => settle(client.query({ query: gql(query), variables }), sink),
  mutate: ({ query, variables }, sink) => settle(client.mutate({ mutation: gql(query), variables }), sink),
  close: () => client.stop(),
});
