/** The way back from a text to the one before it, byte by byte, for as long as nobody else has changed it. */
import { createHash } from "node:crypto";

export interface TextPatch {
  /** sha256 of the text that the patch can be taken out of. */
  readonly after: string;
  /** Where the two texts begin to differ. */
  readonly start: number;
  /** How much stands there now. */
  readonly length: number;
  /** What stood there before. */
  readonly removed: string;
}

export function patchBetween(before: string, after: string): TextPatch {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let tail = 0;
  while (tail < shorter - start && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  return {
    after: digestOf(after),
    start,
    length: after.length - start - tail,
    removed: before.slice(start, before.length - tail),
  };
}

/** The text before; undefined if this is not the text that the patch was made for. */
export function revert(text: string, { after, start, length, removed }: TextPatch): string | undefined {
  if (digestOf(text) !== after) return undefined;
  return text.slice(0, start) + removed + text.slice(start + length);
}

export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
