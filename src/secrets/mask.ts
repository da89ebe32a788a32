/** What stands where a secret stood. */
export const MASK = "[redacted]";

/** Replaces the span that `spanOf` gives for each match; where it gives none, the search goes on behind the match. */
export function maskEach(
  text: string,
  pattern: RegExp,
  spanOf: (match: RegExpExecArray, text: string) => readonly [start: number, end: number] | undefined,
): string {
  let masked = "";
  let position = 0;
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const span = spanOf(match, text);
    if (span === undefined) continue;
    masked += text.slice(position, span[0]) + MASK;
    position = span[1];
    pattern.lastIndex = position;
  }
  return position === 0 ? text : masked + text.slice(position);
}
