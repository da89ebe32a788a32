/** Waiting inside a run of the agent: the run's signal ends every wait. */
import { pause, withAbort } from "../base/async.ts";
import type { Clock } from "../base/clock.ts";
import { ToolcribError } from "../model/errors.ts";

const HOUR_MS = 3_600_000;

/** Rejects as soon as the signal aborts, even if the work ignores it. */
export function abortable<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return withAbort(work, signal, () => abortError(signal));
}

/** The reason of the signal where it is one of ours; otherwise the run was cancelled. */
export function abortError({ reason }: AbortSignal): ToolcribError {
  return reason instanceof ToolcribError ? reason : new ToolcribError("cancelled", "The run was cancelled.");
}

/** Ends early when the signal aborts. Keeps the process alive, which the clock's timers do not. */
export async function sleep(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  const keepAlive = setInterval(() => undefined, HOUR_MS);
  try {
    await pause(ms, { clock, signal });
  } finally {
    clearInterval(keepAlive);
  }
}
