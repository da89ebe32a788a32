import { ToolcribError } from "../../model/errors.ts";

export function interrupted(): ToolcribError {
  return new ToolcribError("cancelled", "The install was interrupted; everything is as it was before.");
}

export function stopIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw interrupted();
}
