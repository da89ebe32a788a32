/** Gives others a turn whenever some time was spent, so that a long scan does not hold up the process. */
import { setImmediate } from "node:timers/promises";

/** Milliseconds. Steps between two looks at the clock may be as long again. */
const SPENT = 20;

export class Turns {
  readonly #now: () => number;
  #since: number;

  /** @param now milliseconds from any start */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#since = now();
  }

  /** Cheap when there is nothing to give. */
  isDue(): boolean {
    return this.#now() - this.#since >= SPENT;
  }

  async give(): Promise<void> {
    await setImmediate();
    this.#since = this.#now();
  }

  /** Runs steps to their end. */
  async run<Result>(steps: Generator<undefined, Result>): Promise<Result> {
    let next = steps.next();
    while (next.done !== true) {
      if (this.isDue()) await this.give();
      next = steps.next();
    }
    return next.value;
  }
}
