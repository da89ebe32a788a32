/** What became of every request. Each must end exactly once. */

/** How a request may end, and how it may not. */
export const GOOD = ["answered", "unavailable", "timeout", "cancelled", "disconnected"] as const;
export const BAD = ["wrong", "lost", "hung", "doubled", "ran twice"] as const;
export type End = (typeof GOOD)[number] | (typeof BAD)[number];

const EXAMPLES = 5;

export class Tally {
  readonly #counts = new Map<End, number>();
  readonly #open = new Map<string, number>();
  readonly #ended = new Set<string>();
  /** The first few of what should not have been. */
  readonly examples: string[] = [];
  begun = 0;

  begin(id: string): void {
    this.begun += 1;
    this.#open.set(id, performance.now());
  }

  end(id: string, end: End, why = ""): void {
    if (this.#ended.has(id)) return this.count("doubled", `${id} ended twice, then as ${end}`);
    this.#ended.add(id);
    this.#open.delete(id);
    this.count(end, `${id}: ${why}`);
  }

  /** What is noticed apart from the end of a request. */
  count(end: End, why: string): void {
    this.#counts.set(end, this.of(end) + 1);
    const isBad = BAD.some((one) => one === end);
    if (isBad && this.examples.length < EXAMPLES) this.examples.push(`${end}: ${why}`);
  }

  of(end: End): number {
    return this.#counts.get(end) ?? 0;
  }

  get open(): number {
    return this.#open.size;
  }

  /** Counts what is still open after everybody had time to end as hung. */
  closeOpen(): void {
    for (const [id, since] of this.#open) {
      this.end(id, "hung", `no end after ${Math.round(performance.now() - since)} ms`);
    }
  }

  get bad(): number {
    return BAD.reduce((sum, end) => sum + this.of(end), 0);
  }
}
