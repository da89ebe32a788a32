import { ToolcribError } from "../../model/errors.ts";

/** Rejects as soon as the signal aborts, also where whoever was asked does not mind it; what comes of it later is dropped. */
export async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
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
