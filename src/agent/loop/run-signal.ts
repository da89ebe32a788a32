/** What ends a run early: the caller, the end of its session, whoever stops reading its events. */
import { ToolcribError } from "../../model/errors.ts";
import type { Session } from "../../sessions/session.ts";

export interface RunSignal {
  readonly signal: AbortSignal;
  abort(): void;
  /** Lets go of the others' signals, which outlive the run. */
  dispose(): void;
}

export function runSignal(callers: AbortSignal | undefined, session: Session): RunSignal {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const closed = (): void => controller.abort(sessionClosed());
  if (session.closed) closed();
  else if (callers?.aborted === true) abort();
  session.closing.addEventListener("abort", closed, { once: true });
  callers?.addEventListener("abort", abort, { once: true });
  return {
    signal: controller.signal,
    abort,
    dispose() {
      session.closing.removeEventListener("abort", closed);
      callers?.removeEventListener("abort", abort);
    },
  };
}

function sessionClosed(): ToolcribError {
  return new ToolcribError("server_unavailable", "The session of the agent is closed.", {
    hint: "Make a new agent; it can go on with the same conversation.",
  });
}
