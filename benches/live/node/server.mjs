// The usual Node stack for a live board, as its documentation puts it together: GraphQL Yoga, graphql-ws on ws, and
// Yoga's pub/sub over Redis. Each subscriber has an iterator of its own; the state is built once a change.
//
// Usage: REDIS_SOCKET=… CHANNEL=… node server.mjs BOARD
//   BOARD is the board before the first change, as JSON: { base, leaderboard, top } (benches/live/state.rs)
//
// Prints `listening on http://127.0.0.1:PORT` when it is ready.

import { once } from "node:events";
import { createServer } from "node:http";
import { createRedisEventTarget } from "@graphql-yoga/redis-event-target";
import { useServer } from "graphql-ws/use/ws";
import { createPubSub, createSchema, createYoga } from "graphql-yoga";
import { Redis } from "ioredis";
import { WebSocketServer } from "ws";

const { base, leaderboard, top } = JSON.parse(process.argv[2]);
const channel = process.env.CHANNEL;
const [publishClient, subscribeClient] = await Promise.all([redis(), redis()]);
const pubSub = createPubSub({ eventTarget: createRedisEventTarget({ publishClient, subscribeClient }) });

/** A client that is ready: one that subscribes before it has asked Redis how it is would be refused that question. */
async function redis() {
  const client = new Redis({ path: process.env.REDIS_SOCKET });
  await once(client, "ready");
  return client;
}

let newest = state("SNAPSHOT", base);

/** The board after change number `sequence`; all subscribers of a change get the same object. */
function after(sequence) {
  if (newest.sequence !== sequence) newest = state("CHANGED", sequence);
  return newest;
}

function state(cause, sequence) {
  const [first, ...others] = top;
  return {
    sequence,
    cause,
    leaderboard: { ...leaderboard, version: sequence - base + top.length },
    top: [{ ...first, points: sequence }, ...others],
  };
}

const schema = createSchema({
  typeDefs: /* GraphQL */ `
    enum UpdateCause { SNAPSHOT CHANGED }
    type User { id: ID! name: String }
    type Standing { rank: Float! points: Float! user: User! }
    type Leaderboard { id: ID! version: Float! participants: Float! }
    type LeaderboardUpdate { cause: UpdateCause! leaderboard: Leaderboard! top: [Standing!]! }
    type Query { ready: Boolean! }
    type Subscription { leaderboardChanged(board: ID!, first: Int! = 10): LeaderboardUpdate! }
  `,
  resolvers: {
    Query: { ready: () => true },
    Subscription: {
      leaderboardChanged: {
        // The cheaper of the two ways that are documented; the other is pipe, map and Repeater.merge.
        subscribe: async function* () {
          yield newest;
          for await (const sequence of pubSub.subscribe(channel)) yield after(sequence);
        },
        resolve: (update) => update,
      },
    },
  },
});

const yoga = createYoga({ schema, graphqlEndpoint: "/graphql", logging: false });
const server = createServer(yoga);
const sockets = new WebSocketServer({ server, path: yoga.graphqlEndpoint });

// From Yoga's documentation of graphql-ws.
useServer(
  {
    execute: (args) => args.rootValue.execute(args),
    subscribe: (args) => args.rootValue.subscribe(args),
    onSubscribe: async (context, _id, params) => {
      const { schema, execute, subscribe, contextFactory, parse, validate } = yoga.getEnveloped({
        ...context,
        req: context.extra.request,
        socket: context.extra.socket,
        params,
      });
      const args = {
        schema,
        operationName: params.operationName,
        document: parse(params.query),
        variableValues: params.variables,
        contextValue: await contextFactory(),
        rootValue: { execute, subscribe },
      };
      const errors = validate(args.schema, args.document);
      return errors.length ? errors : args;
    },
  },
  sockets,
);

server.listen({ port: 0, host: "127.0.0.1", backlog: 1024 }, () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
