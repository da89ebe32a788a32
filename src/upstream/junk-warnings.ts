/** Warnings about unusable output, few enough to read: a server may write a million lines of it. */
import type { Clock } from "../model/clock.ts";

const BURST = 5;
const WINDOW_MS = 60_000;
const SAMPLE_CHARACTERS = 120;

export class JunkWarnings {
  readonly #clock: Clock;
  readonly #warn: (text: string) => void;
  #windowStart = Number.NEGATIVE_INFINITY;
  #shown = 0;
  #left = 0;

  constructor(clock: Clock, warn: (text: string) => void) {
    this.#clock = clock;
    this.#warn = warn;
  }

  /** At most five a minute; the next one after a pause says how many were left out. */
  add(what: string, sample?: string): void {
    const now = this.#clock.now();
    if (now - this.#windowStart >= WINDOW_MS) {
      this.#windowStart = now;
      this.#shown = 0;
    }
    if (this.#shown === BURST) {
      this.#left++;
      return;
    }
    this.#shown++;
    const left = this.#left === 0 ? "" : ` (and ${this.#left} before it that were not shown)`;
    this.#left = 0;
    this.#warn(`${what}${left}${sample === undefined ? "" : `: ${shorten(sample)}`}`);
  }
}

function shorten(sample: string): string {
  const text = JSON.stringify(sample.slice(0, SAMPLE_CHARACTERS));
  return sample.length > SAMPLE_CHARACTERS ? `${text}…` : text;
}
