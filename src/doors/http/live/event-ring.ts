/** The last events, within a count and a size, so that somebody who was away can go on where they were. */
interface Kept {
  readonly seq: number;
  /** In bytes. */
  readonly size: number;
}

/** A replay is sent at once, so the size stays well below what may wait for a slow reader. */
export const RING = { events: 4096, bytes: 2 * 1024 * 1024 };

export class EventRing<Event extends Kept> {
  readonly #most: typeof RING;
  /** Oldest first, without gaps. */
  readonly #events: Event[] = [];
  /** Where the oldest is: cutting the front off each time would move everything. */
  #start = 0;
  #bytes = 0;

  constructor(most = RING) {
    this.#most = most;
  }

  add(event: Event): void {
    this.#events.push(event);
    this.#bytes += event.size;
    while (this.#count > this.#most.events || (this.#bytes > this.#most.bytes && this.#count > 0)) this.#dropOldest();
  }

  /** Oldest first. */
  after(seq: number): Event[] {
    const first = this.#events[this.#start];
    return first === undefined ? [] : this.#events.slice(this.#start + Math.max(0, seq + 1 - first.seq));
  }

  /** Number of the oldest that is still known. */
  get first(): number | undefined {
    return this.#events[this.#start]?.seq;
  }

  get #count(): number {
    return this.#events.length - this.#start;
  }

  #dropOldest(): void {
    this.#bytes -= this.#events[this.#start]?.size ?? 0;
    this.#start += 1;
    if (this.#start < 1024 && this.#start < this.#events.length) return;
    this.#events.splice(0, this.#start);
    this.#start = 0;
  }
}
