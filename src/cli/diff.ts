/**
 * A line diff of a config for `--dry-run`. Whatever may be secret in it is masked here, so that nobody who shows a diff can
 * forget to: texts are compared as they are, and shown masked.
 */
import { diffSequences } from "../model/sequence-diff.ts";
import { maskConfig } from "./mask-config.ts";

const CONTEXT = 2;
/** Above this the table would be large; then everything between the first and the last change is shown as replaced. */
const MAX_LINES = 3000;

const SIGNS = { same: " ", removed: "-", added: "+" } as const;

interface Line {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

/**
 * Lines with `-`, `+` or a blank in front, with a little around each change; empty where nothing differs. `mask` must keep
 * the lines of a text; by default it is that for JSON.
 */
export function diffLines(before: string, after: string, mask: (text: string) => string = maskConfig): string[] {
  if (before === after) return [];
  const shown: string[] = [];
  const [maskedBefore, maskedAfter] = [splitLines(mask(before)), splitLines(mask(after))];
  const lines = withMasks(compare(splitLines(before), splitLines(after)), maskedBefore, maskedAfter);
  const near = nearChanges(lines);
  let lastShown = -1;
  for (const [index, line] of lines.entries()) {
    if (!near.has(index)) continue;
    if (lastShown !== index - 1 && shown.length > 0) shown.push("  …");
    shown.push(`${line.sign} ${line.text}`.trimEnd());
    lastShown = index;
  }
  return shown;
}

/** Each line as it may be seen. One that is in both texts is told as it stands in the new one. */
function withMasks(lines: readonly Line[], before: readonly string[], after: readonly string[]): Line[] {
  let [i, j] = [0, 0];
  return lines.map(({ sign }) => {
    const text = sign === "-" ? before[i] : after[j];
    if (sign !== "+") i += 1;
    if (sign !== "-") j += 1;
    return { sign, text: text ?? "" };
  });
}

function splitLines(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function nearChanges(lines: readonly Line[]): Set<number> {
  const near = new Set<number>();
  for (const [index, { sign }] of lines.entries()) {
    if (sign === " ") continue;
    for (let at = index - CONTEXT; at <= index + CONTEXT; at++) near.add(at);
  }
  return near;
}

function compare(before: readonly string[], after: readonly string[]): Line[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const same = (lines: readonly string[]): Line[] => lines.map((text) => ({ sign: " ", text }));
  return [
    ...same(after.slice(0, head)),
    ...compareMiddle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...same(after.slice(after.length - tail)),
  ];
}

function compareMiddle(before: readonly string[], after: readonly string[]): Line[] {
  if (before.length > MAX_LINES || after.length > MAX_LINES) {
    return [...before.map((text): Line => ({ sign: "-", text })), ...after.map((text): Line => ({ sign: "+", text }))];
  }
  return diffSequences(before, after).map(({ kind, text }) => ({ sign: SIGNS[kind], text }));
}
