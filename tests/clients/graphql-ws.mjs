// graphql-ws: the client of graphql-transport-ws that others build on. See line-protocol.mjs for its use.

import "./browser-socket.mjs";
import { connectionParams, drive, url } from "./line-protocol.mjs";

// sample: begins
import { createClient } from "graphql-ws";

const client = createClient({
  url,
  connectionParams,
  retryAttempts: Infinity,
  // Try again whatever happens, also when a server that restarts refuses the connection. These two codes are final;
  // the others that are, the client knows.
  shouldRetry: (cause) => ![4403, 4408].includes(cause.code),
});

function follow({ query, variables }, { next, error, complete }) {
  return client.subscribe({ query, variables }, { next, error, complete });
}
// sample: ends

drive({ subscribe: follow, query: follow, mutate: follow, close: () => client.dispose() });
