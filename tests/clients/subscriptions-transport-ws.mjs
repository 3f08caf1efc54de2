// subscriptions-transport-ws, the client of the old subprotocol, which is named graphql-ws like the newer client. See
// line-protocol.mjs for its use.

import "./browser-socket.mjs";
import { connectionParams, drive, url } from "./line-protocol.mjs";

// sample: begins
import { SubscriptionClient } from "subscriptions-transport-ws";

const client = new SubscriptionClient(url, { connectionParams, reconnect: true });

function follow({ query, variables }, { next, error, complete }) {
  return client.request({ query, variables }).subscribe({ next, error, complete }).unsubscribe;
}
// sample: ends

drive({ subscribe: follow, query: follow, mutate: follow, close: () => client.close() });
