/** The floor: the echo server itself, with nothing in between; and the relay that does nothing but pass on. */
import { join } from "node:path";
import { freePort, startNode } from "../processes.ts";
import { ECHO_HTTP, ECHO_STDIO, type Subject } from "./subject.ts";

const RELAY = join(import.meta.dirname, "../servers/relay.mjs");

/** What all ratios are in relation to, also for stdio servers: clients of a gateway speak HTTP. */
export const directHttp: Subject = {
  name: "direct HTTP",
  kind: "floor",
  can: ({ servers }) => servers === 1,
  async start({ tools }) {
    const port = await freePort();
    const process = startNode([ECHO_HTTP, `--tools=${tools}`, `--port=${port}`]);
    return {
      endpoint: { kind: "streamable", url: `http://127.0.0.1:${port}/mcp` },
      process,
      stop: () => process.stop(),
    };
  },
};

export const relay: Subject = {
  name: "bare relay",
  kind: "relay",
  can: ({ servers }) => servers === 1,
  async start({ upstream, tools, probe, second }, urls) {
    const port = await freePort();
    const behind = upstream === "http" ? [`--http=${urls[0] ?? ""}`] : [`--stdio=${ECHO_STDIO}`, `--tools=${tools}`];
    const process = startNode([RELAY, `--port=${port}`, ...behind], { probe });
    const url = `http://127.0.0.1:${port}/mcp`;
    return {
      probe,
      endpoint: { kind: "streamable", url },
      ...(second === true ? { second: { kind: "streamable", url: `${url}/second` } } : {}),
      process,
      stop: () => process.stop(),
    };
  },
};
