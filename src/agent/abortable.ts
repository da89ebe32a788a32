import type { Clock } from "../base/clock.ts";
import { ToolcribError } from "../model/errors.ts";

/** Rejects as soon as the signal aborts, also where whoever was asked does not mind it; what comes of it later is dropped. */
export async function abortable<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(abortError(signal));
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    aborted.catch(() => {});
  }
}

/** Why a run was given up: the reason of its signal where that says so. */
export function abortError({ reason }: AbortSignal): ToolcribError {
  return reason instanceof ToolcribError ? reason : new ToolcribError("cancelled", "The run was cancelled.");
}

/** Rejects with `silence()` if nothing comes of it for so long; what comes later is dropped. */
export async function withSilenceTimeout<Value>(
  promise: Promise<Value>,
  { ms, clock, silence }: { readonly ms: number; readonly clock: Clock; readonly silence: () => Error },
): Promise<Value> {
  const { promise: silent, reject } = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () => reject(silence()));
  try {
    return await Promise.race([promise, silent]);
  } finally {
    cancel();
  }
}

const HOUR = 3_600_000;

/** Waits by the clock; ends early, without a word, when the signal aborts. */
export async function sleep(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
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
