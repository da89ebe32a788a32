/**
 * A regular beat by which this node finds out that others are silent. A process that was paused must not blame the others
 * for that time: a beat that comes late says by how much.
 */
import type { Clock } from "../base/clock.ts";

export class PauseAwareTimer {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #beat: (pausedMs: number) => void;
  #last = performance.now();
  #cancel: () => void;

  constructor(clock: Clock, everyMs: number, beat: (pausedMs: number) => void) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#beat = beat;
    this.#cancel = this.#next();
  }

  /** How long this process has just stood still. A process that wakes up reads its sockets before its timers run. */
  get pausedMs(): number {
    const late = performance.now() - this.#last - this.#everyMs;
    return late > this.#everyMs ? late : 0;
  }

  stop(): void {
    this.#cancel();
  }

  #next(): () => void {
    return this.#clock.after(this.#everyMs, () => {
      const { pausedMs } = this;
      this.#last = performance.now();
      this.#cancel = this.#next();
      this.#beat(pausedMs);
    });
  }
}
