/** Running processes: enough facts to tell one of ours from a stranger with the same pid. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { hostname, uptime as uptimeSeconds } from "node:os";

export interface ProcessFacts {
  readonly pid: number;
  readonly pgid: number;
  /** Linux: clock ticks since boot; macOS: date and time. Together with the pid it names one process for good. */
  readonly startTime: string;
  /** The command line as the process shows it now; programs may change their own. */
  readonly command: string;
}

/** Zombies are not in it: they are dead, and wait only for their parent to notice. */
export interface ProcessTable {
  /**
   * The boot and pid namespace in which pids mean something. A home can be shared by containers and machines;
   * a record from elsewhere says nothing about processes here.
   */
  readonly place: string;
  find(pid: number): ProcessFacts | null;
  group(pgid: number): ProcessFacts[];
  /** The pids of its direct children; of all in its group where the system does not say whose they are. */
  children(pid: number): number[];
  /** The process's direct children, and theirs, as far as they are in its group. */
  descendants(pid: number): ProcessFacts[];
  /** Those that were started with a mark in their environment, by mark. Empty where the system does not show it. */
  marked(): ReadonlyMap<string, readonly ProcessFacts[]>;
}

/** A variable that each start of a server has a random value of: everything it starts inherits it, in whatever group and session. */
export const MARK_VARIABLE = "TOOLCRIB_SERVER_RUN";

/** Null where the system offers no start times that we can read. */
export function systemProcessTable(platform: NodeJS.Platform = process.platform): ProcessTable | null {
  if (platform === "linux") return linuxTable();
  if (platform === "darwin") return psTable();
  return null;
}

function linuxTable(): ProcessTable {
  const find = (pid: number): ProcessFacts | null => {
    const stat = readStat(pid);
    if (stat === null) return null;
    return { ...stat, command: (readProc(`${pid}/cmdline`) ?? "").replaceAll("\0", " ").trim() };
  };
  return {
    place: linuxPlace(),
    find,
    group: (pgid) =>
      readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .filter((name) => readStat(Number(name))?.pgid === pgid)
        .map((name) => find(Number(name)))
        .filter((facts) => facts !== null),
    children: linuxChildren,
    descendants(pid) {
      const found: ProcessFacts[] = [];
      const queue = [pid];
      for (let parent = queue.shift(); parent !== undefined && found.length < 100; parent = queue.shift()) {
        const children = (readProc(`${parent}/task/${parent}/children`) ?? "").split(" ").filter((text) => text !== "");
        for (const facts of children.map((child) => find(Number(child)))) {
          if (facts === null || facts.pgid !== pid) continue;
          found.push(facts);
          queue.push(facts.pid);
        }
      }
      return found;
    },
    marked() {
      const found = new Map<string, ProcessFacts[]>();
      for (const name of readdirSync("/proc")) {
        const mark = /^\d+$/.test(name) ? markOf(readProc(`${name}/environ`) ?? "") : null;
        const facts = mark === null ? null : find(Number(name));
        if (mark !== null && facts !== null) found.set(mark, [...(found.get(mark) ?? []), facts]);
      }
      return found;
    },
  };
}

function markOf(environment: string): string | null {
  const name = `${MARK_VARIABLE}=`;
  const at = environment.startsWith(name) ? 0 : environment.indexOf(`\0${name}`) + 1;
  if (at === 0 && !environment.startsWith(name)) return null;
  const end = environment.indexOf("\0", at);
  return environment.slice(at + name.length, end === -1 ? undefined : end);
}

/** Each thread has its own: programs with several start children from any of them. */
function linuxChildren(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      (readProc(`${pid}/task/${task}/children`) ?? "")
        .split(" ")
        .filter((text) => text !== "")
        .map(Number),
    );
  } catch {
    return [];
  }
}

function readStat(pid: number): Omit<ProcessFacts, "command"> | null {
  const stat = readProc(`${pid}/stat`);
  if (stat === null) return null;
  // The second field is the program's name in brackets and may hold spaces and brackets itself.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, , pgid] = fields;
  const startTime = fields[19];
  if (state === undefined || "ZX".includes(state) || pgid === undefined || startTime === undefined) return null;
  return { pid, pgid: Number(pgid), startTime };
}

function readProc(path: string): string | null {
  try {
    return readFileSync(`/proc/${path}`, "utf8");
  } catch {
    return null;
  }
}

function linuxPlace(): string {
  let namespace = "";
  try {
    namespace = readlinkSync("/proc/self/ns/pid");
  } catch {
    // Hidden by a sandbox; the boot id alone has to do.
  }
  return `${(readProc("sys/kernel/random/boot_id") ?? hostname()).trim()} ${namespace}`.trim();
}

function psTable(): ProcessTable {
  return {
    place: hostname(),
    find: (pid) => runPs(["-p", String(pid)])[0] ?? null,
    group: (pgid) => runPs(["-ax"]).filter((facts) => facts.pgid === pgid),
    children: (pid) => runPs(["-ax"]).flatMap((facts) => (facts.pgid === pid && facts.pid !== pid ? [facts.pid] : [])),
    descendants: (pid) => runPs(["-ax"]).filter((facts) => facts.pgid === pid && facts.pid !== pid),
    marked: () => new Map(),
  };
}

function runPs(selection: readonly string[]): ProcessFacts[] {
  try {
    const columns = ["-o", "pid=", "-o", "pgid=", "-o", "stat=", "-o", "lstart=", "-o", "command="];
    const environment = { PATH: "/bin:/usr/bin", LC_ALL: "C", TZ: "UTC" };
    return parsePs(
      execFileSync("ps", [...selection, ...columns], { encoding: "utf8", env: environment, stdio: "pipe" }),
    );
  } catch {
    // ps exits with 1 when nothing was selected.
    return [];
  }
}

/** Lines such as `  512   512 Ss   Mon Nov 16 09:01:22 2026     node server.js`. */
export function parsePs(output: string): ProcessFacts[] {
  const found: ProcessFacts[] = [];
  for (const line of output.split("\n")) {
    const match = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\w{3}\s+\w{3}\s+\d+\s+[\d:]{8}\s+\d{4})\s+(.*)$/.exec(line);
    const [, pid, pgid, state, started, command] = match ?? [];
    if (started === undefined || command === undefined || state === undefined || state.startsWith("Z")) continue;
    found.push({
      pid: Number(pid),
      pgid: Number(pgid),
      startTime: started.replace(/\s+/g, " "),
      command: command.trim(),
    });
  }
  return found;
}

/** The memory and CPU of the processes of a program together. */
export interface ProcessUsage {
  readonly processes: number;
  /** Resident; what they share is counted for each. */
  readonly memoryBytes: number;
  /** Of one core: 100 is one that does nothing else. */
  readonly cpuPercent: number;
  /** ISO time. */
  readonly startedAt: string;
}

/** The kernel shows times in these, whatever its own clock does. */
const TICKS_PER_SECOND = 100;
const SAMPLE_MS = 250;

/** Of these processes and everything that they started. Undefined where the system does not show it, or none runs. */
export async function processUsage(pids: readonly number[]): Promise<ProcessUsage | undefined> {
  if (process.platform !== "linux" || pids.length === 0) return undefined;
  const before = new Map(withDescendants(pids).map(({ pid, ticks }) => [pid, ticks]));
  const begun = performance.now();
  await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
  const now = withDescendants(pids);
  const [first] = now;
  if (first === undefined) return undefined;
  const seconds = (performance.now() - begun) / 1000;
  // One that began meanwhile used nothing before.
  const ticks = now.reduce((sum, each) => sum + Math.max(0, each.ticks - (before.get(each.pid) ?? 0)), 0);
  const startedAt =
    Date.now() - (uptimeSeconds() - Math.min(...now.map(({ start }) => start)) / TICKS_PER_SECOND) * 1000;
  return {
    processes: now.length,
    memoryBytes: now.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
    cpuPercent: Math.round((ticks / TICKS_PER_SECOND / seconds) * 1000) / 10,
    startedAt: new Date(startedAt).toISOString(),
  };
}

const MAX_PROCESSES = 500;

interface UsedProcess {
  readonly pid: number;
  readonly ticks: number;
  /** Ticks since boot. */
  readonly start: number;
  readonly memoryBytes: number;
}

function withDescendants(pids: readonly number[]): UsedProcess[] {
  const found: UsedProcess[] = [];
  const queue = [...pids];
  for (let pid = queue.shift(); pid !== undefined && found.length < MAX_PROCESSES; pid = queue.shift()) {
    const stat = readProc(`${pid}/stat`);
    if (stat === null) continue;
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [, memory = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(`${pid}/status`) ?? "") ?? [];
    const [user, system, start] = [11, 12, 19].map((field) => Number(fields[field] ?? 0));
    found.push({ pid, ticks: (user ?? 0) + (system ?? 0), start: start ?? 0, memoryBytes: Number(memory) * 1024 });
    queue.push(...linuxChildren(pid));
  }
  return found;
}
