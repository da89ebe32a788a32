/** The best few of many, without sorting the many. */

interface Scored {
  readonly item: number;
  readonly score: number;
}

export class TopList {
  readonly #limit: number;
  /** Best first; equals by item number. */
  readonly #entries: Scored[] = [];

  constructor(limit: number) {
    this.#limit = Math.max(0, Math.floor(limit));
  }

  offer(item: number, score: number): void {
    const entries = this.#entries;
    if (entries.length >= this.#limit) {
      const last = entries.at(-1);
      if (last === undefined || !comesBefore(item, score, last)) return;
      entries.pop();
    }
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = entries[middle];
      if (entry !== undefined && comesBefore(item, score, entry)) high = middle;
      else low = middle + 1;
    }
    entries.splice(low, 0, { item, score });
  }

  entries(): readonly Scored[] {
    return this.#entries;
  }
}

function comesBefore(item: number, score: number, other: Scored): boolean {
  return score > other.score || (score === other.score && item < other.item);
}
