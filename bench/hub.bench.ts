/** Several clients with several servers: what all their processes take together, and how long until every client has every tool. */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { initializeParams } from "./client/protocol.ts";
import type { BenchOptions } from "./options.ts";
import { commandOf, memoryOf, plainEnvironment } from "./processes.ts";
import { type Installed, installPeers } from "./subjects/install-peers.ts";
import { ECHO_STDIO, mcpServers, scratch } from "./subjects/subject.ts";
import { number, renderTable } from "./table.ts";

const CLIENTS = { full: 5, quick: 5, smoke: 2 } as const;
const SERVERS = { full: 10, quick: 10, smoke: 2 } as const;
const ROUNDS = { full: 5, quick: 3, smoke: 1 } as const;
const TOOLS = 5;
/** Whoever has work left after the start has done it by then. */
const IDLE_MS = { full: 5000, quick: 3000, smoke: 200 } as const;
const PATIENCE_MS = 120_000;
const RETRY_MS = 20;
const BIN = resolve(import.meta.dirname, "../bin/toolcrib.js");

interface HubRow {
  readonly what: string;
  readonly processes: number;
  /** Proportional: a page that several processes share counts once. */
  readonly pssMb: number;
  /** Until every client has listed every tool. */
  readonly startMs: number;
  readonly memoryRatio: number;
  readonly startRatio: number;
}

export interface HubReport {
  readonly clients: number;
  readonly servers: number;
  readonly baseline: string;
  readonly rows: readonly HubRow[];
  readonly missing: Readonly<Record<string, string>>;
}

interface HubSubject {
  readonly name: string;
  /** The commands that one client starts, each of which is one stdio server for it. */
  commands(folder: string, config: string): readonly (readonly string[])[];
  /** A command that is run first. */
  prepare?(config: string): readonly string[];
  /** The config of the servers, in the form of this subject. */
  config?(servers: Record<string, object>): object;
}

/** Every client starts every server itself, as clients without a gateway do. */
const direct: HubSubject = {
  name: "no gateway",
  commands: (folder) => Array.from({ length: serverCount }, () => [ECHO_STDIO, `--tools=${TOOLS}`, `--name=${folder}`]),
};

const shared: HubSubject = {
  name: "Toolcrib, one hub",
  commands: (_folder, config) => [[BIN, "mcp", "--config", config]],
};

const standalone: HubSubject = {
  name: "Toolcrib, a hub for each client",
  commands: (_folder, config) => [[BIN, "mcp", "--standalone", "--config", config]],
};

function mcporter({ name, version, bin }: Installed): HubSubject {
  return {
    name: `${name} ${version}, its daemon`,
    prepare: (config) => [bin, "--config", config, "daemon", "start"],
    commands: (_folder, config) => [[bin, "--config", config, "serve", "--stdio"]],
    config: (servers) => ({
      mcpServers: Object.fromEntries(
        Object.entries(servers).map(([id, entry]) => [id, { ...entry, lifecycle: "keep-alive" }]),
      ),
    }),
  };
}

let serverCount = 0;

export async function measureHub({ extent, peers }: BenchOptions, say: (line: string) => void): Promise<HubReport> {
  const clients = CLIENTS[extent];
  serverCount = SERVERS[extent];
  const { installed, missing } = peers
    ? installPeers(["mcporter", "@1mcp/agent"], say)
    : { installed: [], missing: {} };
  const subjects = [direct, shared, standalone, ...installed.filter(({ name }) => name === "mcporter").map(mcporter)];
  const samples = new Map(subjects.map(({ name }) => [name, [] as Sample[]]));
  const failed: Record<string, string> = { ...missing };
  for (let round = 0; round < ROUNDS[extent]; round += 1) {
    for (const subject of subjects) {
      if (Object.hasOwn(failed, subject.name)) continue;
      say(`hub: ${subject.name}, ${round + 1} of ${ROUNDS[extent]} …`);
      try {
        samples.get(subject.name)?.push(await sample(subject, clients, IDLE_MS[extent]));
      } catch (error) {
        failed[subject.name] = error instanceof Error ? error.message : String(error);
      }
    }
  }
  const base = middle(samples.get(direct.name) ?? []);
  const rows = subjects
    .filter(({ name }) => !Object.hasOwn(failed, name))
    .map(({ name }): HubRow => {
      const own = middle(samples.get(name) ?? []);
      const ratios = { memoryRatio: own.pssMb / base.pssMb, startRatio: own.startMs / base.startMs };
      return { what: name, ...own, ...ratios };
    });
  return { clients, servers: serverCount, baseline: direct.name, rows, missing: failed };
}

export function renderHub({ clients, servers, baseline, rows, missing }: HubReport): string {
  const cells = rows.map(({ what, processes, pssMb, memoryRatio, startMs, startRatio }) => [
    what,
    String(processes),
    number(pssMb),
    number(memoryRatio),
    number(startMs),
    number(startRatio),
  ]);
  const head = [`${clients} clients, ${servers} servers`, "processes", "MB", `× ${baseline}`, "ms", `× ${baseline}`];
  const absent = Object.entries(missing).map(([name, reason]) => `Not measured: ${name}: ${reason}`);
  return [renderTable(head, cells), ...absent].join("\n");
}

interface Sample {
  readonly processes: number;
  readonly pssMb: number;
  readonly startMs: number;
}

async function sample(subject: HubSubject, clients: number, idleMs: number): Promise<Sample> {
  const folder = scratch();
  const config = join(folder.dir, "servers.json");
  // The folder in their command line is how processes are found: hubs and daemons are not below the clients.
  const named = Object.entries(mcpServers({ upstream: "stdio", servers: serverCount, tools: TOOLS }, [])).map(
    ([id, entry]) => [
      id,
      { ...entry, args: [...("args" in entry ? (entry.args as string[]) : []), `--name=${folder.dir}`] },
    ],
  );
  const servers = Object.fromEntries(named) as Record<string, object>;
  writeFileSync(config, JSON.stringify(subject.config?.(servers) ?? { mcpServers: servers }));
  const env = plainEnvironment({ HOME: folder.dir, TOOLCRIB_HOME: join(folder.dir, "home") });
  const options = { cwd: folder.dir, env };
  const started: StdioPeer[] = [];
  try {
    const begin = performance.now();
    const first = subject.prepare?.(config);
    if (first !== undefined) await runToEnd(first, options);
    const commands = subject.commands(folder.dir, config);
    await Promise.all(
      Array.from({ length: clients }, async () => {
        const own = commands.map((args) => new StdioPeer(args, options));
        started.push(...own);
        const deadline = performance.now() + PATIENCE_MS;
        await Promise.all(own.map((peer) => peer.request("initialize", initializeParams())));
        for (const peer of own) peer.notify("notifications/initialized");
        for (;;) {
          const lists = await Promise.all(own.map((peer) => peer.toolCount()));
          const seen = lists.reduce((sum, each) => sum + each, 0);
          if (seen >= serverCount * TOOLS) return;
          if (performance.now() > deadline) throw new Error(`${seen} tools after ${PATIENCE_MS / 1000} s`);
          await sleep(RETRY_MS);
        }
      }),
    );
    const startMs = performance.now() - begin;
    await sleep(idleMs);
    const pids = processesOf(folder.dir);
    return { processes: pids.length, pssMb: pids.reduce((sum, pid) => sum + pssOf(pid), 0), startMs };
  } finally {
    for (const peer of started) peer.end();
    for (const pid of processesOf(folder.dir)) tryKill(pid);
    while (processesOf(folder.dir).length > 0) await sleep(RETRY_MS);
    folder.remove();
  }
}

interface SpawnOptions {
  readonly cwd: string;
  readonly env: Record<string, string>;
}

/** One stdio server as a client sees it. */
class StdioPeer {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  #nextId = 1;
  #said = "";

  constructor(args: readonly string[], options: SpawnOptions) {
    this.#child = spawn(process.execPath, args, { ...options, stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stdin?.on("error", () => {});
    this.#child.stderr
      ?.setEncoding("utf8")
      .on("data", (text: string) => (this.#said = (this.#said + text).slice(-500)));
    this.#child.once("exit", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`It ended: ${this.#said.trim()}`));
    });
    if (this.#child.stdout === null) return;
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      const { id, method, result, error } = JSON.parse(line) as Record<string, unknown>;
      if (method !== undefined || typeof id !== "number") return;
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(JSON.stringify(error)));
    });
  }

  request(method: string, params: object = {}): Promise<unknown> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  notify(method: string): void {
    this.#send({ method });
  }

  async toolCount(): Promise<number> {
    const { tools } = (await this.request("tools/list")) as { readonly tools: readonly { readonly name: string }[] };
    return tools.filter(({ name }) => name.includes("echo")).length;
  }

  end(): void {
    this.#child.stdin?.end();
  }

  #send(message: object): void {
    this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }
}

function runToEnd(args: readonly string[], options: SpawnOptions): Promise<void> {
  const child = spawn(process.execPath, args, { ...options, stdio: "ignore" });
  return new Promise((done, fail) => {
    child.once("error", fail);
    child.once("exit", (code) => (code === 0 ? done() : fail(new Error(`${args.join(" ")} ended with ${code}`))));
  });
}

function processesOf(folder: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && commandOf(pid).includes(folder));
}

function pssOf(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) / 1024;
  } catch {
    // Where the system does not say: shared pages then count in each process.
    return memoryOf(pid).rssMb;
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

/** The median of each figure. */
function middle(samples: readonly Sample[]): Sample {
  const of = (read: (sample: Sample) => number): number =>
    samples.map(read).toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? Number.NaN;
  return { processes: of((one) => one.processes), pssMb: of((one) => one.pssMb), startMs: of((one) => one.startMs) };
}
