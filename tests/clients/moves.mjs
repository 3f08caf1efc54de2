// Keeps the order of a board by the moves of its updates, over graphql-ws. See line-protocol.mjs for its use. A `next`
// also has the order that was kept and whether moves led to it.

import "./browser-socket.mjs";
import { connectionParams, drive, url } from "./line-protocol.mjs";
import { createClient } from "graphql-ws";

// sample: begins
/** The order of the best after an update; `known` is what this returned before, or null. */
function keepOrder(known, { leaderboard: { epoch, version }, top, sinceVersion, moves }) {
  const follows = sinceVersion !== null && known?.epoch === epoch && known.version === sinceVersion;
  if (!follows) return { epoch, version, order: top.map(({ user }) => user.id) };
  const order = [...known.order];
  for (const { from } of moves) if (from !== null) order[from - 1] = null;
  for (const { user, to } of moves) if (to !== null) order[to - 1] = user.id;
  return { epoch, version, order: order.filter((id) => id !== null) };
}
// sample: ends

const client = createClient({ url, connectionParams });

function follow(request, sink) {
  let known = null;
  const next = ({ data: { leaderboardChanged: update }, errors }) => {
    const moved = update.sinceVersion !== null && update.sinceVersion === known?.version;
    known = keepOrder(known, update);
    sink.next({ data: { leaderboardChanged: { ...update, order: known.order, moved } }, errors });
  };
  return client.subscribe(request, { ...sink, next });
}

drive({ subscribe: follow, close: () => client.dispose() });
