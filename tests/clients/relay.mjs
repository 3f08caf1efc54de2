// Relay's network layer over graphql-ws, given what Relay's compiler makes of a document. See line-protocol.mjs for its
// use.

import { getOperationAST, parse } from "graphql";
import "./browser-socket.mjs";
import { connectionParams, drive, url } from "./line-protocol.mjs";

// sample: begins
import { createClient } from "graphql-ws";
import { Environment, Network, Observable, RecordSource, Store } from "relay-runtime";

const socket = createClient({
  url,
  connectionParams,
  retryAttempts: Infinity,
  shouldRetry: (cause) => ![4403, 4408].includes(cause.code),
});

function send({ name, text }, variables) {
  return Observable.create((sink) =>
    socket.subscribe({ operationName: name, query: text, variables }, sink),
  );
}

// The first is for queries and mutations, the second for subscriptions.
const network = Network.create(send, send);
const environment = new Environment({ network, store: new Store(new RecordSource()) });
// sample: ends

function execute({ query: text, variables = {} }, sink) {
  const { name, operation } = getOperationAST(parse(text));
  const request = { cacheID: text, id: null, metadata: {}, name: name.value, operationKind: operation, text };
  const subscription = environment.getNetwork().execute(request, variables, {}).subscribe(sink);
  return () => subscription.unsubscribe();
}

drive({ subscribe: execute, query: execute, mutate: execute, close: () => socket.dispose() });
