/** A suspicious place in a text, as a person is shown it. */
import { showHidden } from "../../base/visible-text.ts";

export { showHidden };

const EXCERPT_LENGTH = 160;

/** The span on one line, shortened in the middle of nothing: its start is what a reader recognises. */
export function excerptOf(text: string, start: number, end: number): string {
  const cut = end - start > EXCERPT_LENGTH;
  const shown = showHidden(text.slice(start, cut ? start + EXCERPT_LENGTH : end)).replace(/\s+/g, " ");
  if (shown.length <= EXCERPT_LENGTH) return cut ? `${shown}…` : shown;
  return `${shown.slice(0, EXCERPT_LENGTH)}…`;
}
