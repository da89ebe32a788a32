/** A file of a skill as the rules read it: logical lines in normalised spelling, each with its context. */
import { lastAtOrBefore } from "../../base/sorted.ts";
import { normalise } from "../../base/normalise.ts";

export interface ScannedLine extends LineContext {
  /** In the file, from 1. */
  readonly number: number;
  /** As it was written, continuation lines joined. */
  readonly raw: string;
  /** Lower case, without look-alike letters and invisible characters. */
  readonly text: string;
  /** The same with quoting inside words, escapes and known variables resolved. */
  readonly plain: string;
}

export interface ScannedText {
  readonly path: string;
  readonly kind: TextKind;
  /** As it was written. */
  readonly raw: string;
  readonly lines: readonly ScannedLine[];
  /** All lines, as they are read by rules. */
  readonly all: string;
  /** There are more lines than were read. */
  readonly cutShort: boolean;
}

/** Long work on a text pauses after this many lines. */
export const LINES_PER_SLICE = 256;

export function scannedText(path: string, kind: TextKind, text: string): ScannedText {
  const steps = scanningText(path, kind, text);
  let next = steps.next();
  while (next.done !== true) next = steps.next();
  return next.value;
}

/** The same in steps, between which others may have a turn. */
export function* scanningText(path: string, kind: TextKind, text: string): Generator<undefined, ScannedText> {
  const drafts: { number: number; raw: string; text: string }[] = [];
  for (const { number, raw } of logicalLines(text, kind)) {
    drafts.push({ number, raw, text: normalise(raw).text });
    if (drafts.length % LINES_PER_SLICE === 0) yield undefined;
  }
  const variables: Variables = collectVariables(drafts.map((draft) => draft.text));
  const contexts = new ContextTracker(kind);
  const spellings: string[] = [];
  const lines: ScannedLine[] = [];
  for (const { number, raw, text: folded } of drafts) {
    const plain = plainCommand(folded, variables);
    spellings.push(folded);
    if (plain !== folded) spellings.push(plain);
    lines.push({ number, raw, text: folded, plain, ...contexts.next(raw, folded) });
    if (lines.length % LINES_PER_SLICE === 0) yield undefined;
  }
  return { path, kind, raw: text, lines, all: spellings.join("\n"), cutShort: lines.length >= MAX_LINES };
}

/** The lines from `before` lines above to `after` lines below the one at an index. */
export function linesAround(
  { lines }: Pick<ScannedText, "lines">,
  index: number,
  before: number,
  after: number,
): readonly ScannedLine[] {
  return lines.slice(Math.max(0, index - before), index + after + 1);
}

/** The logical line that contains a line of the file. */
export function lineAt({ lines }: ScannedText, number: number): ScannedLine | undefined {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((lines[middle]?.number ?? 0) <= number) low = middle + 1;
    else high = middle;
  }
  return lines[low - 1];
}

/** instructions: read by an agent. script: run by one. data: neither, judging by its name. */
export type TextKind = "instructions" | "script" | "data";

interface LineContext {
  readonly fenced: boolean;
  /** It is in a comment that a rendered page does not show. */
  readonly hidden: boolean;
  /** It is in the frontmatter or one of its marks. */
  readonly frontmatter: boolean;
  /** The headings above it but for the title. */
  readonly heading: string;
  /** The text that introduces it: the line before its block, or the comment above it. */
  readonly intro: string;
}

const FENCE = /^[ \t>]{0,8}(`{3,}|~{3,})/;
const HEADING = /^(#{1,6})[ \t]{1,8}(\S.{0,300})/;
const COMMENT_LINE = /^[ \t]{0,40}(?:#|\/\/|\*|--|::|rem )/;
const MAX_INTRO_LENGTH = 400;

/** Tracks the section, block and comment of each line of a document, from the top. */
class ContextTracker {
  readonly #kind: TextKind;
  readonly #headings: string[] = [];
  #first = true;
  #frontmatter = false;
  #fence: string | undefined;
  #hidden = false;
  /** The last lines of text outside of fences, and the comment before the line. */
  #outside = "";
  #comment = "";

  constructor(kind: TextKind) {
    this.#kind = kind;
  }

  next(raw: string, text: string): LineContext {
    const place = this.#kind === "instructions" ? this.#inDocument(raw, text) : this.#inCode(text);
    this.#first = false;
    return place;
  }

  #inCode(text: string): LineContext {
    const intro = this.#comment;
    this.#noteComment(text);
    return { fenced: false, hidden: false, frontmatter: false, heading: "", intro };
  }

  #inDocument(raw: string, text: string): LineContext {
    if (/^---[ \t]*$/.test(raw) && (this.#first || this.#frontmatter)) {
      this.#frontmatter = !this.#frontmatter;
      return { fenced: false, hidden: false, frontmatter: true, heading: "", intro: "" };
    }
    if (this.#frontmatter) return { fenced: false, hidden: false, frontmatter: true, heading: "", intro: "" };
    const fence = FENCE.exec(raw)?.[1];
    if (fence !== undefined && !this.#hidden) {
      if (this.#fence === undefined) this.#fence = fence;
      else if (fence.startsWith(this.#fence)) this.#fence = undefined;
      this.#comment = "";
    }
    const fenced = this.#fence !== undefined;
    const hidden = this.#hidden || (!fenced && text.includes("<!--"));
    if (!fenced) this.#noteHidden(text);
    const place = {
      fenced,
      hidden,
      frontmatter: false,
      heading: this.#headings.slice(1).join(" / "),
      intro: fenced ? `${this.#outside} ${this.#comment}` : this.#outside,
    };
    if (fenced) this.#noteComment(text);
    else this.#noteOutside(raw, text);
    return place;
  }

  #noteHidden(text: string): void {
    const opened = text.lastIndexOf("<!--");
    const closed = text.lastIndexOf("-->");
    if (opened > closed) this.#hidden = true;
    else if (closed !== -1) this.#hidden = false;
  }

  #noteOutside(raw: string, text: string): void {
    const heading = HEADING.exec(text);
    if (heading !== null) {
      const depth = heading[1]?.length ?? 1;
      while (this.#headings.length >= depth) this.#headings.pop();
      while (this.#headings.length < depth - 1) this.#headings.push("");
      this.#headings.push(heading[2] ?? "");
      this.#outside = "";
      return;
    }
    if (raw.trim() === "" || FENCE.test(raw)) return;
    // A list keeps its introduction; any other line replaces it.
    const isItem = /^[ \t]{0,12}(?:[-*+]|\d{1,3}[.)]|\|)[ \t]?/.test(raw);
    if (!isItem) this.#outside = text.slice(-MAX_INTRO_LENGTH);
    else if (/:[ *_]{0,4}$/.test(text)) this.#outside = `${this.#outside} ${text}`.slice(-MAX_INTRO_LENGTH);
  }

  #noteComment(text: string): void {
    if (COMMENT_LINE.test(text)) this.#comment = text.slice(0, MAX_INTRO_LENGTH);
    else if (text.trim() === "") this.#comment = "";
  }
}

// Lines as a shell reads them: continuation lines are joined.

interface LogicalLine {
  readonly number: number;
  readonly raw: string;
}

/** Longer lines are read in pieces that overlap, so that every pattern has a bounded text before it. */
const MAX_LINE_LENGTH = 4_000;
const OVERLAP = 400;
const MAX_JOINED_LINES = 40;
/** No file written by hand has this many; each line costs much more than its length. */
const MAX_LINES = 50_000;

const NEWLINE = 10;
const RETURN = 13;

const FENCE_LINE = /^[ \t>]{0,8}(?:`{3,}|~{3,})/;
/** A backslash, or PowerShell's and cmd's signs for the same after a blank. */
const GOES_ON = /\\$|[ \t][`^]$/;
/** A pipe or an operator at the end; in a table every row ends so. */
const OPEN_END = /(?:\||&&)[ \t]{0,8}$/;
const OPEN_START = /^[ \t]{0,40}(?:\|\|?|&&)[ \t]{0,8}\S/;
const TABLE_ROW = /^[ \t]{0,8}\|.{0,4000}\|[ \t]{0,8}$/;

/** Consecutive blank lines count as one. Ends early in a text with too many lines. */
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
    if (lines.length >= MAX_LINES) break;
    const isBlank = line === "" || !/\S/.test(line);
    if (isBlank && blank && open === undefined) continue;
    blank = isBlank;
    if (FENCE_LINE.test(line)) {
      close();
      if (kind === "instructions") fenced = !fenced;
      lines.push({ number: index + 1, raw: line.slice(0, MAX_LINE_LENGTH) });
      continue;
    }
    const code = fenced || kind === "script";
    const isTable = !code && TABLE_ROW.test(line.slice(0, MAX_LINE_LENGTH));
    if (open !== undefined && open.length === 0) open = undefined;
    const continues = code && open === undefined && OPEN_START.test(line) && lines.length > 0;
    if (continues) open = reopened(lines);
    open ??= { number: index + 1, parts: [], length: 0 };
    const more = !isTable && (GOES_ON.test(line) || (code && OPEN_END.test(line)));
    const part = more && GOES_ON.test(line) ? line.slice(0, -1) : line;
    open.parts.push(open.parts.length === 0 ? part : part.trimStart());
    open.length += part.length + 1;
    if (!more || open.parts.length >= MAX_JOINED_LINES || open.length > MAX_LINE_LENGTH) close();
  }
  close();
  return lines;
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
  if (last === undefined || last.raw.length > MAX_LINE_LENGTH / 2 || last.raw.trim() === "") return undefined;
  lines.pop();
  return { number: last.number, parts: [last.raw], length: last.raw.length };
}

function addPieces(lines: LogicalLine[], number: number, raw: string): void {
  if (raw.length <= MAX_LINE_LENGTH) {
    lines.push({ number, raw });
    return;
  }
  for (let from = 0; from < raw.length; from += MAX_LINE_LENGTH - OVERLAP)
    lines.push({ number, raw: raw.slice(from, from + MAX_LINE_LENGTH) });
}

// Shell quoting, escapes and variables, undone as far as one line shows: `c''u\rl $U` is a download too.

type Variables = ReadonlyMap<string, string>;

const MAX_VARIABLES = 500;
const MAX_EXPANDED_LENGTH = 4_000;

/** `name=value`, `const name = "value"`, `$name = 'value'`, `set name=value`. */
const ASSIGNMENT =
  /(?:^|[\s;&(,])\$?([a-z_][a-z0-9_]{0,40})\s{0,3}:?=\s{0,3}(?:"([^"\n]{1,300})"|'([^'\n]{1,300})'|`([^`\n]{1,300})`|([^\s"'`;&|()]{1,300}))/g;

/** The first value of a loop represents all of them. */
const LOOP = /\bfor\s{1,3}([a-z_]\w{0,40})\s{1,3}in\s{1,3}["']?([^\s"';]{1,200})/;

export function collectVariables(texts: readonly string[]): Variables {
  const variables = new Map<string, string>();
  for (const text of texts) {
    const loop = LOOP.exec(text);
    if (loop !== null && !variables.has(loop[1] ?? "")) variables.set(loop[1] ?? "", loop[2] ?? "");
    if (!text.includes("=")) continue;
    for (const [, name = "", double, single, tick, bare] of text.matchAll(ASSIGNMENT)) {
      const value = double ?? single ?? tick ?? bare;
      if (value !== undefined && !variables.has(name)) variables.set(name, value);
      if (variables.size >= MAX_VARIABLES) return variables;
    }
  }
  return variables;
}

const NEEDS_WORK = /['"`\\^$%{+]/;
const REFERENCE =
  /\$\{?([a-z_][a-z0-9_]{0,40})(?::-[^}\n]{0,100})?\}?|%([a-z_][a-z0-9_]{0,40})%|\{([a-z_][a-z0-9_]{0,40})\}/g;
const ESCAPED = /\\x([0-9a-f]{2})|\\u00([0-9a-f]{2})|\\u\{([0-9a-f]{1,6})\}|\\([01][0-7]{2})/g;

/** `text` is in lower case. */
export function plainCommand(text: string, variables: Variables): string {
  if (!NEEDS_WORK.test(text)) return text;
  let plain = text;
  if (plain.includes("\\"))
    plain = plain
      .replace(ESCAPED, (_, hex?: string, short?: string, long?: string, octal?: string) =>
        character(octal === undefined ? Number.parseInt(hex ?? short ?? long ?? "20", 16) : Number.parseInt(octal, 8)),
      )
      .replace(/\\[nrt](?![a-z])|\\[nrt](?=curl|wget|bash|sh\b|python|powershell|nc\b)/g, " ");
  plain = plain
    .replace(/\$\{?ifs\}?/g, " ")
    .replace(/["'`]\s{0,3}\+\s{0,3}["'`]/g, "")
    .replace(/["'],\s{0,3}["']/g, " ")
    .replace(/\$[@*](?=\w)|\$\{@\}/g, "");
  for (let round = 0; round < 2 && variables.size > 0 && plain.length < MAX_EXPANDED_LENGTH; round += 1) {
    const before = plain;
    plain = plain.replace(REFERENCE, (found, shell?: string, cmd?: string, braces?: string) => {
      return variables.get(shell ?? cmd ?? braces ?? "") ?? found;
    });
    if (plain === before) break;
  }
  return plain
    .slice(0, 2 * MAX_EXPANDED_LENGTH)
    .replace(/(?<=\w)(?:''|""|["'`^])(?=\w)/g, "")
    .replace(/(?<=[a-z])\\(?=[a-z])/g, "")
    .replace(/\\(?=["'|$`<>&;(])/g, "");
}

function character(codePoint: number): string {
  return codePoint >= 0x20 && codePoint < 0x7f ? String.fromCharCode(codePoint).toLowerCase() : " ";
}

// Files as text.

const INSTRUCTIONS = /\.(?:md|mdx|markdown|txt|rst|adoc|html?|skill|prompt|mdc)$/i;
const SCRIPT =
  /\.(?:sh|bash|zsh|fish|ksh|command|py|pyw|js|mjs|cjs|jsx|ts|mts|cts|tsx|rb|pl|pm|php|ps1|psm1|psd1|bat|cmd|vbs|vbe|hta|lua|go|rs|swift|applescript|scpt|r|jl|java|kt|cs|plist|service|desktop|mk)$|(?:^|\/)(?:makefile|dockerfile|justfile|rakefile|procfile|vagrantfile|\.?(?:bash|zsh)rc|\.?profile|(?:pre|post)-[\w-]{1,30})$/i;

export function textKind(path: string, text: string): TextKind {
  if (SCRIPT.test(path)) return "script";
  if (text.startsWith("#!")) return "script";
  if (INSTRUCTIONS.test(path) || !/\.[a-z0-9]{1,12}$/i.test(path)) return "instructions";
  return "data";
}

const SAMPLE_LENGTH = 8_192;
/** One in this many characters may be invalid in text. */
const ODD_RATIO = 8;
const ODD_RATIO_WITH_NULS = 50;

interface FileText {
  readonly text: string;
  readonly kind: TextKind;
  /** It reads as text. A script that does not is read all the same: a shell stops at the first line that ends it. */
  readonly isText: boolean;
  /** It had NUL characters. Shells skip them, but scanners that take them for binary data would see nothing. */
  readonly nuls: boolean;
}

/** Undefined if neither the bytes nor the name or first line suggest text. */
export function readText(path: string, bytes: Uint8Array): FileText | undefined {
  const decoded = decode(bytes);
  const nuls = decoded.includes("\0");
  const text = nuls ? decoded.replaceAll("\0", "") : decoded;
  const kind = textKind(path, text);
  const isText = !isOdd(text, nuls);
  if (!isText && kind !== "script") return undefined;
  return { text, kind, isText, nuls };
}

function decode(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  return new TextDecoder("utf-8", { ignoreBOM: false }).decode(bytes);
}

/** Some text in an old encoding has odd bytes; a picture has little else. With NULs in it, control characters count too. */
function isOdd(text: string, nuls: boolean): boolean {
  let odd = 0;
  const sample = text.slice(0, SAMPLE_LENGTH);
  // oxlint-disable-next-line no-control-regex -- these are what it looks for
  for (const _ of sample.matchAll(nuls ? /[\u0001-\u0008\u000e-\u001a\u001c-\u001f\ufffd]/g : /\ufffd/g)) odd += 1;
  return odd * (nuls ? ODD_RATIO_WITH_NULS : ODD_RATIO) > sample.length || (nuls && sample === "");
}

export class LineNumbers {
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) this.#starts.push(at + 1);
  }

  /** From 1. */
  of(offset: number): number {
    return lastAtOrBefore(this.#starts, offset) + 1;
  }
}
