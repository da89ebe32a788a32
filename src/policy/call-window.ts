export const WINDOW_MS = 60_000;

/**
 * The times of the last `limit` calls in a ring: at most `limit` calls in any span of 60 seconds, exactly, at constant
 * cost. Grows only as far as it is used.
 */
export class CallWindow {
  #limit: number;
  #times: number[] = [];
  /** Where the oldest time stands once the ring is full. */
  #oldest = 0;
  #newest = Number.NEGATIVE_INFINITY;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Milliseconds until a call may be made; 0 if now. */
  wait(now: number): number {
    if (this.#times.length < this.#limit) return 0;
    const oldest = this.#times[this.#oldest] ?? Number.NEGATIVE_INFINITY;
    return Math.max(0, oldest + WINDOW_MS - now);
  }

  /** The same under a smaller limit. */
  waitWithin(limit: number, now: number): number {
    const { length } = this.#times;
    if (length < limit) return 0;
    // Before it is full the ring begins at 0, so that the newest stands before `oldest` in either case.
    const time = this.#times[(this.#oldest + length - limit) % length] ?? Number.NEGATIVE_INFINITY;
    return Math.max(0, time + WINDOW_MS - now);
  }

  record(now: number): void {
    this.#newest = now;
    if (this.#times.length < this.#limit) {
      this.#times.push(now);
      return;
    }
    this.#times[this.#oldest] = now;
    this.#oldest = (this.#oldest + 1) % this.#limit;
  }

  /** Another limit; the calls made so far still count. */
  resize(limit: number): void {
    const inOrder = [...this.#times.slice(this.#oldest), ...this.#times.slice(0, this.#oldest)];
    this.#times = inOrder.slice(-limit);
    this.#oldest = 0;
    this.#limit = limit;
  }

  get quietSince(): number {
    return this.#newest;
  }
}
