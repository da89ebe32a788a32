/**
 * Load as it is in earnest: one subject at a time, for seconds without a pause, with the bare server right before and after it.
 * Nothing that a subject puts off is lost: its CPU time is read when it has become idle again.
 */
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuMsOf, memoryOf } from "../processes.ts";
import { median, quantile } from "../stats.ts";
import { directHttp } from "../subjects/floor.ts";
import type { Sampled } from "./figures.ts";
import {
  gatewayPids,
  type Load,
  type Ready,
  type Running,
  scratch,
  type Subject,
  whenComplete,
} from "../subjects/subject.ts";

export interface Entrant extends Ready {
  readonly subject: Subject;
  readonly running: Running;
}

export interface Pattern {
  readonly inFlight: number;
  readonly once: (entrant: Entrant) => Promise<void>;
}

export interface Durations {
  /** Of the load on a subject, for each pattern. */
  readonly seconds: number;
  /** Of the load on the bare server, before and after. */
  readonly bareSeconds: number;
  /** Before anything counts: a program with much code needs some thousand calls until it is compiled. */
  readonly warmupSeconds: number;
  /** A process counts as idle when it has used almost no CPU for this long. */
  readonly quietMs: number;
}

/** What one phase of load has shown. */
export interface Phase {
  readonly perSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** The same by seconds, for the spread. */
  readonly windows: readonly { readonly perSecond: number; readonly p50Us: number }[];
  /** Of the gateway's processes for one call, with what they did until they were idle again; undefined without a process. */
  readonly cpuUs: number | undefined;
  readonly loop: LoopDelay | undefined;
  readonly rssMb: number;
}

export interface LoopDelay {
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** A phase and what the bare server did around it. */
export interface Paired {
  readonly own: Phase;
  readonly bare: Phase;
}

export interface Sustained<Name extends string> {
  readonly phases: ReadonlyMap<string, Readonly<Record<Name, Paired>>>;
  readonly failures: Readonly<Record<string, string>>;
}

export interface SustainedOptions<Name extends string> {
  readonly subjects: readonly Subject[];
  readonly load: Load;
  readonly patterns: Readonly<Record<Name, Pattern>>;
  readonly durations: Durations;
  readonly say: (line: string) => void;
}

const WINDOW_MS = 1000;
const MIN_WARMUP_IN_FLIGHT = 4;
/** Two ticks of the system's clock. */
const IDLE_CPU_MS = 20;
const MAX_IDLE_WAITS = 40;

export async function underLoad<Name extends string>(options: SustainedOptions<Name>): Promise<Sustained<Name>> {
  const { subjects, load, patterns, durations, say } = options;
  const phases = new Map<string, Record<Name, Paired>>();
  const failures: Record<string, string> = {};
  const able = subjects.filter((subject) => subject.can(load));
  if (able.length === 0) return { phases, failures };
  const bare = await open(directHttp, { ...load, servers: 1 }, []);
  try {
    for (const pattern of Object.values<Pattern>(patterns)) await warmUp(bare, pattern, durations);
    for (const subject of able) {
      say(`  ${subject.name}`);
      try {
        phases.set(subject.name, await measureOne(subject, bare, options));
      } catch (error) {
        failures[subject.name] = error instanceof Error ? error.message : String(error);
      }
    }
  } finally {
    await close(bare);
  }
  return { phases, failures };
}

async function measureOne<Name extends string>(
  subject: Subject,
  bare: Entrant,
  { load, patterns, durations }: SustainedOptions<Name>,
): Promise<Record<Name, Paired>> {
  await using closing = new AsyncDisposableStack();
  const upstreams = closing.adopt(await startUpstreams(load), ({ stop }) => stop());
  const folder = closing.adopt(scratch(), ({ remove }) => remove());
  const probe = join(folder.dir, "probe");
  const entrant = closing.adopt(await open(subject, { ...load, probe }, upstreams.urls), close);
  const paired: Partial<Record<Name, Paired>> = {};
  for (const [name, pattern] of Object.entries<Pattern>(patterns)) {
    await warmUp(entrant, pattern, durations);
    const before = await phase(bare, pattern, durations.bareSeconds, durations);
    const own = await phase(entrant, pattern, durations.seconds, durations);
    const after = await phase(bare, pattern, durations.bareSeconds, durations);
    // The keys of the object are the names.
    paired[name as Name] = { own, bare: meanOf(before, after) };
  }
  // Every pattern has had its turn.
  return paired as Record<Name, Paired>;
}

export async function warmUp(entrant: Entrant, pattern: Pattern, { warmupSeconds, quietMs }: Durations): Promise<void> {
  await drive(entrant, { ...pattern, inFlight: Math.max(MIN_WARMUP_IN_FLIGHT, pattern.inFlight) }, warmupSeconds);
  await untilIdle(entrant.running, quietMs);
}

export type Pick = (phase: Phase) => readonly number[] | number | undefined;

/** What figures are made of: a value of each subject, and what the bare server did around it. */
export function samplesOf<Name extends string>(
  phases: Sustained<Name>["phases"],
  name: Name,
  pick: Pick,
): Map<string, Sampled> {
  const list = (phase: Phase): readonly number[] => [pick(phase) ?? []].flat();
  const samples = new Map<string, Sampled>();
  const bareValues: number[] = [];
  for (const [subject, { [name]: paired }] of phases) {
    const [values, bare] = [list(paired.own), list(paired.bare)];
    // Seconds of a phase have no partner: all are compared with what the bare server did around them.
    const base = bare.reduce((sum, value) => sum + value, 0) / bare.length;
    samples.set(subject, bare.length === 0 ? { values } : { values, floor: values.map(() => base) });
    bareValues.push(...bare);
  }
  return samples.set(directHttp.name, { values: bareValues, floor: bareValues });
}

/** One HTTP echo server for each server of the load. */
export async function startUpstreams(load: Load): Promise<{ readonly urls: readonly string[]; stop(): Promise<void> }> {
  if (load.upstream !== "http") return { urls: [], stop: async () => {} };
  const servers = await Promise.all(Array.from({ length: load.servers }, () => directHttp.start(load, [])));
  for (const server of servers) await (await whenComplete(server, { ...load, servers: 1 })).client.close();
  return {
    urls: servers.map(({ endpoint }) => endpoint.url),
    stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
  };
}

export async function open(subject: Subject, load: Load, urls: readonly string[]): Promise<Entrant> {
  const running = await subject.start(load, urls);
  try {
    return { subject, running, ...(await whenComplete(running, load)) };
  } catch (error) {
    await running.stop();
    throw error;
  }
}

export async function close({ client, running }: Entrant): Promise<void> {
  await client.close().catch(() => {});
  await running.stop();
}

export async function phase(
  entrant: Entrant,
  pattern: Pattern,
  seconds: number,
  { quietMs }: Durations,
): Promise<Phase> {
  const { running } = entrant;
  const before = cpuOf(running);
  await askProbe(running);
  const { times, elapsedMs } = await drive(entrant, pattern, seconds);
  const loop = await askProbe(running);
  const rssMb = rssOf(running);
  await untilIdle(running, quietMs);
  const all = times.flat();
  const cpuMs = cpuOf(running) - before;
  return {
    perSecond: (all.length / elapsedMs) * 1000,
    p50Us: median(all),
    p99Us: quantile(all, 0.99),
    // The last one is cut off.
    windows: times
      .slice(0, Math.max(1, times.length - 1))
      .map((some) => ({ perSecond: (some.length * 1000) / Math.min(WINDOW_MS, elapsedMs), p50Us: median(some) })),
    cpuUs: gatewayPids(running).length === 0 ? undefined : (cpuMs * 1000) / Math.max(1, all.length),
    loop,
    rssMb,
  };
}

/** @returns Microseconds of each call, by the second in which it ended. */
export async function drive(
  entrant: Entrant,
  { inFlight, once }: Pattern,
  seconds: number,
): Promise<{ readonly times: number[][]; readonly elapsedMs: number }> {
  const times: number[][] = [];
  const begun = performance.now();
  const end = begun + seconds * 1000;
  const worker = async (): Promise<void> => {
    // At least one call, however short the phase.
    do {
      const start = performance.now();
      await once(entrant);
      const now = performance.now();
      const window = Math.floor((now - begun) / WINDOW_MS);
      while (times.length <= window) times.push([]);
      times[window]?.push((now - start) * 1000);
    } while (performance.now() < end);
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return { times, elapsedMs: performance.now() - begun };
}

/** What was put off is done by then. */
async function untilIdle(running: Running, quietMs: number): Promise<void> {
  for (let wait = 0; wait < MAX_IDLE_WAITS; wait += 1) {
    const before = cpuOf(running);
    await sleep(quietMs);
    if (cpuOf(running) - before < IDLE_CPU_MS) return;
  }
}

function meanOf(a: Phase, b: Phase): Phase {
  const mean = (pick: (one: Phase) => number): number => (pick(a) + pick(b)) / 2;
  return {
    perSecond: mean(({ perSecond }) => perSecond),
    p50Us: mean(({ p50Us }) => p50Us),
    p99Us: mean(({ p99Us }) => p99Us),
    windows: [...a.windows, ...b.windows],
    cpuUs: mean(({ cpuUs }) => cpuUs ?? Number.NaN),
    loop: undefined,
    rssMb: mean(({ rssMb }) => rssMb),
  };
}

function cpuOf(running: Running): number {
  return gatewayPids(running).reduce((sum, pid) => sum + cpuMsOf(pid), 0);
}

export function rssOf(running: Running): number {
  return gatewayPids(running).reduce((sum, pid) => sum + memoryOf(pid).rssMb, 0);
}

/** What bench/servers/loop-probe.mjs has seen since it was last asked; undefined where it is not loaded. */
function askProbe({ probe }: Running): Promise<LoopDelay | undefined> {
  if (probe === undefined) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    let text = "";
    const socket = connectSocket(probe);
    socket.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    socket.on("end", () => resolve(JSON.parse(text)));
    socket.on("error", () => resolve(undefined));
  });
}
