/** The hub session that a caller of REST or of the WebSocket gets. */
import type { Caller } from "../../model/caller.ts";
import type { SessionOptions } from "../../sessions/session.ts";

export interface SessionExtras {
  /** The command that says yes to a call that waits for it; without it such calls are denied. */
  readonly approveCommand?: (approvalId: string) => string;
}

export function callerSession(
  { owner, role, user, scopes }: Caller,
  door: "rest" | "websocket",
  { approveCommand }: SessionExtras,
): SessionOptions {
  return {
    door,
    owner,
    // Somebody without a token may be a program that was made to call: it changes nothing that lasts.
    decidesForAll: scopes.has("admin"),
    ...(role === undefined ? {} : { role }),
    ...(user === undefined ? {} : { user }),
    ...(approveCommand === undefined ? {} : { approveCommand }),
  };
}
