/** One look-up under way that several connections may wait for; ended when the last of them gives up. */
import type { Clock } from "../model/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import { SecretFailure } from "./provider.ts";

/** How long a provider may take. */
const TIMEOUT_MS = 10_000;

export class Flight {
  /** Counts all look-ups of a Secrets, so that an older value can be told from a newer one. */
  readonly number: number;
  readonly value: Promise<string>;
  readonly #controller = new AbortController();
  #waiting = 0;
  #settled = false;

  constructor(number: number, clock: Clock, run: (signal: AbortSignal) => Promise<string>) {
    this.number = number;
    const { signal } = this.#controller;
    this.value = new Promise<string>((resolve, reject) => {
      // Not left to the provider: one that ignores the signal must not hold up a connection.
      const stop = clock.after(TIMEOUT_MS, () => {
        reject(new SecretFailure(`was not given within ${TIMEOUT_MS / 1000} s`, { passing: true }));
        this.#controller.abort();
      });
      signal.addEventListener("abort", () => reject(new SecretFailure("was given up", { passing: true })), {
        once: true,
      });
      const settle = (): void => {
        this.#settled = true;
        stop();
      };
      // Waits a turn, so that a provider that throws at once fails like the others.
      void Promise.resolve()
        .then(() => run(signal))
        .then(resolve, reject)
        .finally(settle);
    });
    // Those who wait hear of a failure; where nobody waits any more it is nobody's.
    this.value.catch(() => {});
  }

  /** No longer worth joining. */
  get abandoned(): boolean {
    return this.#controller.signal.aborted;
  }

  join(signal: AbortSignal | undefined): Promise<string> {
    if (signal?.aborted === true) return Promise.reject(givenUp());
    this.#waiting++;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting--;
        if (this.#waiting === 0 && !this.#settled) this.#controller.abort();
        reject(givenUp());
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.value.then(resolve, reject).finally(() => signal?.removeEventListener("abort", leave));
    });
  }
}

function givenUp(): ToolcribError {
  return new ToolcribError("cancelled", "Looking up a secret was cancelled.");
}
