// @ts-check
/**
 * Loaded into a gateway with `--import`: says on a socket how late its event loop was since it was last asked. The path of the
 * socket is the query of its own address.
 */
import { createServer } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";

const RESOLUTION_MS = 5;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();

const server = createServer((socket) => {
  // What is recorded is the time between two ticks of a timer.
  const late = (/** @type {number} */ ns) => Math.max(0, ns / 1e6 - RESOLUTION_MS);
  socket.end(JSON.stringify({ p99Ms: late(delay.percentile(99)), maxMs: late(delay.max) }));
  delay.reset();
});
// A child process that was given the same arguments finds the socket taken.
server.on("error", () => {});
server.listen(decodeURIComponent(new URL(import.meta.url).search.slice(1))).unref();
