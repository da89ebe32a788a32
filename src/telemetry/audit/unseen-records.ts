/** What was written since the file was last seen in its place, and how far the chain was then. */
import type { ChainPosition } from "./chain-files.ts";

export class UnseenRecords {
  #bodies: string[] = [];
  #length = 0;
  #since: ChainPosition = { seq: 0, prev: null };

  /** Of all their texts together. */
  get length(): number {
    return this.#length;
  }

  get since(): ChainPosition {
    return this.#since;
  }

  add(bodies: readonly string[]): void {
    for (const body of bodies) {
      this.#length += body.length;
      this.#bodies.push(body);
    }
  }

  /** All of them, which are unseen no longer. */
  take(position: ChainPosition): string[] {
    const bodies = this.#bodies;
    this.#bodies = [];
    this.#length = 0;
    this.#since = position;
    return bodies;
  }
}
