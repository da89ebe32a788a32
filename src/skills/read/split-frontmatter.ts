/** Finds the frontmatter of a SKILL.md, damaged or not, by its marks alone. */
import { isUtf8 } from "node:buffer";
import type { ReadWarnings } from "./read-warnings.ts";

export interface Split {
  /** The text between the marks; undefined if there is none. */
  readonly yaml?: string;
  /** Line of its first character, from 1. */
  readonly yamlLine: number;
  readonly body: string;
  readonly bodyLine: number;
}

/** A file in good order: the first line is a mark and a later one is too. */
const OPEN = /^---[ \t]*\r?\n/;
/** Marks with common mistakes, and marks that name a language. */
const LOOSE_OPEN = /^[ \t]*(?:-{3,}|—-?|–-{1,2})[ \t]*([A-Za-z][\w+.-]*)?[ \t]*$/;
const LOOSE_CLOSE = /^[ \t]*(?:-{3,}|—-?|–-{1,2})[ \t]*$/;
const FENCE = /^[ \t]*(`{3,}|~{3,})[ \t]*(?:skill|markdown|md|ya?ml|frontmatter)?[ \t]*$/i;
const KEY = /^[A-Za-z_][\w.-]*[ \t]*:(?:[ \t]|$)/;
/** Data languages. Others may be programs: they stay in the body and are never read. */
const DATA_LANGUAGES = new Set(["yaml", "yml", "json"]);

export function splitFrontmatter(text: string, warnings: ReadWarnings): Split {
  const open = OPEN.exec(text);
  if (open !== null) {
    const start = open[0].length;
    const close = findClose(text, start);
    if (close !== undefined) {
      const yaml = text.slice(start, close.start);
      return { yaml, yamlLine: 2, body: text.slice(close.end), bodyLine: 3 + countLines(yaml) };
    }
  }
  return splitDamaged(text, warnings);
}

/** The first line from `start` on that is exactly a mark. */
function findClose(text: string, start: number): { start: number; end: number } | undefined {
  for (let at = start; at < text.length;) {
    const next = text.indexOf("\n", at);
    const end = next === -1 ? text.length : next;
    if (text.startsWith("---", at) && text.slice(at + 3, end).trim() === "") {
      return { start: at, end: next === -1 ? end : end + 1 };
    }
    at = end + 1;
  }
  return undefined;
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

function splitDamaged(text: string, warnings: ReadWarnings): Split {
  const lines = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  let first = skipBlank(lines, 0);
  const fence = FENCE.exec(lines[first] ?? "")?.[1];
  const inFence = fence !== undefined && LOOSE_OPEN.test(lines[first + 1] ?? "");
  if (inFence) first += 1;
  const mark = LOOSE_OPEN.exec(lines[first] ?? "");
  const opened = mark !== null;
  const language = mark?.[1]?.toLowerCase();
  if (language !== undefined && !DATA_LANGUAGES.has(language)) {
    warnings.add(
      "FRONTMATTER_LANGUAGE",
      `Frontmatter in "${language}" is neither read nor run; it stays part of the body.`,
      first + 1,
    );
    return bodyOnly(text);
  }
  if (!opened && !looksUnopened(lines, first)) return missingFrontmatter(text, warnings);

  const start = opened ? first + 1 : first;
  const close = closeOf(lines, start);
  const end = close ?? endOfKeys(lines, start);
  // A horizontal rule with prose below it is not frontmatter.
  if (!lines.slice(start, end).some((line) => KEY.test(line.trimStart()) || line.trimStart().startsWith("{"))) {
    return missingFrontmatter(text, warnings);
  }
  if (inFence) warnings.add("FRONTMATTER_FENCED", "The frontmatter is in a code fence, which is ignored.", first);
  warnOpening(lines[first] ?? "", first + 1, { opened, language, isFirst: first === 0 || inFence }, warnings);
  warnClosing(lines, close, end, warnings);
  let bodyStart = close === undefined ? end : close + 1;
  // The fence may end right after the frontmatter, or with the file.
  const after = skipBlank(lines, bodyStart);
  if (inFence && lines[after]?.trim() === fence) bodyStart = after + 1;
  return {
    yaml: lines.slice(start, end).join("\n"),
    yamlLine: start + 1,
    body: lines.slice(bodyStart).join("\n"),
    bodyLine: bodyStart + 1,
  };
}

interface Opening {
  readonly opened: boolean;
  readonly language: string | undefined;
  readonly isFirst: boolean;
}

function warnOpening(mark: string, line: number, { opened, language, isFirst }: Opening, warnings: ReadWarnings): void {
  if (!opened) warnings.add("FRONTMATTER_NOT_OPENED", 'The frontmatter has no opening "---".', line);
  else if (language !== undefined) {
    warnings.add("FRONTMATTER_LANGUAGE", `The mark should be "---" without "${language}"; it is read as data.`, line);
  } else if (mark.trimEnd() !== "---") {
    warnings.add("FRONTMATTER_MARK", 'The frontmatter should begin with a line "---".', line);
  } else if (!isFirst) {
    warnings.add("FRONTMATTER_NOT_FIRST", "Text before the frontmatter is ignored.", 1);
  }
}

function warnClosing(lines: readonly string[], close: number | undefined, end: number, warnings: ReadWarnings): void {
  if (close === undefined) {
    const message = `The frontmatter has no closing "---"; it is read as ending before line ${end + 1}.`;
    warnings.add("FRONTMATTER_UNTERMINATED", message, end);
  } else if (lines[close]?.trimEnd() !== "---") {
    warnings.add("FRONTMATTER_MARK", 'The frontmatter should end with a line "---".', close + 1);
  }
}

function bodyOnly(text: string): Split {
  return { yamlLine: 1, body: text, bodyLine: 1 };
}

function missingFrontmatter(text: string, warnings: ReadWarnings): Split {
  warnings.add("FRONTMATTER_MISSING", 'The file has no frontmatter between two lines "---".', 1);
  return bodyOnly(text);
}

function skipBlank(lines: readonly string[], from: number): number {
  let at = from;
  while (at < lines.length && lines[at]?.trim() === "") at += 1;
  return at < lines.length ? at : from;
}

/** `name: …` at the top and a mark further down: the opening mark is missing. */
function looksUnopened(lines: readonly string[], first: number): boolean {
  return /^(?:name|description)[ \t]*:/i.test(lines[first] ?? "") && closeOf(lines, first) === endOfKeys(lines, first);
}

/** An exact mark wins; else one that was meant as such, if it precedes everything that is not frontmatter. */
function closeOf(lines: readonly string[], start: number): number | undefined {
  const exact = lines.findIndex((line, at) => at >= start && line.trimEnd() === "---");
  const loose = lines.findIndex((line, at) => at >= start && (LOOSE_CLOSE.test(line) || /^\.\.\.[ \t]*$/.test(line)));
  if (loose !== -1 && loose !== exact && loose <= endOfKeys(lines, start)) return loose;
  return exact === -1 ? undefined : exact;
}

/** The first line that cannot belong to a mapping of keys: a heading, prose, a fence. */
function endOfKeys(lines: readonly string[], start: number): number {
  let blank = false;
  for (let at = start; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      blank = true;
      continue;
    }
    const belongs =
      KEY.test(line) || (!blank && /^[ \t}\]]|^- |^#[^#]/.test(line)) || (blank && /^[ \t]+\S/.test(line));
    // A comment among keys is directly above one.
    const heading = /^#{1,6}[ \t]/.test(line) && (blank || !KEY.test(lines[at + 1] ?? ""));
    if (!belongs || heading) return trimmed(lines, start, at);
    blank = false;
  }
  return trimmed(lines, start, lines.length);
}

function trimmed(lines: readonly string[], start: number, end: number): number {
  let at = end;
  while (at > start && lines[at - 1]?.trim() === "") at -= 1;
  return at;
}

/**
 * The frontmatter of a file without a closing mark, where a horizontal rule further down was mistaken for it.
 * @returns undefined if everything up to the rule looks like keys.
 */
export function splitUnterminated(text: string, { yaml, yamlLine }: Split): Split | undefined {
  if (yaml === undefined) return undefined;
  const lines = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  const start = yamlLine - 1;
  const end = endOfKeys(lines, start);
  if (end <= start || end >= start + countLines(yaml)) return undefined;
  // Only prose shows that the body has begun; a comment between keys or a broken value does not.
  if (!/^(?:#{1,6}[ \t]|[ \t]*$)/.test(lines[end] ?? "")) return undefined;
  const beyond = lines.slice(end, start + countLines(yaml));
  if (!beyond.some((line) => /^[^\s#-]/.test(line) && !KEY.test(line))) return undefined;
  return {
    yaml: lines.slice(start, end).join("\n"),
    yamlLine,
    body: lines.slice(end).join("\n"),
    bodyLine: end + 1,
  };
}

// Decoding: byte order marks, UTF-16 and broken UTF-8 are reported and read as far as possible.

const lenient = new TextDecoder("utf-8", { ignoreBOM: true });

export function decodeText(bytes: Uint8Array, warnings: ReadWarnings): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return decodeUtf16(bytes, "utf-16le", warnings);
  if (first === 0xfe && second === 0xff) return decodeUtf16(bytes, "utf-16be", warnings);
  const text = lenient.decode(bytes);
  const marked = text.startsWith("\uFEFF");
  if (marked) warnings.add("BYTE_ORDER_MARK", "The file starts with a byte order mark, which is ignored.", 1);
  const bad = text.indexOf("\uFFFD");
  // The file may also contain the character itself.
  if (bad !== -1 && !isUtf8(bytes)) {
    const line = lineAt(text, bad);
    warnings.add("BAD_UTF8", "The file is not valid UTF-8; unreadable bytes are shown as U+FFFD.", line);
  }
  return marked ? text.slice(1) : text;
}

function decodeUtf16(bytes: Uint8Array, encoding: "utf-16le" | "utf-16be", warnings: ReadWarnings): string {
  warnings.add("NOT_UTF8", `The file is ${encoding.toUpperCase()}; it should be UTF-8.`, 1);
  return new TextDecoder(encoding).decode(bytes);
}

/** The line, from 1, in which an offset lies. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}
