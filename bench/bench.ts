/** What a bench gives back: times as they were on this machine, and ratios, which are what can be compared. */
export interface Row {
  readonly what: string;
  readonly p50Us: number;
  readonly p95Us: number;
  /** Its median in relation to the baseline's. */
  readonly ratio: number;
}

export interface Report {
  readonly title: string;
  /** What all ratios are in relation to; it was measured in the same run, in turns with the rest. */
  readonly baseline: string;
  readonly rows: readonly Row[];
}

export type Case = () => unknown;

/**
 * Times every case once per round, so that whatever slows the machine down slows all of them down alike.
 * @returns For each case its times in microseconds, sorted.
 */
export async function timeInTurns<Name extends string>(
  cases: Readonly<Record<Name, Case>>,
  { rounds, warmup }: { readonly rounds: number; readonly warmup: number },
): Promise<Record<Name, number[]>> {
  const entries = Object.entries<Case>(cases);
  const times: Record<string, number[]> = Object.fromEntries(entries.map(([name]) => [name, []]));
  for (let round = -warmup; round < rounds; round += 1) {
    for (const [name, run] of entries) {
      const start = performance.now();
      const running = run();
      if (running instanceof Promise) await running;
      if (round >= 0) times[name]?.push((performance.now() - start) * 1000);
    }
  }
  for (const list of Object.values(times)) list.sort((a, b) => a - b);
  return times;
}

/**
 * The same for the CPU time of this process, which other programs on the machine hardly change.
 * @param each How many of what is measured one run of a case does.
 */
export async function cpuInTurns(
  cases: Readonly<Record<string, Case>>,
  { rounds, warmup, each }: { readonly rounds: number; readonly warmup: number; readonly each: number },
): Promise<Record<string, number[]>> {
  const times: Record<string, number[]> = {};
  for (let round = -warmup; round < rounds; round += 1) {
    for (const [name, run] of Object.entries(cases)) {
      const start = process.cpuUsage();
      const running = run();
      if (running instanceof Promise) await running;
      const { user, system } = process.cpuUsage(start);
      if (round >= 0) (times[name] ??= []).push((user + system) / each);
    }
  }
  for (const list of Object.values(times)) list.sort((a, b) => a - b);
  return times;
}

export function rowOf(what: string, sorted: readonly number[], baseline: readonly number[]): Row {
  return { what, p50Us: at(sorted, 0.5), p95Us: at(sorted, 0.95), ratio: at(sorted, 0.5) / at(baseline, 0.5) };
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
