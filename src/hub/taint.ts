import type { CallInProgress, CallPath } from "./call-path.ts";
import type { Target } from "./target.ts";

/** From now on the session holds content that anyone may have written. */
export function taint(path: CallPath, { id, session, startedAt }: CallInProgress, { capability }: Target): void {
  if (session.taint !== null || path.isTrusted(capability.origin.source) || !path.gate.isOpenWorld(capability)) return;
  session.markTainted({ callId: id, name: capability.name, at: startedAt });
}
