/** Medians, spreads and ratios of what was measured in rounds. */

export interface Spread {
  readonly median: number;
  /** The quartiles: half of all rounds lay between them. */
  readonly low: number;
  readonly high: number;
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), low: quantile(values, 0.25), high: quantile(values, 0.75) };
}

/**
 * How much of `base` each round of `values` was. What slowed the machine down for a while slowed both of a round down, and
 * so leaves their ratio alone.
 */
export function pairedRatio(values: readonly number[], base: readonly number[]): Spread {
  const rounds = Math.min(values.length, base.length);
  return spreadOf(Array.from({ length: rounds }, (_, round) => (values[round] ?? 0) / (base[round] ?? 0)));
}
