import type { Clock } from "../base/clock.ts";

/** False if the time was up, or the signal aborted, first. */
export async function waitAtMost(
  work: Promise<unknown>,
  { clock, ms, signal }: { readonly clock: Clock; readonly ms: number; readonly signal: AbortSignal },
): Promise<boolean> {
  let release = (): void => {};
  const over = new Promise<boolean>((resolve) => {
    const giveUp = (): void => resolve(false);
    const stopTimer = clock.after(ms, giveUp);
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    release = () => {
      stopTimer();
      signal.removeEventListener("abort", giveUp);
    };
  });
  try {
    return await Promise.race([work.then(() => true), over]);
  } finally {
    release();
  }
}
