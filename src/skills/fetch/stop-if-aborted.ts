import { ToolcribError } from "../../model/errors.ts";

/** `throwIfAborted` would throw whatever the abort came with. */
export function stopIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new ToolcribError("cancelled", "Fetching the skills was interrupted.");
}
