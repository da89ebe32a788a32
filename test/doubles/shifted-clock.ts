import { type Clock, systemClock } from "../../src/base/clock.ts";

/** Real time that a test can move on, so that tokens end while sockets and timers work as always. */
export class ShiftedClock implements Clock {
  #shift = 0;

  now(): number {
    return systemClock.now() + this.#shift;
  }

  after(ms: number, task: () => void): () => void {
    return systemClock.after(ms, task);
  }

  shift(ms: number): void {
    this.#shift += ms;
  }
}
