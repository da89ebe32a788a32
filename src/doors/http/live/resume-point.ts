/** From where somebody who was here before wants to go on. */
import { ToolcribError } from "../../../model/errors.ts";

export interface ResumePoint {
  /** The last number that they have. */
  readonly after: number;
  /** The run of the hub that the number belongs to; this one if absent. */
  readonly epoch?: string;
}

/** `Last-Event-ID: <epoch>:<seq>`, else `?after=<seq>&epoch=<epoch>` or `?after=<epoch>:<seq>`. */
export function resumePoint(query: URLSearchParams, lastEventId?: string): ResumePoint | undefined {
  const text = lastEventId ?? query.get("after") ?? "";
  if (text === "") return undefined;
  const [, ofId, digits] = /^(?:([\w-]{1,100}):)?(\d{1,15})$/.exec(text) ?? [];
  if (digits === undefined) {
    throw new ToolcribError("invalid_arguments", "`after` must be the number of an event.", {
      hint: "Leave it out to get what happens from now on.",
    });
  }
  const epoch = ofId ?? query.get("epoch") ?? undefined;
  return { after: Number(digits), epoch };
}

export function eventId(epoch: string, seq: number): string {
  return `${epoch}:${seq}`;
}
