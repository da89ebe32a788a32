/** Values that are read on one line and used on another, followed through the names that they are given. */
import { LINES_PER_SLICE, type ScannedLine } from "./scanned-text.ts";

export interface Flow {
  readonly source: ScannedLine;
  readonly sink: ScannedLine;
}

type Test = (line: ScannedLine) => boolean;

const MAX_NAMES = 200;
const MAX_FLOWS = 20;
/** The arguments of a call may be on the lines below it. */
const CALL_LINES = 8;

const ASSIGNED = /(?:^|[\s;({,])\$?([a-z_]\w{0,60})\s{0,3}(?::\s{0,2}\w{1,40}\s{0,3})?(?:[:+|]?=(?!=)|=>)/g;
const NAMED =
  /\bas\s{1,4}([a-z_]\w{0,60})|\b(?:for|foreach)\s{1,4}\(?(?:const |let |var )?\$?([a-z_]\w{0,60})\s{1,4}(?:in|of)\b|\bread\s{1,4}(?:-\w\s{1,4}){0,2}([a-z_]\w{0,60})/g;
/** Parameters of a function. */
const PARAMETER = /\(\s{0,2}([a-z_]\w{0,60})\s{0,2}(?:,[^)\n]{0,80})?\)\s{0,3}(?:=>|\{)/g;
const FILLED = /\$?([a-z_]\w{0,60})(?:\[[^\]\n]{0,60}\]\s{0,3}=|\.(?:append|push|update|extend|write|set|add)\()/g;
const FUNCTION =
  /\b(?:def|function|fn|func)\s{1,4}([a-z_]\w{0,60})\s{0,3}\(|^\s{0,20}([a-z_]\w{0,60})\s{0,3}\(\)\s{0,3}\{|\b(?:const|let|var)\s{1,4}([a-z_]\w{0,60})\s{0,3}=\s{0,3}(?:async\s{0,3})?(?:\([^)\n]{0,80}\)|\w{1,40})\s{0,3}=>/;
const WORDS = /[a-z_]\w{0,60}/g;
/** Files that a step writes and a later one reads. */
const PATHS = /(?:\/tmp|\/var\/tmp|\/dev\/shm|\.|~|\$\w{1,20}|%\w{1,20}%)?[/\\][\w.-]{2,60}(?:[/\\][\w.-]{1,60}){0,6}/g;
/** Names of everything and nothing. */
const PLAIN = new Set(
  "_ self this os re sys json fs const let var return in as if for def function import from await async new none null true false print echo console log with open read str len".split(
    " ",
  ),
);

/** In steps, between which others may have a turn. */
export function* dataFlows(
  lines: readonly ScannedLine[],
  isSource: Test,
  isSink: Test,
): Generator<undefined, readonly Flow[]> {
  const sources = yield* linesWhere(lines, isSource);
  if (sources.size === 0) return [];
  const sinks = yield* linesWhere(lines, isSink);
  if (sinks.size === 0) return [];
  const found: Flow[] = [];
  const names = new Map<string, ScannedLine>();
  let inside: string | undefined;
  let sink: { readonly line: ScannedLine; left: number } | undefined;
  for (const [index, line] of lines.entries()) {
    if (index % LINES_PER_SLICE === 0) yield undefined;
    const own = FUNCTION.exec(line.text);
    if (own !== null) inside = own[1] ?? own[2] ?? own[3];
    const source = sources.has(line) ? line : carried(line, names);
    if (sinks.has(line)) sink = { line, left: CALL_LINES };
    if (source !== undefined) {
      if (sink !== undefined && sink.left > 0 && found.length < MAX_FLOWS) {
        found.push({ source, sink: sink.line });
        sink = undefined;
      }
      trackNames(line, source, names);
      if (inside !== undefined && /\b(?:return|yield|echo|print)\b/.test(line.text)) addName(names, inside, source);
    }
    if (sink !== undefined) sink.left = endsCall(line) ? 0 : sink.left - 1;
  }
  return found;
}

function* linesWhere(lines: readonly ScannedLine[], test: Test): Generator<undefined, Set<ScannedLine>> {
  const found = new Set<ScannedLine>();
  for (const [index, line] of lines.entries()) {
    if (index % LINES_PER_SLICE === 0) yield undefined;
    if (test(line)) found.add(line);
  }
  return found;
}

function endsCall({ text }: ScannedLine): boolean {
  return /[);]\s{0,3}$/.test(text) && !/[({[,]\s{0,3}$/.test(text);
}

function carried(line: ScannedLine, names: ReadonlyMap<string, ScannedLine>): ScannedLine | undefined {
  if (names.size === 0) return undefined;
  if (/[/\\]/.test(line.text)) {
    for (const [path] of line.text.matchAll(PATHS)) {
      const source = names.get(path);
      if (source !== undefined) return source;
    }
  }
  for (const { 0: word, index } of line.text.matchAll(WORDS)) {
    const source = names.get(word);
    // A letter before a quotation mark is a prefix of the literal.
    if (source === undefined || (word.length === 1 && /["']/.test(line.text[index + 1] ?? ""))) continue;
    // The `path` of `os.path` is not a variable of this file.
    if (line.text[index - 1] !== "." || line.text[index - 2] === ".") return source;
  }
  return undefined;
}

function trackNames(line: ScannedLine, source: ScannedLine, names: Map<string, ScannedLine>): void {
  if (/\b(?:tar|zip|cp|copy|tee|7z|gzip|rsync|copy-item|compress-archive|shutil|make_archive)\b|>/.test(line.text)) {
    for (const [path] of line.text.matchAll(PATHS))
      if (
        /^(?:\/tmp|\/var\/tmp|\/dev\/shm|\.[/\\]|%temp%|\$env)|\.(?:zip|tgz|tar|gz|7z|txt|json|log|dat|bin|db)$/.test(
          path,
        )
      )
        addName(names, path, source);
  }
  for (const [, assigned = ""] of line.text.matchAll(ASSIGNED)) addName(names, assigned, source);
  for (const [, first, second, third] of line.text.matchAll(NAMED))
    addName(names, first ?? second ?? third ?? "", source);
  for (const [, parameter = ""] of line.text.matchAll(PARAMETER)) addName(names, parameter, source);
  for (const [, filled = ""] of line.text.matchAll(FILLED)) addName(names, filled, source);
}

function addName(names: Map<string, ScannedLine>, name: string, source: ScannedLine): void {
  if (name !== "" && names.size < MAX_NAMES && !PLAIN.has(name) && !names.has(name)) names.set(name, source);
}
