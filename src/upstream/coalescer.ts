/** Runs a task once for many triggers: at once for the first, once more after a pause for all that came meanwhile. */
import type { Clock } from "../model/clock.ts";

export class Coalescer {
  readonly #clock: Clock;
  readonly #pauseMs: number;
  readonly #task: () => Promise<void>;
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  #stopPause: (() => void) | undefined;
  #again = false;

  /** @param task Must not reject. */
  constructor(clock: Clock, pauseMs: number, task: () => Promise<void>) {
    this.#clock = clock;
    this.#pauseMs = pauseMs;
    this.#task = task;
  }

  trigger(): void {
    if (this.#running === undefined && this.#stopPause === undefined) void this.#start();
    else this.#again = true;
  }

  /** Resolves after a run that began after this was called; callers that wait together share one. */
  now(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#queued ??= this.#running.then(() => {
      this.#queued = undefined;
      return this.#start();
    });
    return this.#queued;
  }

  stop(): void {
    this.#stopPause?.();
    this.#stopPause = undefined;
    this.#again = false;
  }

  #start(): Promise<void> {
    this.stop();
    const run = this.#task().then(() => {
      this.#running = undefined;
      if (this.#queued === undefined) this.#pause();
    });
    this.#running = run;
    return run;
  }

  #pause(): void {
    this.#stopPause = this.#clock.after(this.#pauseMs, () => {
      this.#stopPause = undefined;
      if (this.#again) void this.#start();
    });
  }
}
