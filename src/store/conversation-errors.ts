/** What everything that keeps conversations says when a message cannot be added. */
import { ToolcribError } from "../model/errors.ts";

export function conversationNotThere(id: string): ToolcribError {
  return new ToolcribError("not_found", `The conversation ${id} is not there, or no longer.`, {
    hint: "It was removed. Begin a new one.",
    details: { conversation: id },
  });
}

export function conversationWrittenElsewhere(id: string, known: number, found: number): ToolcribError {
  return new ToolcribError(
    "conflict",
    `The conversation ${id} was continued elsewhere: it has ${found} messages, and ${known} are known here.`,
    { hint: "Open it again to go on with what was said there.", details: { conversation: id, known, found } },
  );
}
