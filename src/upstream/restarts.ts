/** Counts restarts in a row and says how long to wait before the next one. */
import type { Clock } from "../model/clock.ts";
import type { ServerSpec } from "../model/server-spec.ts";

/** A server that has been up for this long gets a fresh count. */
const STABLE_MS = 60_000;

export interface NextRestart {
  /** 1 for the first in a row. */
  readonly attempt: number;
  readonly delayMs: number;
}

export class Restarts {
  readonly #rule: () => ServerSpec["restart"];
  readonly #clock: Clock;
  #used = 0;
  #stopWatching: () => void = () => {};

  constructor(rule: () => ServerSpec["restart"], clock: Clock) {
    this.#rule = rule;
    this.#clock = clock;
  }

  /** Null when there is none left. */
  next(): NextRestart | null {
    const rule = this.#rule();
    if (rule === false || this.#used >= rule.max) return null;
    const delayMs = Math.min(rule.initialDelay * 2 ** this.#used, rule.maxDelay);
    this.#used++;
    return { attempt: this.#used, delayMs };
  }

  /** The server came up: the count is forgotten if it stays up. */
  up(): void {
    this.#stopWatching();
    this.#stopWatching = this.#clock.after(STABLE_MS, () => this.reset());
  }

  down(): void {
    this.#stopWatching();
  }

  reset(): void {
    this.#stopWatching();
    this.#used = 0;
  }
}
