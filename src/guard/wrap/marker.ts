/** The words of the boundary around untrusted text, and every spelling of them that a model could take for ours. */
import { type NormalText, normalise } from "../detect/normalise.ts";

export const MARKER = "UNTRUSTED_TOOL_RESULT";

/** The marker's letters alone: separators, case, accents and look-alikes are folded away before comparing. */
const LETTERS = MARKER.toLowerCase().replace(/[^a-z]/g, "");
const DIGITS: Readonly<Record<string, string>> = { "0": "o", "1": "l", "3": "e", "4": "a", "5": "s", "7": "t" };
const REPLACEMENT = "[forged marker]";

/** Whether some spelling of the marker stands in the text. */
export function hasMarker(text: string): boolean {
  return lettersOf(normalise(text).text).includes(LETTERS);
}

/** Every spelling of the marker becomes a visible note. The rest of the text stays as it is. */
export function withoutMarkers(text: string): string {
  const normal = normalise(text);
  if (!lettersOf(normal.text).includes(LETTERS)) return text;
  const parts: string[] = [];
  let from = 0;
  for (const { start, end } of markerSpans(text, normal)) {
    parts.push(text.slice(from, start), REPLACEMENT);
    from = end;
  }
  parts.push(text.slice(from));
  return parts.join("");
}

function lettersOf(plain: string): string {
  return plain.replace(/[013457]/g, (digit) => DIGITS[digit] ?? digit).replace(/[^a-z]+/g, "");
}

function markerSpans(text: string, normal: NormalText): { start: number; end: number }[] {
  const plain = normal.text;
  // Index in the plain text of each letter that `lettersOf` keeps.
  const places = new Uint32Array(plain.length);
  let count = 0;
  for (let at = 0; at < plain.length; at += 1) {
    const unit = plain[at] ?? "";
    const letter = DIGITS[unit] ?? unit;
    if (letter >= "a" && letter <= "z") {
      places[count] = at;
      count += 1;
    }
  }
  const letters = lettersOf(plain);
  const spans: { start: number; end: number }[] = [];
  for (let found = letters.indexOf(LETTERS); found !== -1; found = letters.indexOf(LETTERS, found + LETTERS.length)) {
    const start = normal.originalAt(places[found] ?? 0);
    const last = normal.originalAt(places[found + LETTERS.length - 1] ?? 0);
    const width = (text.codePointAt(last) ?? 0) > 0xffff ? 2 : 1;
    const before = spans.at(-1);
    // One character can fold into letters of two markers; the spans must not cross.
    if (before !== undefined && start < before.end) before.end = Math.max(before.end, last + width);
    else spans.push({ start, end: last + width });
  }
  return spans;
}
