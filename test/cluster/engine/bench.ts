/** Clusters on a real NATS: each test has one of its own name, and all nodes of it are closed at its end. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Cluster } from "../../../src/cluster/cluster.ts";
import { loadNats, OPEN_NATS_WARNING } from "../../../src/cluster/nats-link.ts";
import { openCluster, type OpenClusterOptions } from "../../../src/cluster/nats-cluster.ts";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import { missingNats, type Nats, startNats } from "../../support/nats.ts";
import { ripenLeases } from "./ripe-leases.ts";
import { isMissing } from "../../support/skips.ts";

export const LEASE_MS = 1000;
const TEST_SECRET = Buffer.alloc(32, "secret");
const MOST_TESTS = 16;
export const missing = missingNats();
isMissing("the cluster on NATS", missing);

export interface ChildNode {
  readonly id: string;
  readonly process: ChildProcess;
  /** Everything that it has said. */
  readonly lines: string[];
  /** The first line from now on that begins so; those before count too. */
  said(start: string): Promise<string>;
  end(): Promise<void>;
}

export class EngineBench {
  readonly nats: Nats;
  readonly warnings: string[] = [];
  /** That NATS asks for no credentials; not among the other warnings. */
  isWarnedOfOpenNats = false;
  #name = "";
  #tests = 0;
  #open: Cluster[] = [];
  #children: ChildNode[] = [];

  private constructor(nats: Nats) {
    this.nats = nats;
  }

  /** @param leases Whether tests claim any. */
  static async start({ leases = true } = {}): Promise<EngineBench> {
    const bench = new EngineBench(await startNats());
    if (leases) await ripenLeases(bench.nats.url, "test", MOST_TESTS, LEASE_MS);
    return bench;
  }

  /** Before each test. */
  fresh(): void {
    this.#name = `test${++this.#tests}`;
    this.warnings.length = 0;
    this.isWarnedOfOpenNats = false;
  }

  async node(
    name: string,
    options: Partial<OpenClusterOptions["config"]> = {},
    clock: Clock = systemClock,
    secret: Uint8Array = TEST_SECRET,
  ): Promise<Cluster> {
    const cluster = await openCluster({
      config: { url: this.nats.url, name: this.#name, node: name, leaseMs: LEASE_MS, ...options },
      secret,
      clock,
      facts: {},
      warn: (message) => {
        // The one of most tests does.
        if (message === OPEN_NATS_WARNING) this.isWarnedOfOpenNats = true;
        else this.warnings.push(message);
      },
    });
    this.#open.push(cluster);
    return cluster;
  }

  async nodes<const Names extends readonly string[]>(...names: Names): Promise<{ [At in keyof Names]: Cluster }> {
    const made = await Promise.all(names.map((name) => this.node(name)));
    // One cluster was made for each name.
    return made as { [At in keyof Names]: Cluster };
  }

  /** NATS knows what they serve and listen to: it has answered something that they sent afterwards. */
  async ready(...clusters: readonly Cluster[]): Promise<void> {
    await Promise.all(clusters.map((cluster) => failure(cluster.call("nobody.at.all", { head: {} }))));
  }

  /** How many messages NATS keeps for a map. */
  async kept(map: string): Promise<number> {
    const { transport, jetstream } = await loadNats();
    const connection = await transport.connect({ servers: this.nats.url });
    const { streams } = await jetstream.jetstreamManager(connection);
    const { state } = await streams.info(`KV_toolcrib_${this.#name}_map_${map}`);
    await connection.close();
    return state.messages;
  }

  /** A node in a process of its own, which can be killed and paused. */
  async child(task: "hold" | "serve" | "call", argument: string): Promise<ChildNode> {
    const program = fileURLToPath(new URL("child-node.ts", import.meta.url));
    const child = spawn(process.execPath, [program, this.nats.url, this.#name, String(LEASE_MS), task, argument], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout });
    reader.on("line", (line) => lines.push(line));
    const said = async (start: string): Promise<string> => {
      for (;;) {
        const found = lines.find((line) => line.startsWith(start));
        if (found !== undefined) return found;
        if (child.exitCode !== null) throw new Error(`The child ended: ${lines.join("\n")}`);
        await once(reader, "line");
      }
    };
    const id = (await said("node ")).slice("node ".length);
    const node: ChildNode = {
      ...{ id, process: child, lines, said },
      async end() {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      },
    };
    this.#children.push(node);
    return node;
  }

  /** After each test. */
  async clear(): Promise<void> {
    await Promise.all(this.#children.splice(0).map((child) => child.end()));
    await Promise.all(this.#open.splice(0).map((cluster) => cluster.close()));
  }

  async stop(): Promise<void> {
    await this.nats.stop();
  }
}

/** What it is rejected with. */
export async function failure(promise: Promise<unknown>): Promise<ToolcribError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ToolcribError) return error;
    throw error;
  }
  throw new Error("It was not rejected.");
}
