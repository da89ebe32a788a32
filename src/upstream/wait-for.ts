import type { Clock } from "../model/clock.ts";
import { ToolcribError } from "../model/errors.ts";

interface WaitLimits {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Waits for something that goes on without us, no longer than this. */
export function waitFor<T>(work: Promise<T>, { clock, timeoutMs, signal }: WaitLimits): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (error: ToolcribError): void => {
      stopTimer();
      signal.removeEventListener("abort", onAbort);
      reject(error);
    };
    const onAbort = (): void => giveUp(new ToolcribError("cancelled", "The call was cancelled by the caller."));
    const text = "The server did not become ready in time.";
    const stopTimer = clock.after(timeoutMs, () =>
      giveUp(new ToolcribError("timeout", text, { details: { sent: false } })),
    );
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => {
      stopTimer();
      signal.removeEventListener("abort", onAbort);
    });
  });
}
