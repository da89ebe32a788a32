/** A line diff for `--dry-run`. Config files are short, so the plain table of common lines is quick enough. */

const CONTEXT = 2;
/** Above this the table would be large; then everything is shown as replaced. */
const MAX_LINES = 3000;

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
  const removed = (text: string): Line => ({ sign: "-", text });
  const added = (text: string): Line => ({ sign: "+", text });
  if (before.length > MAX_LINES || after.length > MAX_LINES) return [...before.map(removed), ...after.map(added)];
  const common = commonLengths(before, after);
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < before.length && j < after.length) {
    const [old = "", fresh = ""] = [before[i], after[j]];
    if (old === fresh) {
      lines.push({ sign: " ", text: old });
      i += 1;
      j += 1;
    } else if ((common[i + 1]?.[j] ?? 0) >= (common[i]?.[j + 1] ?? 0)) {
      lines.push(removed(old));
      i += 1;
    } else {
      lines.push(added(fresh));
      j += 1;
    }
  }
  return [...lines, ...before.slice(i).map(removed), ...after.slice(j).map(added)];
}

/** At [i][j]: how many lines `before` from i and `after` from j have in common, in order. */
function commonLengths(before: readonly string[], after: readonly string[]): Uint16Array[] {
  const table = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    const [row, below] = [table[i], table[i + 1]];
    if (row === undefined || below === undefined) continue;
    for (let j = after.length - 1; j >= 0; j -= 1) {
      row[j] = before[i] === after[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
    }
  }
  return table;
}
