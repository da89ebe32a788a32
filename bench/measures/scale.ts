/** That cost does not grow with idle things: the same calls with more open sessions, more servers, more tools. */
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { StreamableClient } from "../client/streamable.ts";
import { median, type Spread, spreadOf } from "../stats.ts";
import type { Load, Subject } from "../subjects/subject.ts";
import { startToolcrib } from "../subjects/toolcrib.ts";
import { PATTERNS } from "./calls.ts";
import { close, type Durations, type Entrant, open, type Phase, phase, rssOf, warmUp } from "./sustained.ts";

export interface Size {
  readonly sessions: number;
  readonly servers: number;
  /** In all. */
  readonly tools: number;
}

export interface SizeRow extends Size {
  readonly callsPerSecond: number;
  /** Each second to what the smallest of the same dimension did in the same round. */
  readonly ratio: Spread;
  /** Of the hub's processes for one call. */
  readonly cpuUs: number;
  /** Idle, before the load. */
  readonly rssMb: number;
  /** At the end of the load. */
  readonly loadedMb: number;
}

export interface ScaleFigures {
  readonly dimension: keyof Size;
  readonly rows: readonly SizeRow[];
  readonly failures: Readonly<Record<string, string>>;
}

const OPENED_AT_ONCE = 50;
/** What slows the machine for a minute must not fall on one size alone. */
const ROUNDS = 3;
/** Of the seconds of another measure. */
const ROUND_SHARE = 0.4;

interface Started {
  readonly size: Size;
  readonly entrant: Entrant;
  readonly rssMb: number;
  readonly phases: Phase[];
}

/** All sizes run, and get their calls in turns: the others are idle meanwhile. */
export async function measureScale(
  dimension: keyof Size,
  sizes: readonly Size[],
  { startedMs, ...durations }: Durations & { readonly startedMs: number },
  say: (line: string) => void,
): Promise<ScaleFigures> {
  await using closing = new AsyncDisposableStack();
  const failures: Record<string, string> = {};
  const started: Started[] = [];
  for (const size of sizes) {
    const name = `${size[dimension]} ${dimension}`;
    say(`  ${name}`);
    try {
      const load: Load = { upstream: "stdio", servers: size.servers, tools: Math.ceil(size.tools / size.servers) };
      const entrant = closing.adopt(await open(ofSize(name), load, []), close);
      closing.defer(await openSessions(entrant, size.sessions));
      await sleep(startedMs);
      const rssMb = rssOf(entrant.running);
      await warmUp(entrant, PATTERNS.atOnce, durations);
      started.push({ size, entrant, rssMb, phases: [] });
    } catch (error) {
      failures[name] = error instanceof Error ? error.message : String(error);
    }
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    say(`  round ${round + 1} of ${ROUNDS}`);
    for (const { entrant, phases } of round % 2 === 0 ? started : started.toReversed())
      phases.push(await phase(entrant, PATTERNS.atOnce, durations.seconds * ROUND_SHARE, durations));
  }
  const smallest = started[0]?.phases ?? [];
  const rows = started.map(({ size, rssMb, phases }): SizeRow => {
    const ratios = phases.flatMap(({ windows }, round) =>
      windows.map(({ perSecond }) => perSecond / (smallest[round]?.perSecond ?? Number.NaN)),
    );
    return {
      ...size,
      callsPerSecond: median(phases.map(({ perSecond }) => perSecond)),
      ratio: spreadOf(ratios),
      cpuUs: median(phases.map(({ cpuUs }) => cpuUs ?? Number.NaN)),
      rssMb,
      loadedMb: phases.at(-1)?.rssMb ?? Number.NaN,
    };
  });
  return { dimension, rows, failures };
}

const ofSize = (name: string): Subject => ({
  name,
  kind: "toolcrib",
  can: () => true,
  start: (load, urls) => startToolcrib(load, urls),
});

/** Opens sessions and leaves them alone, as clients do that an editor keeps open. */
async function openSessions({ running }: Entrant, count: number): Promise<() => void> {
  const agent = new Agent({ keepAlive: false });
  const { url } = running.endpoint;
  for (let done = 0; done < count; done += OPENED_AT_ONCE) {
    const some = Math.min(OPENED_AT_ONCE, count - done);
    const clients = await Promise.all(Array.from({ length: some }, () => StreamableClient.open({ url, agent })));
    await Promise.all(clients.map((client) => client.request("tools/list")));
  }
  return () => agent.destroy();
}
