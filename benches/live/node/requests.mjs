// The usual Node stack for boards and check-ins by request: GraphQL Yoga over ioredis, plain commands.
//
// Usage: REQUESTS_REDIS=unix://… node requests.mjs
// The board is in the sorted set plain:board. Prints `listening on http://127.0.0.1:PORT` when it is ready.

import { createServer } from "node:http";
import { createSchema, createYoga } from "graphql-yoga";
import { Redis } from "ioredis";

const redis = new Redis({ path: process.env.REQUESTS_REDIS.replace("unix://", ""), enableAutoPipelining: true });
const PERIODS = ["plain:board", "plain:week", "plain:month", "plain:all"];

const schema = createSchema({
  typeDefs: /* GraphQL */ `
    scalar SafeInt
    type User { id: ID! name: String }
    type Standing { rank: SafeInt! points: SafeInt! user: User! }
    type Leaderboard { top(first: Int! = 10): [Standing!] }
    type Streak { current: Int! }
    type Wallet { points: SafeInt! }
    type CheckInPayload { outcome: String! streak: Streak! wallet: Wallet! }
    type SubmitScorePayload { outcome: String! }
    input SubmitScoreInput { board: ID! points: SafeInt! userId: ID }
    type Query { rank(board: ID!, userId: ID): Standing leaderboard(board: ID!): Leaderboard }
    type Mutation { checkIn(userId: ID): CheckInPayload submitScore(input: SubmitScoreInput!): SubmitScorePayload }
  `,
  resolvers: {
    Query: {
      rank: async (_, { userId }) => {
        const [rank, points] = await Promise.all([redis.zrevrank("plain:board", userId), redis.zscore("plain:board", userId)]);
        return { rank: rank + 1, points: Number(points), user: { id: userId } };
      },
      leaderboard: () => ({}),
    },
    Leaderboard: {
      top: async (_, { first }) => {
        const rows = await redis.zrevrange("plain:board", 0, first - 1, "WITHSCORES");
        const ids = rows.filter((_, i) => i % 2 === 0);
        const names = await redis.hmget("plain:names", ...ids);
        return ids.map((id, i) => ({ rank: i + 1, points: Number(rows[2 * i + 1]), user: { id, name: names[i] } }));
      },
    },
    Mutation: {
      checkIn: async (_, { userId }) => {
        const fresh = await redis.sadd("plain:day", userId);
        const [streak, points] = fresh
          ? await Promise.all([redis.hincrby("plain:streak", userId, 1), redis.hincrby("plain:wallet", userId, 10)])
          : await Promise.all([redis.hget("plain:streak", userId), redis.hget("plain:wallet", userId)]);
        const outcome = fresh ? "CHECKED_IN" : "ALREADY_CHECKED_IN";
        return { outcome, streak: { current: Number(streak) }, wallet: { points: Number(points) } };
      },
      submitScore: async (_, { input }) => {
        const multi = redis.multi();
        for (const period of PERIODS) multi.zincrby(period, input.points, input.userId);
        await multi.exec();
        return { outcome: "APPLIED" };
      },
    },
  },
});

const yoga = createYoga({ schema, logging: false, graphiql: false });
const server = createServer(yoga);
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
