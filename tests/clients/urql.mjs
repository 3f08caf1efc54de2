// urql, its subscriptions (and here all else) over graphql-ws. See line-protocol.mjs for its use.

import "./browser-socket.mjs";
import { connectionParams, drive, pass, settle, url } from "./line-protocol.mjs";

// sample: begins
import { cacheExchange, Client, subscriptionExchange } from "@urql/core";
import { createClient } from "graphql-ws";

const socket = createClient({
  url,
  connectionParams,
  retryAttempts: Infinity,
  shouldRetry: (cause) => ![4403, 4408].includes(cause.code),
});

const client = new Client({
  url,
  exchanges: [
    cacheExchange,
    subscriptionExchange({
      enableAllOperations: true, // queries and mutations too; without it add fetchExchange
      forwardSubscription: ({ query, variables }) => ({
        subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query, variables }, sink) }),
      }),
    }),
  ],
});

function follow({ query, variables }, onResult) {
  return client.subscription(query, variables).subscribe(onResult).unsubscribe;
}
// sample: ends

drive({
  subscribe: (request, sink) => follow(request, (result) => pass(result, sink)),
  query: ({ query, variables }, sink) => settle(client.query(query, variables).toPromise(), sink),
  mutate: ({ query, variables }, sink) => settle(client.mutation(query, variables).toPromise(), sink),
  close: () => socket.dispose(),
});
