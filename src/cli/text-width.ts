/** How many terminal cells a text takes. Names and descriptions come from servers, so wide and odd characters occur. */
import { terminalText } from "../model/visible-text.ts";

const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;

/** Ranges that terminals draw two cells wide; rough, and good enough to keep columns straight. */
const WIDE_RANGES: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1faff],
  [0x20000, 0x3fffd],
];

function characterWidth(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x300) return 1;
  if (ZERO_WIDTH.test(character)) return 0;
  return WIDE_RANGES.some(([from, to]) => code >= from && code <= to) ? 2 : 1;
}

export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** Cuts to at most `width` cells; a cut is shown by an ellipsis. */
export function clip(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let clipped = "";
  let used = 0;
  for (const character of text) {
    used += characterWidth(character);
    if (used > width - 1) break;
    clipped += character;
  }
  return `${clipped.trimEnd()}…`;
}

export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

/** The first line that says something, for a table cell. */
export function firstLine(text: string): string {
  const line = terminalText(text)
    .split("\n")
    .find((candidate) => candidate.trim() !== "");
  return (line ?? "").replaceAll("\t", " ").trim();
}
