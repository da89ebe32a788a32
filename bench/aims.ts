/** What the gateway is meant to reach, each as a ratio within one run, and whether it did. */
import { KINDS } from "./measures/answers.ts";
import { bestPeer, type Figures, rowOf } from "./measures/figures.ts";
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

const MEMORY_MB = 70;
/** Noise between two processes of the same program is a few percent. */
const IDLE_COST = 0.85;

type Bound = { readonly atMost: number } | { readonly atLeast: number };

export function judge(figures: readonly Figures[], scale: readonly ScaleFigures[]): Aim[] {
  const find = (measure: string): Figures | undefined => figures.find((one) => one.measure === measure);
  const toDirect = (what: string, measure: string, bound: Bound): Aim[] => {
    const own = find(measure);
    const got = rowOf(own, "toolcrib")?.ratio?.median;
    if (got === undefined) return [];
    return [aim(what, got, bound, rowOf(own, "relay")?.ratio?.median, bestPeer(own)?.ratio?.median)];
  };
  return [
    ...(["stdio", "http"] as const).flatMap((upstream) => [
      ...toDirect(`p50 of a call, ${upstream} server (× direct HTTP)`, `p50-${upstream}`, { atMost: 3 }),
      ...toDirect(`calls/s at 32 in flight, ${upstream} server (× direct HTTP)`, `throughput-${upstream}`, {
        atLeast: 0.6,
      }),
    ]),
    ...toDirect("list of 1,000 tools (× direct HTTP)", "list-stdio", { atMost: 1.1 }),
    ...KINDS.flatMap((kind) =>
      toDirect(`1 MiB result, ${kind} (× direct HTTP)`, `large-${kind}-stdio`, { atMost: 2.5 }),
    ),
    ...startAim(find("start-30")),
    ...memoryAim(find("memory")),
    ...scale.flatMap(idleAim),
  ];
}

function startAim(figures: Figures | undefined): Aim[] {
  const [own, peer] = [rowOf(figures, "toolcrib")?.value.median, bestPeer(figures)?.value.median];
  if (own === undefined || peer === undefined) return [];
  return [aim("complete list with 30 servers (× best peer)", own / peer, { atMost: 0.7 }, undefined, 1)];
}

function memoryAim(figures: Figures | undefined): Aim[] {
  const own = rowOf(figures, "toolcrib")?.value.median;
  if (own === undefined) return [];
  const relay = rowOf(figures, "relay")?.value.median;
  return [aim("idle memory with 10 servers (MB)", own, { atMost: MEMORY_MB }, relay, bestPeer(figures)?.value.median)];
}

function idleAim({ dimension, rows }: ScaleFigures): Aim[] {
  const largest = rows.at(-1);
  if (largest === undefined || rows.length < 2) return [];
  const what = `calls/s with ${count(largest[dimension])} ${dimension} (× with ${count(rows[0]?.[dimension] ?? 0)})`;
  return [aim(what, largest.ratio.median, { atLeast: IDLE_COST })];
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
