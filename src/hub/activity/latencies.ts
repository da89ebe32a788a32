/** Durations in a fixed number of counters, each a fifth wider than the one before: percentiles without keeping the values. */

const GROWTH = Math.log(1.2);
/** The last one takes everything from about an hour on. */
const BUCKETS = 86;

export class Latencies {
  readonly #counts = new Uint32Array(BUCKETS);
  #total = 0;

  add(ms: number): void {
    // Below a millisecond nothing is told apart.
    const bucket = ms < 1 ? 0 : Math.min(BUCKETS - 1, 1 + Math.floor(Math.log(ms) / GROWTH));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#total += 1;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#total = 0;
  }

  /** In whole milliseconds, a tenth off at most; null where there is nothing. */
  quantile(share: number): number | null {
    if (this.#total === 0) return null;
    const rank = Math.max(1, Math.ceil(share * this.#total));
    let seen = 0;
    for (const [bucket, count] of this.#counts.entries()) {
      seen += count;
      if (seen >= rank) return bucket === 0 ? 0 : Math.round(Math.exp((bucket - 0.5) * GROWTH));
    }
    return null;
  }
}
