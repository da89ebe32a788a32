/** Processes that the benches start: everything is ended with the bench, and what each costs is read from the system. */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** `sysconf(_SC_CLK_TCK)` is 100 on every Linux that Node runs on. */
const MS_PER_TICK = 10;
const PATIENCE_MS = 5000;
const PROBE = new URL("servers/loop-probe.mjs", import.meta.url).href;
const OUTPUT_KEPT = 4000;
/** Below what Linux, macOS and Windows use for outgoing connections. */
const LOWEST_PORT = 12_000;
const PORTS = 18_000;

const live = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of live) killGroup(child);
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

export interface Started {
  readonly pid: number;
  /** The end of what it printed, for a message about its failure. */
  output(): string;
  readonly ended: boolean;
  readonly exited: Promise<void>;
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Socket of bench/servers/loop-probe.mjs, which is loaded into the process. */
  readonly probe?: string | undefined;
}

/** What a child needs and no more: `NODE_EXTRA_CA_CERTS` alone would cost every Node 45 ms at its start. */
export function plainEnvironment(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PATH = "", HOME = "/tmp" } = process.env;
  return { PATH, HOME, ...extra };
}

/** Starts Node with a script, in a process group of its own. */
export function startNode(args: readonly string[], { env = {}, cwd, probe }: StartOptions = {}): Started {
  const loaded = probe === undefined ? [] : ["--import", `${PROBE}?${encodeURIComponent(probe)}`];
  const child = spawn(process.execPath, [...loaded, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: plainEnvironment(env),
    detached: true,
    ...(cwd === undefined ? {} : { cwd }),
  });
  live.add(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output = (output + text).slice(-OUTPUT_KEPT)));
  }
  const exit = new Promise<void>((resolve) => {
    child.once("exit", () => {
      // Its number may belong to somebody else later on.
      killGroup(child);
      live.delete(child);
      resolve();
    });
  });
  child.on("error", (error) => (output += error.message));
  return {
    pid: child.pid ?? 0,
    output: () => output.trim(),
    exited: exit,
    get ended() {
      return child.exitCode !== null || child.signalCode !== null;
    },
    async stop() {
      child.kill("SIGTERM");
      await Promise.race([exit, sleep(PATIENCE_MS, undefined, { ref: false })]);
      if (live.has(child)) killGroup(child);
    },
  };
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // Nobody of the group is left.
  }
}

/**
 * A port that was free a moment ago. Not one that the system chooses: it hands those out to outgoing connections as well, so
 * a server that is started again on its port could find it taken.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORTS);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** CPU time that a process has used since it began, in milliseconds. */
export function cpuMsOf(pid: number): number {
  // The name in brackets may hold spaces; user and system time are the 14th and 15th field.
  const fields = readProc(pid, "stat")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * MS_PER_TICK;
}

export interface Memory {
  readonly rssMb: number;
  /** Without what is mapped from files, such as Node itself. */
  readonly anonMb: number;
}

export function memoryOf(pid: number): Memory {
  const status = readProc(pid, "status");
  const mb = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) / 1024;
  return { rssMb: mb("VmRSS"), anonMb: mb("RssAnon") };
}

export function commandOf(pid: number): string {
  return readProc(pid, "cmdline").replaceAll("\0", " ").trim();
}

/** All processes below one, the nearest first. */
export function descendantsOf(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const parent = Number(/^PPid:\s+(\d+)/m.exec(readProc(Number(entry), "status"))?.[1] ?? -1);
    children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const found: number[] = [];
  for (const next = [pid]; next.length > 0;) {
    const below = children.get(next.shift() ?? -1) ?? [];
    found.push(...below);
    next.push(...below);
  }
  return found;
}

export function openHandlesOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/** Empty if the process is gone. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
