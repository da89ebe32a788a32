/** Two or more hubs of one cluster in one process: a real PostgreSQL, a real NATS, and a home and a config file for each. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OPEN_NATS_WARNING } from "../../../src/cluster/nats-link.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { missingNats, type Nats, startNats } from "../../support/nats.ts";
import { missingPostgres, type Postgres, startPostgres } from "../../support/postgres.ts";
import { isMissing } from "../../support/skips.ts";

export function missingParts(): string | undefined {
  const missing = missingPostgres() ?? missingNats();
  isMissing("state shared by nodes", missing);
  return missing;
}

export interface TestNode {
  readonly hub: Hub;
  readonly home: string;
  readonly file: string;
  readonly warnings: readonly string[];
  /** What the file says, as JSON. */
  readonly read: () => ConfigInput;
  readonly write: (config: ConfigInput) => void;
  /** How often its tools ran. */
  readonly runs: () => number;
}

export interface Bench {
  readonly postgres: Postgres;
  readonly nats: Nats;
  /** A place for nodes of one cluster, with nobody in it yet. */
  cluster(): Promise<TestCluster>;
  stop(): Promise<void>;
}

export interface TestCluster {
  readonly url: string;
  /** @param config Null for the file that is there from before. */
  start(name: string, config: ConfigInput | null): Promise<TestNode>;
  fileOf(name: string): string;
  homeOf(name: string): string;
  close(): Promise<void>;
}

let clusters = 0;

export async function startBench(): Promise<Bench> {
  const [postgres, nats] = [await startPostgres(), await startNats()];
  return {
    postgres,
    nats,
    cluster: async () => newCluster(await postgres.freshUrl(), nats.url),
    async stop() {
      await nats.stop();
      await postgres.stop();
    },
  };
}

function newCluster(store: string, natsUrl: string): TestCluster {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-shared-"));
  const clusterName = `shared-${process.pid}-${++clusters}`;
  const hubs: Hub[] = [];
  const fileOf = (name: string): string => join(dir, name, "toolcrib.json");
  const homeOf = (name: string): string => join(dir, name, "home");
  return {
    url: store,
    fileOf,
    homeOf,
    async start(name, config) {
      const file = fileOf(name);
      const own = { store, cluster: { url: natsUrl, name: clusterName, node: name } };
      mkdirSync(homeOf(name), { recursive: true });
      const write = (wanted: ConfigInput): void =>
        writeFileSync(file, `${JSON.stringify({ ...own, ...wanted }, null, 2)}\n`);
      if (config !== null) write(config);
      let runs = 0;
      const registry = new ToolRegistry();
      for (const tool of ["wipe", "drop", "read"]) {
        registry.register({
          name: tool,
          description: `Does ${tool}.`,
          parameters: { type: "object" },
          execute: async () => ({ content: [{ type: "text", text: `${tool} ${++runs}` }] }),
        });
      }
      const hub = await createHub(file, { home: homeOf(name), registry, cluster: true });
      hub.internals.watch();
      hubs.push(hub);
      return {
        hub,
        home: homeOf(name),
        file,
        get warnings() {
          // The NATS of tests is open to all.
          return hub
            .warnings()
            .map(({ message }) => message)
            .filter((message) => message !== OPEN_NATS_WARNING);
        },
        read: () => {
          // What the hub writes is what this type says.
          const { store: _store, cluster: _cluster, ...rest } = JSON.parse(readFileSync(file, "utf8")) as ConfigInput;
          return rest;
        },
        write,
        runs: () => runs,
      };
    },
    async close() {
      await Promise.all(hubs.splice(0).map((hub) => hub.close()));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
