/** What large answers cost: a list of many tools, and a result of 1 MiB. */
import { listTools } from "../client/connect.ts";
import type { Load, Subject } from "../subjects/subject.ts";
import { type Entrant, inRounds, openField, type Rounds } from "./field.ts";
import { type Figures, figuresOf } from "./figures.ts";

export interface AnswerCounts extends Rounds {
  readonly calls: number;
}

export async function measureList(
  subjects: readonly Subject[],
  upstream: Load["upstream"],
  tools: number,
  counts: AnswerCounts,
): Promise<Figures[]> {
  const field = await openField(subjects, { upstream, servers: 1, tools });
  try {
    const timed = await inRounds(field, counts, (entrant) =>
      timeEach(counts.calls, async () => {
        const names = await listTools(entrant.client);
        if (names.length < tools) throw new Error(`only ${names.length} of ${tools} tools are listed`);
      }),
    );
    return [
      figuresOf({
        measure: `list-${upstream}`,
        title: `tools/list with ${tools.toLocaleString("en")} tools, ${upstream} server`,
        unit: "µs",
        better: "lower",
        floor: "direct HTTP",
        subjects,
        ...timed,
      }),
    ];
  } finally {
    await field.close();
  }
}

/** Text without any words costs a scanner something else than prose does. */
export const KINDS = ["x", "prose", "json"] as const;

export async function measureLargeResult(
  subjects: readonly Subject[],
  upstream: Load["upstream"],
  bytes: number,
  counts: AnswerCounts,
): Promise<Figures[]> {
  const field = await openField(subjects, { upstream, servers: 1, tools: 1 });
  try {
    const figures: Figures[] = [];
    for (const kind of KINDS) {
      const timed = await inRounds(field, counts, (entrant) =>
        timeEach(counts.calls, () => largeResult(entrant, bytes, kind)),
      );
      figures.push(
        figuresOf({
          measure: `large-${kind}-${upstream}`,
          title: `A result of ${bytes / 1024} KiB (${kind}), ${upstream} server`,
          unit: "µs",
          better: "lower",
          floor: "direct HTTP",
          subjects,
          ...timed,
        }),
      );
    }
    return figures;
  } finally {
    await field.close();
  }
}

async function largeResult({ client, tools }: Entrant, bytes: number, kind: string): Promise<void> {
  const params = { name: tools[0] ?? "", arguments: { bytes, kind } };
  const { result, error } = await client.request("tools/call", params);
  // What the echo server answers.
  const text = (result?.["content"] as readonly { text?: string }[] | undefined)?.[0]?.text;
  if (text?.length !== bytes)
    throw new Error(error?.message ?? `a text of ${text?.length} instead of ${bytes} characters`);
}

/** The mean time of a few runs, in microseconds. */
async function timeEach(runs: number, once: () => Promise<void>): Promise<number> {
  const start = performance.now();
  for (let run = 0; run < runs; run += 1) await once();
  return ((performance.now() - start) * 1000) / runs;
}
