/** Waiting for something to be seen, by whoever sees it next. */
import type { Clock } from "../../model/clock.ts";
import { Emitter } from "../../model/emitter.ts";
import { ToolcribError } from "../../model/errors.ts";

export class LookOut {
  readonly #clock: Clock;
  readonly #looks = new Emitter<{ look: undefined }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** There is something new to see. */
  look(): void {
    this.#looks.emit("look", undefined);
  }

  /** Resolves when it is so, or after this time. */
  until(isSo: () => boolean, limitMs: number): Promise<void> {
    if (isSo()) return Promise.resolve();
    return new Promise((resolve) => {
      const finish = (): void => {
        stopTimer();
        stopLooking();
        resolve();
      };
      const stopTimer = this.#clock.after(limitMs, finish);
      const stopLooking = this.#looks.on("look", () => {
        if (isSo()) finish();
      });
    });
  }

  /** Resolves with the next look, or after this time; rejects when the signal is aborted. */
  async next(limitMs: number, signal: AbortSignal): Promise<void> {
    const abort = (): void => this.look();
    signal.addEventListener("abort", abort, { once: true });
    let isFirst = true;
    const isNext = (): boolean => {
      const isOver = !isFirst || signal.aborted;
      isFirst = false;
      return isOver;
    };
    await this.until(isNext, limitMs);
    signal.removeEventListener("abort", abort);
    if (signal.aborted) throw new ToolcribError("cancelled", "The call was cancelled by the caller.");
  }
}
