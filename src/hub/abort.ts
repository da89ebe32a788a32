/** The AbortSignal of one call: ends with the caller's own, or with the session. */
import type { CancelSignal } from "../model/cancel.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Session } from "../sessions/session.ts";

export interface CallSignal {
  readonly signal: AbortSignal;
  /** Lets go of both. A long-lived signal that serves many calls must not collect listeners. */
  dispose(): void;
}

/**
 * AbortSignal.any would do, but it keeps a weak entry on each source until garbage collection. The session keeps a set
 * instead of being listened to, because removing one of thousands of listeners means looking for it.
 */
export function callSignal(callers: CancelSignal | undefined, session: Session): CallSignal {
  const controller = new AbortController();
  const { signal } = controller;
  const abort = (): void => controller.abort(callers?.reason);
  if (session.closed) controller.abort();
  else if (callers?.aborted === true) abort();
  else {
    session.running.add(controller);
    callers?.addEventListener("abort", abort, { once: true });
  }
  return {
    signal,
    dispose() {
      session.running.delete(controller);
      callers?.removeEventListener("abort", abort);
    },
  };
}

/** Why a call was given up is its caller's to say, as with a time that ran out: it is the reason of its signal. */
export function givenUpFor(error: ToolcribError, { reason }: AbortSignal): ToolcribError {
  return error.code === "cancelled" && reason instanceof ToolcribError ? reason : error;
}
