/** Characters that a reader does not see but a model reads, made visible. */

/**
 * Controls, formats, fillers, variation selectors, lone surrogates and private use: what no font shows as itself.
 * Tab and newlines are layout and stay.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Variation_Selector}\u034f\u115f\u1160\u2028\u2029\u2800\u3164\uffa0]/gu;

const EXCERPT_LENGTH = 160;

/** `a\u200bb` becomes `a\u{200B}b`. A joiner between the parts of an emoji and the like is shown too. */
export function showHidden(text: string): string {
  return text.replace(HIDDEN, (character) =>
    character === "\n" || character === "\t" || character === "\r" ? character : codePointText(character),
  );
}

/** The span on one line, shortened in the middle of nothing: its start is what a reader recognises. */
export function excerptOf(text: string, start: number, end: number): string {
  const cut = end - start > EXCERPT_LENGTH;
  const shown = showHidden(text.slice(start, cut ? start + EXCERPT_LENGTH : end)).replace(/\s+/g, " ");
  if (shown.length <= EXCERPT_LENGTH) return cut ? `${shown}…` : shown;
  return `${shown.slice(0, EXCERPT_LENGTH)}…`;
}

function codePointText(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}}`;
}
