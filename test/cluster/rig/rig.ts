/** A whole cluster on loopback: PostgreSQL, NATS, nodes that are real processes, and a balancer in front. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import type { NetConnectOpts } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConfigInput } from "../../../src/model/config.ts";
import { missingNats, type Nats, startNats } from "../../support/nats.ts";
import { missingPostgres, type Postgres, startPostgres } from "../../support/postgres.ts";
import { Balancer } from "./balancer.ts";
import { Link, type LinkState } from "./link.ts";
import { NodeProcess } from "./node-process.ts";

export interface RigOptions {
  /** 3 if absent. */
  readonly nodes?: number;
  /** The folder is the rig's. */
  readonly servers?: (dir: string) => NonNullable<ConfigInput["mcpServers"]>;
  readonly config?: ConfigInput;
  /** Milliseconds of a lease; false for nodes that know nothing of each other. */
  readonly cluster?: { readonly leaseMs?: number } | false;
  readonly env?: Readonly<Record<string, string>>;
  /** False for nodes that reach NATS and PostgreSQL themselves, where only their cost matters. */
  readonly links?: false;
}

/** Why there can be no cluster here, or undefined. */
export function missingForCluster(): string | undefined {
  return missingPostgres() ?? missingNats();
}

export interface Rig extends AsyncDisposable {
  readonly dir: string;
  /** Of the balancer. */
  readonly url: string;
  readonly nodes: readonly NodeProcess[];
  readonly balancer: Balancer;
  readonly postgres: Postgres | undefined;
  readonly nats: Nats | undefined;
  /** By its index. */
  node(index: number): NodeProcess;
  /** Takes a node's links to NATS and PostgreSQL away, or gives them back. */
  setLinks(node: NodeProcess, state: LinkState, which?: readonly ("nats" | "postgres")[]): void;
  /** Resolves when the balancer holds every node for ready. */
  whenReady(limitMs?: number): Promise<void>;
  /** What all nodes have said, for the message of a failure. */
  logs(): string;
  /** Numbers of all processes of the rig's nodes and servers. */
  processes(): number[];
  /** Ends everything, and gives the numbers of processes that the nodes left behind. */
  stop(graceMs?: number): Promise<number[]>;
}

const PLENTY = "1000000000";
const GRACE_MS = 3000;
const READY_MS = 30_000;

const live = new Set<string>();
process.on("exit", () => {
  for (const dir of live) killAll(processesOf(dir));
});

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-rig-"));
  live.add(dir);
  const opened: (() => Promise<unknown>)[] = [];
  const nodes: NodeProcess[] = [];
  const logs = (): string => nodes.map(({ name, log }) => `== ${name}\n${log.slice(-6000)}`).join("\n");
  const stop = async (graceMs = GRACE_MS): Promise<number[]> => {
    for (const node of nodes) node.resume();
    await Promise.allSettled(nodes.map((node) => node.stop()));
    // Servers get a moment: their node has gone, and they hear of it by themselves.
    for (let waited = 0; processesOf(dir).length > 0 && waited < graceMs; waited += 50) await sleep(50);
    const left = processesOf(dir);
    killAll(left);
    for (const close of opened.toReversed()) await close();
    rmSync(dir, { recursive: true, force: true });
    live.delete(dir);
    return left;
  };
  try {
    const { cluster = {} } = options;
    const engines = cluster === false ? undefined : await startEngines(opened);
    for (let index = 0; index < (options.nodes ?? 3); index += 1) {
      const name = `n${index}`;
      const links = engines === undefined || options.links === false ? {} : await linksTo(engines, opened);
      const shared =
        engines === undefined || cluster === false
          ? {}
          : { store: "${RIG_STORE}", cluster: { url: "${RIG_NATS}", node: name, ...cluster } };
      const env = engines === undefined ? {} : addressesOf(engines, links);
      nodes.push(
        new NodeProcess({
          name,
          dir,
          links,
          config: configOf(options, dir, shared),
          env: { ...LIMITS, ...env, ...options.env },
        }),
      );
    }
    await Promise.all(nodes.map((node) => node.start()));
    const balancer = await Balancer.open(nodes);
    opened.push(() => balancer.close());
    return {
      dir,
      nodes,
      balancer,
      postgres: engines?.postgres,
      nats: engines?.nats,
      url: balancer.url,
      stop,
      node(index) {
        const node = nodes[index];
        if (node === undefined) throw new Error(`There is no node ${index}.`);
        return node;
      },
      setLinks({ links }, state, which = ["nats", "postgres"]) {
        for (const each of which) {
          const link = links[each];
          if (link !== undefined) link.state = state;
        }
      },
      async whenReady(limitMs = READY_MS) {
        for (const deadline = Date.now() + limitMs; !nodes.every(({ name }) => balancer.isReady(name));) {
          if (Date.now() > deadline) throw new Error(`Not all nodes are ready.\n${logs()}`);
          await sleep(20);
        }
      },
      logs,
      processes: () => processesOf(dir),
      async [Symbol.asyncDispose]() {
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const LIMITS = {
  TOOLCRIB_LIMITS_CALLS_PER_MINUTE: PLENTY,
  TOOLCRIB_LIMITS_CONCURRENCY: "10000",
  TOOLCRIB_LIMITS_SERVERS: "1000",
};

function configOf({ config = {}, servers }: RigOptions, dir: string, shared: object): object {
  return {
    guard: { pins: "off" },
    ...config,
    ...shared,
    mcpServers: { ...config.mcpServers, ...servers?.(dir) },
    http: { ...config.http, limits: { requestsPerMinute: Number(PLENTY), ...config.http?.limits } },
  };
}

interface Engines {
  readonly postgres: Postgres;
  readonly nats: Nats;
  /** All nodes share the tables. */
  readonly store: string;
}

async function startEngines(opened: (() => Promise<unknown>)[]): Promise<Engines> {
  const [postgres, nats] = await Promise.all([
    startPostgres().then((started) => {
      opened.push(() => started.stop());
      return started;
    }),
    startNats().then((started) => {
      opened.push(() => started.stop());
      return started;
    }),
  ]);
  return { postgres, nats, store: await postgres.freshUrl() };
}

async function linksTo({ nats, store }: Engines, opened: (() => Promise<unknown>)[]) {
  const { hostname, port } = new URL(nats.url);
  // PostgreSQL listens at a socket in this folder.
  const socket = join(new URL(store).searchParams.get("host") ?? "", ".s.PGSQL.5432");
  const targets: NetConnectOpts[] = [{ host: hostname, port: Number(port) }, { path: socket }];
  const [toNats, toPostgres] = await Promise.all(targets.map((target) => Link.open(() => target)));
  for (const link of [toNats, toPostgres]) if (link !== undefined) opened.push(() => link.close());
  return { ...(toNats && { nats: toNats }), ...(toPostgres && { postgres: toPostgres }) };
}

/** The same addresses, by way of the node's own links if it has them. */
function addressesOf(
  { nats, store }: Engines,
  links: { readonly nats?: Link; readonly postgres?: Link },
): Record<string, string> {
  if (links.nats === undefined || links.postgres === undefined) return { RIG_NATS: nats.url, RIG_STORE: store };
  const natsUrl = new URL(nats.url);
  natsUrl.port = String(links.nats.port);
  const storeUrl = new URL(store);
  storeUrl.searchParams.delete("host");
  storeUrl.hostname = "127.0.0.1";
  storeUrl.port = String(links.postgres.port);
  return { RIG_NATS: natsUrl.href, RIG_STORE: storeUrl.href };
}

/** All whose command line or environment names the folder, whoever started them. A node hands its HOME down. */
function processesOf(dir: string): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .filter((entry) => {
      try {
        return ["cmdline", "environ"].some((file) => readFileSync(`/proc/${entry}/${file}`, "utf8").includes(dir));
      } catch {
        return false;
      }
    })
    .map(Number);
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has gone in the meantime.
    }
  }
}
