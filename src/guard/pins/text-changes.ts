/** A text as it was and as it is, with the words marked that differ: `[-old-]` and `{+new+}`. */
import { showHidden } from "../detect/show-hidden.ts";

/** Above this many words the table of common ones would be large; then old and new stand whole. */
const MAX_WORDS = 1500;
/** Unchanged words that are kept around a change. */
const CONTEXT = 6;

interface Run {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** One or more lines. Characters that nobody sees are written as `\u{…}`, so that a hidden addition shows. */
export function renderTextChange(before: string, after: string): string[] {
  const old = words(before);
  const fresh = words(after);
  if (old.length > MAX_WORDS || fresh.length > MAX_WORDS) {
    return [...linesOf(before).map((line) => `- ${line}`), ...linesOf(after).map((line) => `+ ${line}`)];
  }
  const runs = joined(compare(old, fresh));
  return linesOf(runs.map((run, index) => renderRun(run, index === 0, index === runs.length - 1)).join(""));
}

function renderRun({ kind, text }: Run, isFirst: boolean, isLast: boolean): string {
  if (kind === "removed") return `[-${text}-]`;
  if (kind === "added") return `{+${text}+}`;
  const parts = words(text);
  if (parts.length <= 2 * CONTEXT + 1) return text;
  const head = isFirst ? "" : parts.slice(0, CONTEXT).join("");
  const tail = isLast ? "" : parts.slice(-CONTEXT).join("");
  return `${head} … ${tail}`;
}

/** Words, each with the blanks after it, so that joining them gives the text again. */
function words(text: string): string[] {
  return text.match(/\S+\s*|\s+/g) ?? [];
}

/** A carriage return is shown too: alone it would let a line overwrite itself on a terminal. */
function linesOf(text: string): string[] {
  return text.split("\n").map((line) => showHidden(line).replaceAll("\r", "\\u{000D}"));
}

function compare(before: readonly string[], after: readonly string[]): Run[] {
  const common = commonLengths(before, after);
  const runs: Run[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const [old, fresh] = [before[i], after[j]];
    if (old !== undefined && old === fresh) {
      runs.push({ kind: "same", text: old });
      i += 1;
      j += 1;
    } else if (old !== undefined && (fresh === undefined || (common[i + 1]?.[j] ?? 0) >= (common[i]?.[j + 1] ?? 0))) {
      runs.push({ kind: "removed", text: old });
      i += 1;
    } else {
      runs.push({ kind: "added", text: fresh ?? "" });
      j += 1;
    }
  }
  return runs;
}

/** Neighbours of one kind as one run. */
function joined(runs: readonly Run[]): Run[] {
  const result: Run[] = [];
  for (const run of runs) {
    const last = result.at(-1);
    if (last?.kind === run.kind) result[result.length - 1] = { kind: run.kind, text: last.text + run.text };
    else result.push(run);
  }
  return result;
}

/** At [i][j]: how many words `before` from i and `after` from j have in common, in order. */
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
