/** Reads a top-level entry that is invalid YAML, with the smallest repair that works. */
import JSON5 from "json5";
import { type ReadWarnings, abbreviate } from "./read-warnings.ts";
import { YamlText } from "./yaml-text.ts";
import { isJsonObject } from "../../model/json.ts";

/** Keys whose value is always text. */
const TEXT_KEYS = new Set([
  "name",
  "description",
  "license",
  "compatibility",
  "homepage",
  "version",
  "author",
  "argument-hint",
]);

const MAX_ENTRY_LENGTH = 8 * 1024;

export interface ReadEntry {
  readonly value: unknown;
  /** Where it could be read as YAML. */
  readonly yaml?: YamlText;
}

/** @param firstLine Line of the entry in the file. */
export function readEntry(entry: Entry, firstLine: number, warnings: ReadWarnings): ReadEntry {
  const warn = (repairs: readonly Repair[]): void => {
    for (const { code, message, index } of repairs) warnings.add(code, message, firstLine + index);
  };
  const attempt = (lines: readonly string[], repairs: readonly Repair[]): ReadEntry | undefined => {
    const yaml = new YamlText(lines.join("\n"), firstLine);
    const value = yaml.error === undefined && isJsonObject(yaml.value) ? yaml.value[entry.key] : undefined;
    if (value === undefined) return undefined;
    warn(repairs);
    return { value, yaml };
  };

  // Each attempt parses again; what is this large was hardly written by hand.
  if (entry.lines.reduce((sum, line) => sum + line.length, 0) > MAX_ENTRY_LENGTH)
    return readAsText(entry, firstLine, warnings);
  const asIs = attempt(entry.lines, []);
  if (asIs !== undefined) return asIs;
  const spaced = untab(entry.lines);
  const flow = readFlow(spaced.lines);
  if (flow !== undefined) {
    warnings.add(
      "FLOW_NOT_YAML",
      `"${abbreviate(entry.key)}" is not valid YAML but valid JSON5; it is read as JSON5.`,
      firstLine,
    );
    return { value: flow };
  }
  if (!TEXT_KEYS.has(entry.key.toLowerCase())) {
    const missing = missingBrackets(spaced.lines);
    if (missing !== "") {
      const message = `"${abbreviate(entry.key)}" lacks ${missing} at its end, which is added.`;
      const closed = readFlow([...spaced.lines, missing]);
      if (closed !== undefined) {
        warnings.add("BRACKET_MISSING", message, firstLine);
        return { value: closed };
      }
      // Words without quotes are YAML, and not JSON5.
      const asYaml = attempt([...spaced.lines, `  ${missing}`], [{ code: "BRACKET_MISSING", message, index: 0 }]);
      if (asYaml !== undefined) return asYaml;
    }
    for (const steps of [[untab], [untab, quoteValues], [untab, reindent], [untab, quoteValues, reindent]]) {
      const { lines, repairs } = applyRepairs(steps, entry.lines);
      const read = attempt(lines, repairs);
      if (read !== undefined) return read;
    }
  }
  return readAsText(entry, firstLine, warnings);
}

function applyRepairs(steps: readonly ((lines: readonly string[]) => Repaired)[], lines: readonly string[]): Repaired {
  return steps.reduce<Repaired>(
    (before, step) => {
      const after = step(before.lines);
      return { lines: after.lines, repairs: [...before.repairs, ...after.repairs] };
    },
    { lines, repairs: [] },
  );
}

/** JSON and JSON5 that YAML objects to: comments, closing brackets at the margin, no space after colons. */
function readFlow(lines: readonly string[]): unknown {
  return parseJson5([readKey(lines[0] ?? "")?.rest ?? "", ...lines.slice(1)].join("\n"));
}

const MAX_MISSING_BRACKETS = 8;

/** The brackets that would close a list or an object that ends too early; empty if that is not what is wrong. */
function missingBrackets(lines: readonly string[]): string {
  const text = [readKey(lines[0] ?? "")?.rest ?? "", ...lines.slice(1)].join("\n");
  const open: string[] = [];
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] ?? "";
    if (quote !== "") {
      if (char === "\\") at += 1;
      else if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if (char === "{") open.push("}");
    else if (char === "[") open.push("]");
    else if ((char === "}" || char === "]") && open.pop() !== char) return "";
  }
  return quote !== "" || open.length > MAX_MISSING_BRACKETS ? "" : open.toReversed().join("");
}

/** The text after the key as one line, without a parser. */
export function readAsText(entry: Entry, firstLine: number, warnings: ReadWarnings): ReadEntry {
  const [first = "", ...more] = entry.lines;
  const others = more.filter((line) => !line.startsWith("#"));
  const rest = (readKey(first)?.rest ?? "").trim();
  const block = /^[|>][-+0-9]*$/.test(rest);
  const parts = [block ? "" : rest, ...others.map((line) => line.trim())].filter((part) => part !== "");
  const text = parts.join(" ");
  const what = `"${abbreviate(entry.key)}"`;
  const why = quoteReason(text, what) ?? {
    code: "VALUE_AS_TEXT",
    message: `${what} is not valid YAML; it is read as text.`,
  };
  warnings.add(why.code, why.message, firstLine);
  return { value: withoutQuotes(text) };
}

// Cutting a damaged map into its top-level entries, so that one bad entry spoils only itself.

export interface Entry {
  readonly key: string;
  /** All lines of the entry, its key's included. */
  readonly lines: readonly string[];
  /** Index of the first line in the text. */
  readonly start: number;
}

interface CutEntries {
  readonly entries: readonly Entry[];
  /** Lines that belong to no entry, as indexes. */
  readonly stray: readonly number[];
  /** Lines at the margin that were read as continuations of the entry above. */
  readonly joined: readonly number[];
  /** Keys without the colon and space that YAML wants. */
  readonly colons: readonly number[];
}

const ENTRY_KEY = /^(?:"([^"\n]+)"|'([^'\n]+)'|([A-Za-z_][\w.-]*(?: [\w.-]+){0,2}))[ \t]*:(?=[ \t]|$)(.*)$/;
/** Words that are surely meant as keys, so that a colon without its space can be forgiven. */
const LOOSE_KEY =
  /^(name|description|version|license|author|homepage|compatibility|metadata|allowed-tools)[ \t]*[:：][ \t]*(.*)$/i;

interface KeyLine {
  readonly key: string;
  readonly rest: string;
}

function readKey(line: string): KeyLine | undefined {
  const match = ENTRY_KEY.exec(line);
  return match === null ? undefined : { key: match[1] ?? match[2] ?? match[3] ?? "", rest: match[4] ?? "" };
}

export function cutEntries(text: string): CutEntries {
  const lines = text.split(/\r?\n/);
  const margin = marginOf(lines);
  const moved = lines.map((line) => (line.slice(0, margin).trim() === "" ? line.slice(margin) : line));
  // An unclosed bracket must not swallow everything after it.
  return cutLines(moved, true) ?? cutLines(moved, false) ?? { entries: [], stray: [], joined: [], colons: [] };
}

/** @returns undefined if brackets count and one stays open. */
function cutLines(lines: readonly string[], brackets: boolean): CutEntries | undefined {
  const entries: { key: string; lines: string[]; start: number }[] = [];
  const [stray, joined, colons]: [number[], number[], number[]] = [[], [], []];
  let open = 0;
  for (const [index, line] of lines.entries()) {
    const current = entries.at(-1);
    if (open > 0 && current !== undefined) {
      open += depthOf(line);
      current.lines.push(line);
      continue;
    }
    const key = readKey(line) ?? readLooseKey(line);
    if (key !== undefined) {
      if (readKey(line) === undefined) colons.push(index);
      open = brackets && /^[ \t]*[[{]/.test(key.rest) ? depthOf(key.rest) : 0;
      entries.push({
        key: key.key,
        lines: [readKey(line) === undefined ? `${key.key}: ${key.rest}` : line],
        start: index,
      });
    } else if (current === undefined) {
      if (line.trim() !== "" && !line.startsWith("#")) stray.push(index);
    } else if (line.trim() === "" || /^(?:[ \t]|#|-(?:[ \t]|$))/.test(line)) current.lines.push(line);
    else {
      joined.push(index);
      current.lines.push(`  ${line}`);
    }
  }
  return open > 0 ? undefined : { entries, stray, joined, colons };
}

function readLooseKey(line: string): KeyLine | undefined {
  const match = LOOSE_KEY.exec(line);
  return match === null ? undefined : { key: match[1] ?? "", rest: match[2] ?? "" };
}

/** Everything is moved in by the same amount in files that were pasted from a list or a quotation. */
function marginOf(lines: readonly string[]): number {
  const first = lines.find((line) => line.trim() !== "");
  return first === undefined ? 0 : first.length - first.trimStart().length;
}

/** How many brackets a line opens, less those that it closes. Brackets in quotes are text. */
function depthOf(line: string): number {
  let depth = 0;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at] ?? "";
    if (quote !== "") {
      if (char === "\\" && quote === '"') at += 1;
      else if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
  }
  return depth;
}

// Repairs of single lines. Each keeps the number of lines, so that warnings name lines of the file.

interface Repair {
  readonly code: string;
  readonly message: string;
  readonly index: number;
}

interface Repaired {
  readonly lines: readonly string[];
  readonly repairs: readonly Repair[];
}

/** Indentation, an optional dash, a key with its colon, and the value. */
const PAIR = /^([ \t]*(?:- +)?(?:"[^"]*"|'[^']*'|[\w@./-][\w@./ -]{0,80}?):[ \t]+)(\S.*)$/;
const ITEM = /^([ \t]*- +)(\S.*)$/;
/** Characters with a special meaning at the start of a value. */
const SPECIAL = /^(?:[@`%&*!?|>,\]}#[{]|- )/;

function untab(lines: readonly string[]): Repaired {
  const repairs: Repair[] = [];
  const fixed = lines.map((line, index) => {
    if (!/^ *\t/.test(line) && !/:\t/.test(line)) return line;
    repairs.push({ code: "TAB_INDENT", message: "A tab where YAML needs spaces is read as two spaces.", index });
    return line.replace(/^[ \t]+/, (indent) => indent.replaceAll("\t", "  ")).replace(/:\t+/, ": ");
  });
  return { lines: fixed, repairs };
}

/** Puts quotes around values that YAML reads as something else than text. */
function quoteValues(lines: readonly string[]): Repaired {
  const repairs: Repair[] = [];
  let block = -1;
  const fixed = lines.map((line, index) => {
    const indent = line.length - line.trimStart().length;
    // Lines of a block scalar are skipped.
    if (block >= 0 && (line.trim() === "" || indent > block)) return line;
    block = -1;
    const match = PAIR.exec(line) ?? ITEM.exec(line);
    const [head, value] = [match?.[1], match?.[2]?.trimEnd()];
    if (head === undefined || value === undefined) return line;
    if (/^[|>][-+0-9]*(?:[ \t]+#.*)?$/.test(value)) {
      block = indent;
      return line;
    }
    const why = quoteReason(value, "The value");
    if (why === undefined) return line;
    repairs.push({ ...why, index });
    return `${head}${JSON.stringify(withoutQuotes(value))}`;
  });
  return { lines: fixed, repairs };
}

/** @param what The value's name in the message. */
function quoteReason(value: string, what: string): Omit<Repair, "index"> | undefined {
  if (/^["']/.test(value)) {
    if (isQuoted(value)) return undefined;
    return {
      code: "BAD_QUOTES",
      message: `${what} continues after its quotes, or they are not closed; it is read as text.`,
    };
  }
  // A list or an object in one line is for the parser to judge.
  if (/^[[{].*[\]}],?$/.test(value)) return undefined;
  if (SPECIAL.test(value)) {
    return {
      code: "UNQUOTED_SPECIAL",
      message: `${what} starts with "${value[0]}" and needs quotes; it is read as text.`,
    };
  }
  if (/:(?:[ \t]|$)/.test(value)) {
    return { code: "UNQUOTED_COLON", message: `${what} has a colon in it and needs quotes; it is read as text.` };
  }
  return undefined;
}

/** Quotes right around the value, and none inside that would end it early. */
function isQuoted(value: string): boolean {
  return /^"(?:[^"\\]|\\.)*"(?:[ \t]+#.*)?$/.test(value) || /^'(?:[^']|'')*'(?:[ \t]+#.*)?$/.test(value);
}

/** Removes quotes around the whole text; quotes inside are part of it. */
function withoutQuotes(value: string): string {
  const match = /^(["'])(.*)\1$/s.exec(value) ?? /^(["'])([^"']*)$/s.exec(value);
  if (match === null) return value;
  const inner = match[2] ?? "";
  return match[1] === '"' ? inner.replaceAll('\\"', '"') : inner.replaceAll("''", "'");
}

/** Gives every line the indentation of its level where the file uses several for one level. */
function reindent(lines: readonly string[]): Repaired {
  const repairs: Repair[] = [];
  const levels = [0];
  let opens = true;
  const fixed = lines.map((line, index) => {
    const text = line.trim();
    if (text === "" || text.startsWith("#") || index === 0) return line;
    const indent = line.length - line.trimStart().length;
    while (levels.length > 2 && indent < (levels.at(-1) ?? 0)) levels.pop();
    if (indent > (levels.at(-1) ?? 0) && (opens || levels.length === 1)) levels.push(indent);
    opens = text.endsWith(":") || /^- \S.*:/.test(text);
    const wanted = "  ".repeat(levels.length - 1);
    if (wanted.length !== indent) {
      repairs.push({
        code: "BAD_INDENT",
        message: "The indentation does not match the lines around it; it is corrected.",
        index,
      });
    }
    return wanted + text;
  });
  return { lines: fixed, repairs };
}

const MAX_JSON5_DEPTH = 64;

/** @returns undefined if the text is not a JSON5 list or object. Excessive nesting and `__proto__` are dropped. */
export function parseJson5(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return toPlainJson(JSON5.parse(text), 0);
  } catch {
    return undefined;
  }
}

function toPlainJson(value: unknown, depth: number): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_JSON5_DEPTH) return null;
  if (Array.isArray(value)) return value.map((item) => toPlainJson(item, depth + 1));
  const entries = Object.entries(value).filter(([key]) => key !== "__proto__");
  return Object.fromEntries(entries.map(([key, item]) => [key, toPlainJson(item, depth + 1)]));
}
