/** Gateways that others have written, each started as its own documentation says. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { descendantsOf, freePort, type Started, startNode } from "../processes.ts";
import type { Installed } from "./install-peers.ts";
import { ECHO_STDIO, type Load, mcpServers, type Running, scratch, type Subject } from "./subject.ts";

interface Peer {
  /** Of the package in the registry. */
  readonly name: string;
  can(load: Load): boolean;
  start(load: Load, urls: readonly string[], installed: Installed): Promise<Running>;
}

const oneStdioServer = ({ upstream, servers }: Load): boolean => upstream === "stdio" && servers === 1;

const mcpProxy: Peer = {
  name: "mcp-proxy",
  can: oneStdioServer,
  async start({ tools, probe }, _urls, { bin }) {
    const port = await freePort();
    const echo = [process.execPath, ECHO_STDIO, `--tools=${tools}`];
    const options = ["--host", "127.0.0.1", "--port", `${port}`, "--server", "stream", "--", ...echo];
    return streamable(port, startNode([bin, ...options], { probe }), probe);
  },
};

const supergateway: Peer = {
  name: "supergateway",
  can: oneStdioServer,
  async start({ tools, probe }, _urls, { bin }) {
    const port = await freePort();
    const echo = `${process.execPath} ${ECHO_STDIO} --tools=${tools}`;
    // Without `--stateful` it would start a server for each request.
    const options = ["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--port", `${port}`];
    return streamable(port, startNode([bin, "--stdio", echo, ...options], { probe }), probe);
  },
};

const mcpHub: Peer = {
  name: "mcp-hub",
  can: () => true,
  async start(load, urls, { bin }) {
    const port = await freePort();
    const folder = scratch();
    const config = join(folder.dir, "servers.json");
    writeFileSync(config, JSON.stringify({ mcpServers: mcpServers(load, urls) }));
    // It keeps state in the home folder.
    const { probe } = load;
    const started = startNode([bin, "--port", `${port}`, "--config", config], { env: { HOME: folder.dir }, probe });
    return {
      probe,
      endpoint: { kind: "sse", url: `http://127.0.0.1:${port}/mcp` },
      process: started,
      async stop() {
        await started.stop();
        folder.remove();
      },
    };
  },
};

/** The servers live in a daemon of its own; what serves HTTP is a bridge to it. */
const mcporter: Peer = {
  name: "mcporter",
  can: () => true,
  async start(load, urls, { bin }) {
    const port = await freePort();
    const folder = scratch();
    const config = join(folder.dir, "mcporter.json");
    const servers = Object.entries(mcpServers(load, urls)).map(([id, entry]) => [
      id,
      { ...entry, lifecycle: "keep-alive" },
    ]);
    writeFileSync(config, JSON.stringify({ mcpServers: Object.fromEntries(servers) }));
    const env = { HOME: folder.dir };
    const daemon = startNode([bin, "--config", config, "daemon", "start", "--foreground"], { env, cwd: folder.dir });
    const { probe } = load;
    const started = startNode([bin, "--config", config, "serve", "--http", `${port}`], { env, cwd: folder.dir, probe });
    return {
      probe,
      endpoint: { kind: "streamable", url: `http://127.0.0.1:${port}/mcp` },
      process: started,
      companions: () => [daemon.pid, ...descendantsOf(daemon.pid)],
      async stop() {
        await Promise.all([started.stop(), daemon.stop()]);
        await sleep(50);
        folder.remove();
      },
    };
  },
};

const PEERS: readonly Peer[] = [mcpProxy, supergateway, mcpHub, mcporter];
export const PEER_PACKAGES: readonly string[] = PEERS.map(({ name }) => name);

/** Looked at, and why they cannot be measured here. */
export const NOT_MEASURED: Readonly<Record<string, string>> = {
  "mcp-gateway": "shows an SSE server as a stdio one, not the other way round",
  "mcp-remote": "shows an HTTP server as a stdio one, not the other way round",
  "@1mcp/agent": "not in the registry",
  metamcp: "not in the registry; its container image needs a database",
};

export function peerSubjects(installed: readonly Installed[]): Subject[] {
  return PEERS.flatMap((peer) => {
    const found = installed.find(({ name }) => name === peer.name);
    if (found === undefined) return [];
    return [
      {
        name: `${peer.name} ${found.version}`,
        kind: "peer" as const,
        can: (load) => peer.can(load),
        start: (load, urls) => peer.start(load, urls, found),
      },
    ];
  });
}

function streamable(port: number, started: Started, probe: string | undefined): Running {
  return {
    probe,
    endpoint: { kind: "streamable", url: `http://127.0.0.1:${port}/mcp` },
    process: started,
    stop: () => started.stop(),
  };
}
