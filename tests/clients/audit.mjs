// The public audit of GraphQL over HTTP (https://github.com/graphql/graphql-http) against a server: `node audit.mjs URL`.
// Prints a table of all audits; ends with 1 if one of them is an error or a warning.

import { auditServer } from "graphql-http";

const url = process.argv[2];
const results = await auditServer({ url });
const counts = {};
for (const result of results) {
  counts[result.status] = (counts[result.status] ?? 0) + 1;
  const reason = result.status === "ok" ? "" : ` (${result.reason})`;
  console.log(`${result.status.padEnd(6)} ${result.id} ${result.name}${reason}`);
}
console.log(Object.entries(counts).map(([status, count]) => `${count} ${status}`).join(", "));
process.exitCode = counts.error || counts.warn ? 1 : 0;
