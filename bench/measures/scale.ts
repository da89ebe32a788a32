/** That cost does not grow with idle things: the same calls with more open sessions, more servers, more tools. */
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { StreamableClient } from "../client/streamable.ts";
import { pairedRatio, type Spread } from "../stats.ts";
import type { Load, Subject } from "../subjects/subject.ts";
import { startToolcrib } from "../subjects/toolcrib.ts";
import { PATTERNS } from "./calls.ts";
import { type Durations, type Entrant, rssOf, underLoad } from "./sustained.ts";

export interface Size {
  readonly sessions: number;
  readonly servers: number;
  /** In all. */
  readonly tools: number;
}

export interface SizeRow extends Size {
  readonly callsPerSecond: number;
  /** To the smallest of the same dimension, each first to the bare server of its own minute. */
  readonly ratio: Spread;
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

export async function measureScale(
  dimension: keyof Size,
  sizes: readonly Size[],
  { startedMs, ...durations }: Durations & { readonly startedMs: number },
  say: (line: string) => void,
): Promise<ScaleFigures> {
  const bySubject = new Map(sizes.map((size) => [toolcribOfSize(size, dimension), size]));
  const sizeOf = (subject: Subject): Size => bySubject.get(subject) ?? { sessions: 0, servers: 1, tools: 1 };
  const idle = new Map<string, number>();
  const { phases, failures } = await underLoad({
    subjects: [...bySubject.keys()],
    load(subject): Load {
      const { servers, tools } = sizeOf(subject);
      return { upstream: "stdio", servers, tools: Math.ceil(tools / servers) };
    },
    patterns: { atOnce: PATTERNS.atOnce },
    durations,
    say,
    async prepare(entrant) {
      const agent = await openSessions(entrant, sizeOf(entrant.subject).sessions);
      await sleep(startedMs);
      idle.set(entrant.subject.name, rssOf(entrant.running));
      return () => agent.destroy();
    },
  });
  const shares = (size: Size): number[] => {
    const paired = phases.get(nameOf(size, dimension))?.atOnce;
    return paired?.own.windows.map(({ perSecond }) => perSecond / paired.bare.perSecond) ?? [];
  };
  const [smallest] = sizes;
  const base = smallest === undefined ? [] : shares(smallest);
  const mean = base.reduce((sum, share) => sum + share, 0) / base.length;
  const rows = sizes.flatMap((size): SizeRow[] => {
    const paired = phases.get(nameOf(size, dimension))?.atOnce;
    if (paired === undefined) return [];
    const own = shares(size);
    return [
      {
        ...size,
        callsPerSecond: paired.own.perSecond,
        ratio: pairedRatio(
          own,
          own.map(() => mean),
        ),
        rssMb: idle.get(nameOf(size, dimension)) ?? Number.NaN,
        loadedMb: paired.own.rssMb,
      },
    ];
  });
  return { dimension, rows, failures };
}

const nameOf = (size: Size, dimension: keyof Size): string => `${size[dimension]} ${dimension}`;

function toolcribOfSize(size: Size, dimension: keyof Size): Subject {
  return {
    name: nameOf(size, dimension),
    kind: "toolcrib",
    can: () => true,
    start: (load, urls) => startToolcrib(load, urls),
  };
}

/** Opens sessions and leaves them alone, as clients do that an editor keeps open. */
async function openSessions({ running }: Entrant, count: number): Promise<Agent> {
  const agent = new Agent({ keepAlive: false });
  const { url } = running.endpoint;
  for (let done = 0; done < count; done += OPENED_AT_ONCE) {
    const some = Math.min(OPENED_AT_ONCE, count - done);
    const clients = await Promise.all(Array.from({ length: some }, () => StreamableClient.open({ url, agent })));
    await Promise.all(clients.map((client) => client.request("tools/list")));
  }
  return agent;
}
