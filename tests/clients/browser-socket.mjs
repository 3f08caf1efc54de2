// The WebSocket that a browser has and Node 20 lacks, telling the test what passes.

import WebSocket from "ws";
import { print, received } from "./line-protocol.mjs";

globalThis.WebSocket = class extends WebSocket {
  constructor(url, protocols) {
    // One event at a time, as in a browser: graphql-ws counts an operation as over twice if its own `complete` and the
    // server's fall into one turn of the event loop, and then closes the socket under the others.
    super(url, protocols, { allowSynchronousEvents: false });
    this.addEventListener("message", ({ data }) => {
      const { type } = JSON.parse(data);
      received[type] = (received[type] ?? 0) + 1;
      if (type === "connection_ack") print({ connected: true });
    });
    this.addEventListener("close", ({ code, reason }) => print({ closed: { code, reason } }));
  }
};
