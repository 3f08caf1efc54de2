// graphql-sse, a connection for each subscription. See line-protocol.mjs for its use.

import { drive, headers, url } from "./line-protocol.mjs";

// sample: begins
import { createClient } from "graphql-sse";

const client = createClient({ url, headers, retryAttempts: Infinity });

function follow({ query, variables }, { next, error, complete }) {
  return client.subscribe({ query, variables }, { next, error, complete });
}
// sample: ends

drive({ subscribe: follow, query: follow, mutate: follow, close: () => client.dispose() });
