/** Lines as a shell reads them: what goes on in the next line is one line. */
import type { TextKind } from "./places.ts";

export interface LogicalLine {
  readonly number: number;
  readonly raw: string;
}

/** Longer lines are read in pieces that overlap, so that every pattern has a bounded text before it. */
const LONGEST = 4_000;
const OVERLAP = 400;
const MOST_JOINED = 40;
/** Nothing that is written by hand has so many; each costs much more than its length. */
const MOST_LINES = 50_000;

const NEWLINE = 10;
const RETURN = 13;

const FENCE = /^[ \t>]{0,8}(?:`{3,}|~{3,})/;
/** A backslash, or PowerShell's and cmd's signs for the same after a blank. */
const GOES_ON = /\\$|[ \t][`^]$/;
/** A pipe or an operator at the end; in a table every row ends so. */
const OPEN_END = /(?:\||&&)[ \t]{0,8}$/;
const OPEN_START = /^[ \t]{0,40}(?:\|\|?|&&)[ \t]{0,8}\S/;
const TABLE_ROW = /^[ \t]{0,8}\|.{0,4000}\|[ \t]{0,8}$/;

/** Of blank lines in a row the first stands for all. Ends early in a text of very many lines. */
export function logicalLines(text: string, kind: TextKind): LogicalLine[] {
  const lines: LogicalLine[] = [];
  let blank = false;
  let fenced = false;
  let open: { number: number; parts: string[]; length: number } | undefined;
  const close = (): void => {
    if (open !== undefined) addPieces(lines, open.number, open.parts.join(" "));
    open = undefined;
  };
  for (const { line, index } of physicalLines(text)) {
    if (lines.length >= MOST_LINES) break;
    const isBlank = line === "" || !/\S/.test(line);
    if (isBlank && blank && open === undefined) continue;
    blank = isBlank;
    if (FENCE.test(line)) {
      close();
      if (kind === "instructions") fenced = !fenced;
      lines.push({ number: index + 1, raw: line.slice(0, LONGEST) });
      continue;
    }
    const code = fenced || kind === "script";
    const isTable = !code && TABLE_ROW.test(line.slice(0, LONGEST));
    if (open !== undefined && open.length === 0) open = undefined;
    const continues = code && open === undefined && OPEN_START.test(line) && lines.length > 0;
    if (continues) open = reopened(lines);
    open ??= { number: index + 1, parts: [], length: 0 };
    const more = !isTable && (GOES_ON.test(line) || (code && OPEN_END.test(line)));
    const part = more && GOES_ON.test(line) ? line.slice(0, -1) : line;
    open.parts.push(open.parts.length === 0 ? part : part.trimStart());
    open.length += part.length + 1;
    if (!more || open.parts.length >= MOST_JOINED || open.length > LONGEST) close();
  }
  close();
  return lines;
}

/** The text has more lines than are read. */
export function isCutShort(lines: readonly unknown[]): boolean {
  return lines.length >= MOST_LINES;
}

/** One at a time: a list of a million empty lines is dear. */
function* physicalLines(text: string): Generator<{ line: string; index: number }> {
  let start = 0;
  let index = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code !== NEWLINE && code !== RETURN) continue;
    yield { line: text.slice(start, at), index };
    if (code === RETURN && text.charCodeAt(at + 1) === NEWLINE) at += 1;
    start = at + 1;
    index += 1;
  }
  yield { line: text.slice(start), index };
}

function reopened(lines: LogicalLine[]): { number: number; parts: string[]; length: number } | undefined {
  const last = lines.at(-1);
  if (last === undefined || last.raw.length > LONGEST / 2 || last.raw.trim() === "") return undefined;
  lines.pop();
  return { number: last.number, parts: [last.raw], length: last.raw.length };
}

function addPieces(lines: LogicalLine[], number: number, raw: string): void {
  if (raw.length <= LONGEST) {
    lines.push({ number, raw });
    return;
  }
  for (let from = 0; from < raw.length; from += LONGEST - OVERLAP)
    lines.push({ number, raw: raw.slice(from, from + LONGEST) });
}
