/** What the gateway is meant to reach, each as a ratio within one run, and whether it did. */
import { KINDS } from "./measures/answers.ts";
import { bestPeer, type Figures, type Row, rowOf } from "./measures/figures.ts";
import type { ScaleFigures } from "./measures/scale.ts";
import { count } from "./table.ts";

export interface Aim {
  readonly what: string;
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly got: number;
  /** What the relay and the best peer reached in the same run. */
  readonly relay?: number;
  readonly peer?: number;
  readonly met: boolean;
}

const MEMORY_MB = 85;
/** Noise between two processes of the same program is a few percent. */
const IDLE_COST = 0.85;

type Bound = { readonly atMost: number } | { readonly atLeast: number };

export function judge(figures: readonly Figures[], scale: readonly ScaleFigures[]): Aim[] {
  const find = (measure: string): Figures | undefined => figures.find((one) => one.measure === measure);
  const to = (what: string, measure: string, bound: Bound, pick: (row: Row) => number | undefined): Aim[] => {
    const own = find(measure);
    const [row, relay, peer] = [rowOf(own, "toolcrib"), rowOf(own, "relay"), bestPeer(own)];
    const got = row && pick(row);
    return got === undefined ? [] : [aim(what, got, bound, relay && pick(relay), peer && pick(peer))];
  };
  const toDirect = (what: string, measure: string, bound: Bound): Aim[] =>
    to(`${what} (× direct HTTP)`, measure, bound, ({ ratio }) => ratio?.median);
  const absolute = (what: string, measure: string, bound: Bound): Aim[] =>
    to(what, measure, bound, ({ value }) => value.median);
  return [
    ...(["stdio", "http"] as const).flatMap((upstream) => [
      ...toDirect(`p50 of a call, ${upstream} server`, `p50-${upstream}`, { atMost: 3 }),
      ...absolute(`p99 of a call, ${upstream} server (× own p50)`, `tail-${upstream}`, { atMost: 4 }),
      ...toDirect(`calls/s at 32 in flight, ${upstream} server`, `throughput-${upstream}`, { atLeast: 0.55 }),
    ]),
    ...absolute("CPU per call, one at a time, stdio server (µs)", "cpu1-stdio", { atMost: 280 }),
    ...absolute("CPU per call, 32 in flight, stdio server (µs)", "cpu32-stdio", { atMost: 110 }),
    ...absolute("event-loop delay at 32 in flight, p99 (ms)", "loop-stdio", { atMost: 5 }),
    ...toDirect("list of 1,000 tools", "list-stdio", { atMost: 1.1 }),
    ...KINDS.flatMap((kind) => toDirect(`1 MiB result, ${kind}`, `large-${kind}-stdio`, { atMost: 2.5 })),
    ...absolute("p99 of small calls beside 1 MiB results (× alone)", "beside-stdio", { atMost: 2 }),
    ...[1, 30].flatMap((servers) => startAim(servers, find(`start-${servers}`))),
    ...absolute("idle memory with 10 servers (MB)", "memory", { atMost: MEMORY_MB }),
    ...scale.flatMap(idleAim),
  ];
}

function startAim(servers: number, figures: Figures | undefined): Aim[] {
  const [own, peer] = [rowOf(figures, "toolcrib")?.value.median, bestPeer(figures)?.value.median];
  if (own === undefined || peer === undefined) return [];
  return [aim(`complete list with ${servers} servers (× best peer)`, own / peer, { atMost: 1 }, undefined, 1)];
}

function idleAim({ dimension, rows }: ScaleFigures): Aim[] {
  const [smallest, ...larger] = rows;
  return larger.map((row) => {
    const what = `calls/s with ${count(row[dimension])} ${dimension} (× with ${count(smallest?.[dimension] ?? 0)})`;
    return aim(what, row.ratio.median, { atLeast: IDLE_COST });
  });
}

function aim(what: string, got: number, bound: Bound, relay?: number, peer?: number): Aim {
  const met = "atMost" in bound ? got <= bound.atMost : got >= bound.atLeast;
  return {
    what,
    ...bound,
    got,
    ...(relay === undefined ? {} : { relay }),
    ...(peer === undefined ? {} : { peer }),
    met,
  };
}
