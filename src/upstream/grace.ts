/** How long a server that has failed for good is still listed. */
import type { Clock } from "../model/clock.ts";

export const DEFAULT_GRACE_MS = 5 * 60_000;

export class Grace {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #onOver: () => void;
  #earned = false;
  #endsAt: number | undefined;
  #stopTimer: () => void = () => {};

  constructor(clock: Clock, ms: number, onOver: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#onOver = onOver;
  }

  /** The server is ready: the next failure has the whole time. */
  earn(): void {
    this.forget();
    this.#earned = true;
  }

  /** The server has failed. The time goes on from the first failure, so that vain attempts do not prolong it. */
  begin(): void {
    if (!this.#earned) return this.#onOver();
    const now = this.#clock.now();
    this.#endsAt ??= now + this.#ms;
    this.#stopTimer();
    this.#stopTimer = this.#clock.after(Math.max(this.#endsAt - now, 0), () => {
      this.forget();
      this.#onOver();
    });
  }

  /** An attempt is under way; what comes of it decides. */
  hold(): void {
    this.#stopTimer();
  }

  forget(): void {
    this.#stopTimer();
    this.#earned = false;
    this.#endsAt = undefined;
  }
}
