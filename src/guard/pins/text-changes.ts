/** A text as it was and as it is, with the words marked that differ: `[-old-]` and `{+new+}`. */
import { diffSequences, type Step } from "../../model/sequence-diff.ts";
import { showHidden } from "../detect/show-hidden.ts";

/** Above this many words the table of common ones would be large; then old and new are shown whole. */
const MAX_WORDS = 1500;
/** Unchanged words that are kept around a change. */
const CONTEXT = 6;

/** Of a text that is not compared word by word, from where it differs. */
const MAX_LENGTH = 10_000;

/** A budget for comparing: each word of one text with each of the other. */
export interface DiffBudget {
  pairs: number;
}

/** One or more lines. Characters that nobody sees are written as `\u{…}`, so that a hidden addition shows. */
export function renderTextChange(before: string, after: string, budget: DiffBudget): string[] {
  const old = words(before);
  const fresh = words(after);
  const pairs = old.length * fresh.length;
  if (old.length > MAX_WORDS || fresh.length > MAX_WORDS || pairs > budget.pairs) return renderWhole(old, fresh);
  budget.pairs -= pairs;
  const runs = joined(diffSequences(old, fresh));
  return linesOf(runs.map((run, index) => renderRun(run, index === 0, index === runs.length - 1)).join(""));
}

/** Both texts, without what they begin with alike: otherwise the difference could be in what is cut. */
function renderWhole(old: readonly string[], fresh: readonly string[]): string[] {
  let same = 0;
  while (same < old.length && old[same] === fresh[same]) same += 1;
  const from = Math.max(same - CONTEXT, 0);
  const shown = (texts: readonly string[]): string[] => {
    const text = `${from > 0 ? "… " : ""}${texts.slice(from).join("")}`;
    const rest = text.length - MAX_LENGTH;
    return linesOf(rest > 0 ? `${text.slice(0, MAX_LENGTH)}… (${rest} more characters)` : text);
  };
  return [...shown(old).map((line) => `- ${line}`), ...shown(fresh).map((line) => `+ ${line}`)];
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
