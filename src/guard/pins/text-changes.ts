/** A text as it was and as it is, with the words marked that differ: `[-old-]` and `{+new+}`. */
import { diffSequences, type Step } from "../../model/sequence-diff.ts";
import { showHidden } from "../detect/show-hidden.ts";

/** Above this many words the table of common ones would be large; then old and new stand whole. */
const MAX_WORDS = 1500;
/** Unchanged words that are kept around a change. */
const CONTEXT = 6;

/** One or more lines. Characters that nobody sees are written as `\u{…}`, so that a hidden addition shows. */
export function renderTextChange(before: string, after: string): string[] {
  const old = words(before);
  const fresh = words(after);
  if (old.length > MAX_WORDS || fresh.length > MAX_WORDS) {
    return [...linesOf(before).map((line) => `- ${line}`), ...linesOf(after).map((line) => `+ ${line}`)];
  }
  const runs = joined(diffSequences(old, fresh));
  return linesOf(runs.map((run, index) => renderRun(run, index === 0, index === runs.length - 1)).join(""));
}

function renderRun({ kind, text }: Step, isFirst: boolean, isLast: boolean): string {
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

/** Neighbours of one kind as one run. */
function joined(runs: readonly Step[]): Step[] {
  const result: Step[] = [];
  for (const run of runs) {
    const last = result.at(-1);
    if (last?.kind === run.kind) result[result.length - 1] = { kind: run.kind, text: last.text + run.text };
    else result.push(run);
  }
  return result;
}
