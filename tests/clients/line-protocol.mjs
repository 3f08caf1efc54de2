// How a test drives one of the clients beside this file, a JSON value a line.
//
// Usage: node CLIENT.mjs URL CONNECTION_PARAMS [PLAN]
//   node urql.mjs ws://127.0.0.1:8080/graphql '{"devUser":"amy"}' \
//     '[{"subscribe": {"as": "board", "query": "subscription { … }"}}]'
//
// PLAN is a list of commands to begin with; more are read from standard input, a line each, whose end ends the client:
//   {"subscribe": {"as": NAME, "query": …, "variables": …}}    also "query" and "mutate", where the client can
//   {"complete": NAME}    end that subscription
//   {"count": true}       say how many messages the sockets have got, by type
//   {"close": true}       close the client
//
// On standard output:
//   {"as": NAME, "next": {"data": …, "errors": …}}
//   {"as": NAME, "error": [GraphQL errors] or {"code": …, "reason": …} or {"message": …}}
//   {"as": NAME, "complete": true}    the server has no more, or the client noticed its own `complete`
//   {"as": NAME, "ended": true}       the command `complete` was carried out
//   {"connected": true}               a socket was acknowledged
//   {"closed": {"code": …, "reason": …}}
//   {"count": {"next": 3, …}}

import { createInterface } from "node:readline";

const [address, claims = "{}", plan = "[]"] = process.argv.slice(2);

export const url = address;
export const connectionParams = JSON.parse(claims);

/** The same claims for a client that speaks plain HTTP. */
export const headers = Object.fromEntries(
  [
    ["X-Dev-User", connectionParams.devUser],
    ["X-Dev-Role", connectionParams.devRole],
  ].filter(([, value]) => value),
);

/** Messages that sockets have got, by type. */
export const received = {};

export function print(event) {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

/**
 * Carries out commands by `client`, whose `subscribe`, `query` and `mutate` take a request and a sink and return how to
 * end it, and whose `close` closes it.
 */
export async function drive(client) {
  const ends = new Map();
  const sinkOf = (as) => ({
    next: (payload) => print({ as, next: payload }),
    error: (cause) => print({ as, error: reasonOf(cause) }),
    complete: () => print({ as, complete: true }),
  });
  const carryOut = ([[command, argument]]) => {
    switch (command) {
      case "subscribe":
      case "query":
      case "mutate": {
        const { as, ...request } = argument;
        ends.set(as, client[command](request, sinkOf(as)));
        break;
      }
      case "complete":
        ends.get(argument)();
        print({ as: argument, ended: true });
        break;
      case "count":
        print({ count: received });
        break;
      case "close":
        client.close();
        break;
      default:
        throw new Error(`there is no command ${command}`);
    }
  };
  for (const command of JSON.parse(plan)) carryOut(Object.entries(command));
  for await (const line of createInterface({ input: process.stdin })) carryOut(Object.entries(JSON.parse(line)));
  process.exit(0);
}

/** Hands a promised result to a sink. */
export function settle(promise, sink) {
  promise.then((result) => {
    pass(result, sink);
    sink.complete();
  }, sink.error);
  return () => {};
}

/** Hands a result of a client that has its errors beside the data to a sink. */
export function pass({ data, error }, sink) {
  if (error) sink.error(error);
  else sink.next({ data });
}

/** GraphQL errors, a close event, or whatever else a client calls an error. */
function reasonOf(cause) {
  const errors = [cause, cause.errors, cause.graphQLErrors].find((list) => Array.isArray(list) && list.length > 0);
  if (errors) return errors;
  if (cause.code && "reason" in cause) return { code: cause.code, reason: String(cause.reason) };
  return { message: cause.networkError?.message ?? cause.message ?? String(cause) };
}
