/** A line diff for `--dry-run`. Config files are short, so the plain table of common lines is quick enough. */
import { diffSequences } from "../model/sequence-diff.ts";

const CONTEXT = 2;
/** Above this the table would be large; then everything is shown as replaced. */
const MAX_LINES = 3000;

const SIGNS = { same: " ", removed: "-", added: "+" } as const;

interface Line {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

/** Lines with `-`, `+` or a blank in front, with a little around each change; empty where nothing differs. */
export function diffLines(before: string, after: string): string[] {
  if (before === after) return [];
  const lines = compare(splitLines(before), splitLines(after));
  const shown: string[] = [];
  let lastShown = -1;
  for (const [index, line] of lines.entries()) {
    if (!isNearChange(lines, index)) continue;
    if (lastShown !== index - 1 && shown.length > 0) shown.push("  …");
    shown.push(`${line.sign} ${line.text}`.trimEnd());
    lastShown = index;
  }
  return shown;
}

function splitLines(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function isNearChange(lines: readonly Line[], index: number): boolean {
  return lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some((line) => line.sign !== " ");
}

function compare(before: readonly string[], after: readonly string[]): Line[] {
  if (before.length > MAX_LINES || after.length > MAX_LINES) {
    return [...before.map((text): Line => ({ sign: "-", text })), ...after.map((text): Line => ({ sign: "+", text }))];
  }
  return diffSequences(before, after).map(({ kind, text }) => ({ sign: SIGNS[kind], text }));
}
