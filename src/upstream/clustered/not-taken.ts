import { ToolcribError } from "../../model/errors.ts";

/** A place did not take a call, so that it may be given to another one: nothing was begun. */
export class NotTaken extends ToolcribError {
  /** The place said so itself: it is there, and another one follows. */
  get isMoving(): boolean {
    return this.details?.["moving"] === true;
  }
}

/** The server is leaving the place that was called. */
export function moving(id: string): NotTaken {
  return new NotTaken("server_unavailable", `Server ${JSON.stringify(id)} is moving to another node.`, {
    hint: "Try again shortly.",
    details: { server: id, sent: false, moving: true },
  });
}

/** What a call to another node was refused with: the same error, marked if nothing was begun. */
export function refusedCall(thrown: unknown): unknown {
  if (!(thrown instanceof ToolcribError) || thrown.details?.["sent"] !== false) return thrown;
  const { code, message, hint, details } = thrown;
  return code === "server_unavailable" ? new NotTaken(code, message, { hint, details, cause: thrown }) : thrown;
}
