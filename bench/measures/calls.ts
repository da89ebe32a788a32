/** What one call costs: one at a time (p50, p99, CPU), and many at once. */
import { cpuMsOf } from "../processes.ts";
import { median, quantile } from "../stats.ts";
import { gatewayPids, type Load, type Subject } from "../subjects/subject.ts";
import { type Entrant, inRounds, openField, type Rounds } from "./field.ts";
import { type Figures, figuresOf } from "./figures.ts";

export interface CallCounts extends Rounds {
  /** Calls of one burst, one after the other. */
  readonly calls: number;
  /** Calls of one burst, `IN_FLIGHT` at once. */
  readonly callsAtOnce: number;
}

export const IN_FLIGHT = 32;
const ROUNDS_PER_TAIL = 5;
const TEXT = "The quick brown fox jumps over the lazy dog.";

export async function measureCalls(subjects: readonly Subject[], load: Load, counts: CallCounts): Promise<Figures[]> {
  const field = await openField(subjects, load);
  try {
    // Many at once comes first: it also warms every subject up for what is timed call by call.
    const parallel = await inRounds(field, counts, (entrant) => callsPerSecond(entrant, counts.callsAtOnce));
    const sequential = await inRounds(field, counts, (entrant) => sequentialCalls(entrant, counts.calls));
    const over = `${load.upstream} server`;
    const common = { subjects, floor: "direct HTTP" } as const;
    const each = (pick: (sample: Sequential) => number): Map<string, number[]> =>
      new Map([...sequential.samples].map(([name, samples]) => [name, samples.map(pick)]));
    return [
      figuresOf({
        ...common,
        measure: `p50-${load.upstream}`,
        title: `tools/call one at a time, p50, ${over}`,
        unit: "µs",
        better: "lower",
        samples: each(({ times }) => median(times)),
        failures: sequential.failures,
      }),
      figuresOf({
        ...common,
        measure: `p99-${load.upstream}`,
        title: `tools/call one at a time, p99, ${over}`,
        unit: "µs",
        better: "lower",
        samples: new Map([...sequential.samples].map(([name, samples]) => [name, tails(samples)])),
      }),
      figuresOf({
        ...common,
        measure: `throughput-${load.upstream}`,
        title: `tools/call, ${IN_FLIGHT} in flight, ${over}`,
        unit: "calls/s",
        better: "higher",
        samples: new Map(
          [...parallel.samples].map(([name, samples]) => [name, samples.map(({ perSecond }) => perSecond)]),
        ),
        failures: parallel.failures,
      }),
      figuresOf({
        ...common,
        measure: `cpu-${load.upstream}`,
        title: `CPU of the gateway per call, ${IN_FLIGHT} in flight, ${over}`,
        unit: "µs",
        better: "lower",
        // The clock of the system is too coarse for one burst, so all bursts count as one.
        samples: new Map([...parallel.samples].map(([name, samples]) => [name, meanCpu(samples, counts.callsAtOnce)])),
      }),
    ];
  } finally {
    await field.close();
  }
}

interface Sequential {
  /** In microseconds. */
  readonly times: readonly number[];
}

/** The p99 of several rounds together: one round has too few calls to have one. */
function tails(samples: readonly Sequential[]): number[] {
  const groups = Math.ceil(samples.length / ROUNDS_PER_TAIL);
  return Array.from({ length: groups }, (_, group) => {
    const some = samples.slice(group * ROUNDS_PER_TAIL, (group + 1) * ROUNDS_PER_TAIL);
    return quantile(
      some.flatMap(({ times }) => times),
      0.99,
    );
  });
}

async function sequentialCalls(entrant: Entrant, calls: number): Promise<Sequential> {
  const times: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    const start = performance.now();
    await echo(entrant, TEXT);
    times.push((performance.now() - start) * 1000);
  }
  return { times };
}

export interface Parallel {
  readonly perSecond: number;
  readonly cpuMs: number;
}

export async function callsPerSecond(entrant: Entrant, calls: number): Promise<Parallel> {
  const pids = gatewayPids(entrant.running);
  const cpu = (): number => pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
  const before = cpu();
  const start = performance.now();
  let left = calls;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await echo(entrant, TEXT);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  const seconds = (performance.now() - start) / 1000;
  return { perSecond: calls / seconds, cpuMs: cpu() - before };
}

/** The answer is looked at: a gateway that fails quickly must not win. */
export async function echo({ client, tools }: Entrant, text: string): Promise<void> {
  const { result, error } = await client.request("tools/call", { name: tools[0] ?? "", arguments: { text } });
  // What the echo server answers.
  const content = result?.["content"] as readonly { text?: string }[] | undefined;
  if (content?.[0]?.text !== text)
    throw new Error(error?.message ?? `an answer that is not the echo: ${JSON.stringify(result)}`);
}

function meanCpu(samples: readonly Parallel[], calls: number): number[] {
  // A pipe has no process in between.
  if (!samples.some(({ cpuMs }) => cpuMs > 0)) return [];
  return [(samples.reduce((sum, { cpuMs }) => sum + cpuMs, 0) * 1000) / (samples.length * calls)];
}
