// Apollo Client over graphql-ws. See line-protocol.mjs for its use.

import "./browser-socket.mjs";
import { connectionParams, drive, pass, settle, url } from "./line-protocol.mjs";

// sample: begins
import { ApolloClient, gql, InMemoryCache } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { createClient } from "graphql-ws";

const socket = createClient({
  url,
  connectionParams,
  retryAttempts: Infinity,
  shouldRetry: (cause) => ![4403, 4408].includes(cause.code),
});

const client = new ApolloClient({ link: new GraphQLWsLink(socket), cache: new InMemoryCache() });

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
  close: () => socket.dispose(),
});
