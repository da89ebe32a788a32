/** Several hubs of one cluster in this process, on a real NATS and a real PostgreSQL. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { HubOptions } from "../../../src/hub/hub-options.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import { ripenLeases } from "../../cluster/engine/ripe-leases.ts";
import { missingNats, type Nats, startNats } from "../../support/nats.ts";
import { missingPostgres, type Postgres, startPostgres } from "../../support/postgres.ts";
import type { ServerInfo } from "../../../src/model/server-state.ts";

/** Why there can be no cluster here, or undefined. */
export const missing = missingNats() ?? missingPostgres();

export const LEASE_MS = 1000;

const countingServer = resolve(import.meta.dirname, "../../fixtures/counting-server.mjs");

export interface Ground {
  readonly nats: Nats;
  readonly postgres: Postgres;
  readonly dir: string;
  stop(): Promise<void>;
}

/** Buckets for the clusters of these tests, old enough for leases: PostgreSQL takes about as long to start. */
async function ripeNats(): Promise<Nats> {
  const nats = await startNats();
  await ripenLeases(nats.url, "test", 16, LEASE_MS);
  return nats;
}

export async function startGround(): Promise<Ground> {
  const [nats, postgres] = await Promise.all([ripeNats(), startPostgres()]);
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-nodes-"));
  return {
    nats,
    postgres,
    dir,
    async stop() {
      await Promise.all([nats.stop(), postgres.stop()]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export interface Nodes {
  /** Starts one more; what it reaches NATS by is `url`. */
  start(name: string, options?: HubOptions & { readonly url?: string }): Promise<Hub>;
  /** The config with other entries, for `reload`. */
  config(name: string, servers?: Record<string, Partial<ServerEntryInput>>): JsonObject;
  /** `append`s that were done, and the lives of the processes of a server. */
  counts(server: string): string[];
  lives(server: string): string[][];
  close(): Promise<void>;
}

let clusters = 0;

/** @param servers By id: an entry, or what is to be added to that of a server which keeps account of itself. */
export async function cluster(ground: Ground, servers: Record<string, Partial<ServerEntryInput>>): Promise<Nodes> {
  const name = `test${++clusters}`;
  const store = await ground.postgres.freshUrl();
  const file = (kind: string, server: string): string => join(ground.dir, `${name}-${server}.${kind}`);
  const entriesOf = (given: typeof servers): JsonObject =>
    Object.fromEntries(
      Object.entries(given).map(([id, { command = process.execPath, args = [], ...entry }]) => {
        const isOwn = command === process.execPath && args.every((each) => each.startsWith("--"));
        const own = [countingServer, `--count=${file("count", id)}`, `--lives=${file("lives", id)}`];
        return [id, { command, args: isOwn ? [...own, ...args] : args, ...entry }];
      }),
    );
  const configOf = (node: string, given = servers, url = ground.nats.url): JsonObject => ({
    store,
    cluster: { url, name, node, leaseMs: LEASE_MS },
    // Calls are made as fast as the machine can, and none is to be refused for that.
    limits: { callsPerMinute: 100_000 },
    mcpServers: entriesOf(given),
  });
  const hubs = new Set<Hub>();
  const read = (path: string): string[] =>
    existsSync(path)
      ? readFileSync(path, "utf8")
          .split("\n")
          .filter((line) => line !== "")
      : [];
  return {
    config: configOf,
    async start(node, { url, ...options } = {}) {
      const home = join(ground.dir, name, node);
      const hub = await createHub(configOf(node, servers, url), { home, cluster: true, ...options });
      hubs.add(hub);
      return hub;
    },
    counts: (server) => read(file("count", server)).map((line) => line.split(" ")[0] ?? ""),
    lives: (server) => read(file("lives", server)).map((line) => line.split(" ")),
    async close() {
      await Promise.all([...hubs].map((hub) => hub.close()));
    },
  };
}

export function textOf(outcome: Awaited<ReturnType<Hub["call"]>>): string {
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.error));
  const [content] = outcome.result.content;
  return content?.type === "text" ? String(content["text"]) : "";
}

export function serverOf(hub: Hub, id: string): ServerInfo {
  const found = hub.servers.list().find((server) => server.id === id);
  if (found === undefined) throw new Error(`there is no ${id}`);
  return found;
}

export interface Way {
  readonly url: string;
  /** From now on nothing gets through, and nobody is told. */
  cut(): void;
  close(): Promise<void>;
}

/** A way to NATS that can be cut. */
export async function wayTo(url: string): Promise<Way> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server: Server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on("data", (bytes) => void (isCut || other.write(bytes)));
      one.on("error", () => {});
      one.on("close", () => void (isCut || other.destroy()));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    url: `nats://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    cut() {
      isCut = true;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
