/** For tests of backoff, limits and timeouts that do not wait. */
import type { Clock } from "../base/clock.ts";

interface Timer {
  readonly at: number;
  readonly task: () => void;
}

/** Time that stands still until it is advanced; timers that come due run in order. */
export class ManualClock implements Clock {
  #now = 1_000_000;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  after(ms: number, task: () => void): () => void {
    const timer = { at: this.#now + ms, task };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Work that timers start gets a few turns of the event loop before the next timer is looked at. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.at <= end).toSorted((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#now = Math.max(this.#now, due.at);
      due.task();
      await settle();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets promises and immediate work run. */
export async function settle(turns = 5): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}
