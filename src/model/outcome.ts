import type { ErrorObject } from "./errors.ts";
import type { Result } from "./protocol.ts";

/** How every Call ends: exactly one of these, never an exception across the hub's edge. */
export type Outcome<R extends Result = Result> =
  | { readonly ok: true; readonly callId: string; readonly result: R }
  /** `result` is there when the tool itself answered with `isError` (code `tool_error`). */
  | { readonly ok: false; readonly callId: string; readonly error: ErrorObject; readonly result?: R };
