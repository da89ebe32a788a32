import type { Clock } from "../../model/clock.ts";

const HOUR = 3_600_000;

/** Waits by the clock; ends early, without a word, when the signal aborts. */
export async function pause(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  // The clock's timers let the process end; somebody who waits for an answer does not want that.
  const awake = setInterval(() => undefined, HOUR);
  try {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        cancel();
        signal.removeEventListener("abort", done);
        resolve();
      };
      const cancel = clock.after(ms, done);
      signal.addEventListener("abort", done, { once: true });
    });
  } finally {
    clearInterval(awake);
  }
}
