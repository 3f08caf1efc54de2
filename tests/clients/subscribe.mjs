// Follows a subscription with the stock graphql-ws client and prints what arrives, a JSON line each, as it arrives:
// {"at": <ms since this process started>, "payload": {…}}
//
// Usage: node subscribe.mjs URL CONNECTION_PARAMS SUBSCRIPTION COUNT
//   node subscribe.mjs ws://127.0.0.1:8080/graphql '{"devUser":"amy"}' 'subscription { … }' 3
//
// Ends with 0 after COUNT payloads; with 1 on an error, which it prints as a JSON line on standard error; with 2 when
// the time is up (TIMEOUT seconds, default 30). RETRY=n connects anew up to n times in a row; by default it does not.

import { performance } from "node:perf_hooks";
import { createClient } from "graphql-ws";
import WebSocket from "ws";

const sinceStart = () => Math.round(performance.now());

function fail(error) {
  console.error(JSON.stringify({ at: sinceStart(), error }));
  process.exit(1);
}

const [url, params, query, count] = process.argv.slice(2);
const wanted = Number(count);
if (!Number.isInteger(wanted) || wanted < 1) {
  fail("usage: node subscribe.mjs URL CONNECTION_PARAMS SUBSCRIPTION COUNT");
}
let connectionParams;
try {
  connectionParams = JSON.parse(params);
} catch (error) {
  fail(`the connection parameters are not JSON: ${error.message}`);
}

const seconds = Number(process.env.TIMEOUT ?? 30);
setTimeout(() => {
  console.error(JSON.stringify({ at: sinceStart(), error: `not done after ${seconds} s` }));
  process.exit(2);
}, seconds * 1000);

let received = 0;
const client = createClient({
  url,
  connectionParams,
  webSocketImpl: WebSocket,
  retryAttempts: Number(process.env.RETRY ?? 0),
  retryWait: () => new Promise((resolve) => setTimeout(resolve, 200)),
  shouldRetry: () => true, // a refused connection too, as while the server restarts
  on: {
    closed: () => {
      if (received === wanted) process.exit(0);
    },
  },
});

client.subscribe(
  { query },
  {
    next: (payload) => {
      if (received === wanted) return;
      received += 1;
      console.log(JSON.stringify({ at: sinceStart(), payload }));
      if (received === wanted) leave();
    },
    // A list of GraphQL errors, the socket's close event, or an Error.
    error: (cause) => {
      if (Array.isArray(cause)) fail(cause);
      fail(cause.code ? { code: cause.code, reason: cause.reason } : { message: cause.message ?? String(cause) });
    },
    complete: () => {
      if (received < wanted) fail(`the server completed the subscription after ${received} of ${wanted}`);
    },
  },
);

/** Closes the socket as a browser tab would, and waits a moment for the server to close its side. */
function leave() {
  client.dispose();
  setTimeout(() => process.exit(0), 1000);
}
