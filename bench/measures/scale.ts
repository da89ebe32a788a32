/** That cost does not grow with idle things: the same calls with more open sessions, more servers, more tools. */
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { StreamableClient } from "../client/streamable.ts";
import { memoryOf } from "../processes.ts";
import { median, pairedRatio, type Spread } from "../stats.ts";
import { gatewayPids, type Load, type Subject } from "../subjects/subject.ts";
import { startToolcrib } from "../subjects/toolcrib.ts";
import { callsPerSecond, type Parallel } from "./calls.ts";
import { type Entrant, type Field, inRounds, openField, type Rounds } from "./field.ts";

export interface Size {
  readonly sessions: number;
  readonly servers: number;
  /** In all. */
  readonly tools: number;
}

export interface SizeRow extends Size {
  readonly callsPerSecond: number;
  /** To the smallest of the same dimension, paired by rounds. */
  readonly ratio: Spread;
  readonly rssMb: number;
}

export interface ScaleFigures {
  readonly dimension: keyof Size;
  readonly rows: readonly SizeRow[];
  readonly failures: Readonly<Record<string, string>>;
}

export interface ScaleCounts extends Rounds {
  readonly callsAtOnce: number;
  readonly idleMs: number;
}

const OPENED_AT_ONCE = 50;

export async function measureScale(
  dimension: keyof Size,
  sizes: readonly Size[],
  counts: ScaleCounts,
): Promise<ScaleFigures> {
  const rows: SizeRow[] = [];
  const opened: { field: Field; close(): Promise<void> }[] = [];
  const failures: Record<string, string> = {};
  try {
    for (const size of sizes) {
      const subject = toolcribOfSize(size, dimension);
      const load: Load = { upstream: "stdio", servers: size.servers, tools: Math.ceil(size.tools / size.servers) };
      const field = await openField([subject], load);
      Object.assign(failures, field.failures);
      const sessions = await openSessions(field.entrants[0], size.sessions);
      opened.push({
        field,
        async close() {
          sessions.destroy();
          await field.close();
        },
      });
    }
    const entrants = opened.flatMap(({ field }) => field.entrants);
    await sleep(counts.idleMs);
    const memory = new Map(entrants.map(({ subject, running }) => [subject.name, rssOf(running)]));
    const together: Field = { entrants, failures, close: async () => {} };
    const timed = await inRounds(together, counts, (entrant) => callsPerSecond(entrant, counts.callsAtOnce));
    const rates = (size: Size): number[] => (timed.samples.get(nameOf(size, dimension)) ?? []).map(perSecond);
    const [smallest] = sizes;
    for (const size of sizes) {
      const own = rates(size);
      if (own.length === 0 || smallest === undefined) continue;
      rows.push({
        ...size,
        callsPerSecond: median(own),
        ratio: pairedRatio(own, rates(smallest)),
        rssMb: memory.get(nameOf(size, dimension)) ?? Number.NaN,
      });
    }
    return { dimension, rows, failures: timed.failures };
  } finally {
    for (const one of opened) await one.close();
  }
}

const perSecond = (sample: Parallel): number => sample.perSecond;
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
async function openSessions(entrant: Entrant | undefined, count: number): Promise<Agent> {
  const agent = new Agent({ keepAlive: false });
  if (entrant === undefined || !("url" in entrant.running.endpoint)) return agent;
  const { url } = entrant.running.endpoint;
  for (let done = 0; done < count; done += OPENED_AT_ONCE) {
    const some = Math.min(OPENED_AT_ONCE, count - done);
    const clients = await Promise.all(Array.from({ length: some }, () => StreamableClient.open({ url, agent })));
    await Promise.all(clients.map((client) => client.request("tools/list")));
  }
  return agent;
}

function rssOf(running: Entrant["running"]): number {
  return gatewayPids(running).reduce((sum, pid) => sum + memoryOf(pid).rssMb, 0);
}
