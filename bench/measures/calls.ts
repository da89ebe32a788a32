/** What one call costs under sustained load, one at a time and many at once. */
import { directHttp } from "../subjects/floor.ts";
import type { Load, Subject } from "../subjects/subject.ts";
import { type Figures, figuresOf, type Sampled } from "./figures.ts";
import { type Durations, type Entrant, type Paired, type Pick, samplesOf, underLoad } from "./sustained.ts";

export const IN_FLIGHT = 32;
const TEXT = "The quick brown fox jumps over the lazy dog.";

export const PATTERNS = {
  sequential: { inFlight: 1, once: echo },
  atOnce: { inFlight: IN_FLIGHT, once: echo },
} as const;

type Pattern = keyof typeof PATTERNS;

export async function measureCalls(
  subjects: readonly Subject[],
  load: Load,
  durations: Durations,
  say: (line: string) => void,
): Promise<Figures[]> {
  const { phases, failures } = await underLoad({ subjects, load, patterns: PATTERNS, durations, say });
  return callFigures(subjects, load.upstream, phases, failures);
}

/** @param where What the measures are called after, such as `stdio`. */
export function callFigures(
  subjects: readonly Subject[],
  where: string,
  phases: ReadonlyMap<string, Readonly<Record<Pattern, Paired>>>,
  failures: Readonly<Record<string, string>>,
): Figures[] {
  const sampled = (pattern: Pattern, pick: Pick): Map<string, Sampled> => samplesOf(phases, pattern, pick);
  const over = `${where} server`;
  const common = { subjects: [directHttp, ...subjects], better: "lower", unit: "µs", floor: directHttp.name } as const;
  return [
    figuresOf({
      ...common,
      measure: `p50-${where}`,
      title: `tools/call one at a time, p50, ${over}`,
      samples: sampled("sequential", ({ windows }) => windows.map(({ p50Us }) => p50Us)),
      failures,
    }),
    figuresOf({
      ...common,
      measure: `p99-${where}`,
      title: `tools/call one at a time, p99, ${over}`,
      samples: sampled("sequential", ({ p99Us }) => p99Us),
    }),
    figuresOf({
      ...common,
      measure: `tail-${where}`,
      title: `p99 of tools/call one at a time, in its own p50s, ${over}`,
      unit: "× p50",
      samples: sampled("sequential", ({ p99Us, p50Us }) => p99Us / p50Us),
    }),
    figuresOf({
      ...common,
      measure: `throughput-${where}`,
      title: `tools/call, ${IN_FLIGHT} in flight, ${over}`,
      unit: "calls/s",
      better: "higher",
      samples: sampled("atOnce", ({ windows }) => windows.map(({ perSecond }) => perSecond)),
    }),
    figuresOf({
      ...common,
      measure: `cpu1-${where}`,
      title: `CPU of the gateway per call, one at a time, until it is idle again, ${over}`,
      samples: sampled("sequential", ({ cpuUs }) => cpuUs),
    }),
    figuresOf({
      ...common,
      measure: `cpu${IN_FLIGHT}-${where}`,
      title: `CPU of the gateway per call, ${IN_FLIGHT} in flight, until it is idle again, ${over}`,
      samples: sampled("atOnce", ({ cpuUs }) => cpuUs),
    }),
    figuresOf({
      ...common,
      measure: `loop-${where}`,
      title: `Event-loop delay of the gateway, p99, ${IN_FLIGHT} in flight, ${over}`,
      unit: "ms",
      samples: sampled("atOnce", ({ loop }) => loop?.p99Ms),
    }),
  ];
}

/** The answer is looked at: a gateway that fails quickly must not win. */
async function echo({ client, tools }: Entrant): Promise<void> {
  const { result, error } = await client.request("tools/call", { name: tools[0] ?? "", arguments: { text: TEXT } });
  // What the echo server answers.
  const content = result?.["content"] as readonly { text?: string }[] | undefined;
  if (content?.[0]?.text !== TEXT)
    throw new Error(error?.message ?? `an answer that is not the echo: ${JSON.stringify(result)}`);
}
