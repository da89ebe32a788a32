/** What surrounds a suspicious phrase: quotation, code, and talk about attacks make it harmless more often than not. */

import { looksLikeJson } from "./unescape.ts";

export interface TextShape {
  /** Starts of fences and their ends, in pairs, in the normalised text. */
  readonly fences: readonly number[];
  /** The text is a JSON document: quotes there are no sign of quotation. */
  readonly json: boolean;
  /** Lines look like a programming language. */
  readonly code: boolean;
}

const FENCE_SIGN = /```|~~~/g;
const BEFORE_FENCE = /(?:^|[\n\r])([ \t>]{0,8})$/;
const CODE_LINE =
  /^[ \t]{0,40}(?:import |from \S{1,80} import |export |const |let |var |function |def |class |public |private |return |if \(|for \(|#include|package |func |fn |use |async |await |assert|expect\(|it\(|test\(|describe\(|@\w)/gm;
const LINE_SCAN = 600;

export function shapeOf(text: string): TextShape {
  const fences: number[] = [];
  for (const { index } of text.matchAll(FENCE_SIGN)) {
    const before = BEFORE_FENCE.exec(text.slice(Math.max(0, index - 9), index));
    // `^` would match at the start of what was cut off, too.
    if (before !== null && (before[0] !== before[1] || index <= 8)) fences.push(index - (before[1]?.length ?? 0));
  }
  if (fences.length % 2 === 1) fences.push(text.length);
  return { fences, json: looksLikeJson(text), code: isCode(text.slice(0, 20_000)) };
}

/** At least two lines, and one in eight, begin like code. */
function isCode(text: string): boolean {
  const lines = text.split("\n").length;
  let codeLines = 0;
  for (const _ of text.matchAll(CODE_LINE)) codeLines += 1;
  return codeLines >= 2 && codeLines * 8 >= lines;
}

export function isFenced(shape: TextShape, offset: number): boolean {
  let low = 0;
  let high = shape.fences.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((shape.fences[middle] ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return low % 2 === 1;
}

/**
 * Inside double quotes, backticks or single quotes that open and close on its line. Only the near part of a long line
 * is read, so that many findings on one line stay cheap.
 */
export function isQuoted(text: string, start: number, end: number): boolean {
  const before = text.slice(Math.max(0, start - LINE_SCAN), start);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  // A documentation string speaks for itself; it is not a literal that somebody tests against.
  if (line.includes('"""') || line.includes("'''")) return false;
  const after = text.slice(end, end + LINE_SCAN).split("\n", 1)[0] ?? "";
  // A quote straight after a separator is how a table of values is written, not how somebody is quoted.
  if (count(line, '"') % 2 === 1 && after.includes('"')) return !/(?:^|[,;\t])"[^"]*$/.test(line);
  if (count(line, "`") % 2 === 1 && after.includes("`")) return true;
  // A pattern between slashes.
  if (
    /(?:^|[\s(=,:[])\/[^/\n]{0,120}$/.test(line.slice(-130)) &&
    /^[^/\n]{0,120}\/[a-z]{0,6}\s{0,2}[,;).\]]/.test(after)
  )
    return true;
  return /(?:^|[\s(=,:[])'(?:[^']|\w'\w){0,80}$/.test(line.slice(-100)) && /'(?:$|[\s).,;:!?\]])/.test(after);
}

function count(text: string, sign: string): number {
  let found = 0;
  for (let at = text.indexOf(sign); at !== -1; at = text.indexOf(sign, at + 1)) found += 1;
  return found;
}

const CITING = new Set(
  (
    "example examples eg instance such like phrase phrases pattern patterns says said saying writes wrote inserts insert contain contains " +
    "containing includes reads detect detects detected attacker attackers attack attacks payload payloads string strings try tries tried " +
    "prompts called named asking asks ask told tells telling tell typed typing input inputs sample known classic famous embeds embedding hides " +
    "hidden phrased term terms words sentence sentences technique techniques titled quoted line lines block blocks blocked flag flags flagged " +
    "test tests variant variants jailbreak jailbreaks injection injections malicious matches match matching catch catches text texts"
  ).split(" "),
);

/** One of the few words before speaks of the phrase instead of leading into it. */
export function isCited(wordsBefore: readonly string[]): boolean {
  return wordsBefore.some((word) => CITING.has(word));
}
