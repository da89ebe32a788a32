/**
 * Edits TOML. An entry is one or more tables with headers, rows with dotted keys, or part of an inline table; a new one is
 * written like its neighbours. The package's own `patch` always writes inline tables at the top, so only its parser is
 * used.
 */
import { parse, parseDocument } from "@decimalturn/toml-patch";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import {
  bracketScalars,
  type PlacedScalar,
  type BracketMember,
  type BracketNode,
  type BracketStyle,
  indexOfStep,
  insertMember,
  removeMember,
} from "./brackets.ts";
import {
  type FormatEditor,
  nestedValue,
  notAContainer,
  outermostRemovable,
  type PathStep,
  type SetResult,
  valueAt,
} from "./text-editor.ts";
import {
  beforeLineBreak,
  indentAt,
  lineBreakOf,
  lineEnd,
  lineStart,
  pastLineBreak,
  pastLineComments,
  splice,
} from "./text-lines.ts";
import { TextSyntaxError, TOO_DEEP_MESSAGE, tooDeepAt } from "./text-syntax.ts";

/** Includes one empty line before the table, as new ones are written; at the top, the one after it. */
const tableRange: RangeOf = (text, table) => {
  const [from, to] = rowRange(text, table);
  if (from > 0 && text[from - 1] === "\n") return [beforeLineBreak(text, from), to];
  return [from, from === 0 && text.slice(to).trim() !== "" ? pastLineBreak(text, to) : to];
};
const rowRange: RangeOf = (text, { start, end }) => {
  const from = lineStart(text, start);
  const to = lineEnd(text, end);
  return from === 0 ? [0, pastLineBreak(text, to)] : [beforeLineBreak(text, from), to];
};
export const TOML_EDITOR: FormatEditor = {
  format: "toml",
  read: readToml,
  set: setInToml,
  remove: (text, path, alsoFrom) => removeToml(text, keysOf(path), alsoFrom, inlineStyle(text)),
};

function readToml(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    // The stack ran out; the package reports some of these cases as an error of syntax.
    if (error instanceof RangeError || tooDeepAt(text) !== undefined) throw new RangeError(TOO_DEEP_MESSAGE);
    const { line, column, message } = error as { line?: unknown; column?: unknown; message?: unknown };
    throw new TextSyntaxError(messageFor(String(message)), Number(line ?? 1), Number(column ?? 0) + 1);
  }
}

/** The package's messages quote the line. */
function messageFor(message: string): string {
  if (/already|redefin|duplicate/i.test(message)) return "this is defined twice";
  if (/EOF|end of file|close of string|unterminated/i.test(message)) return "something is not closed or not complete";
  return "this is not TOML";
}

function setInToml(text: string, path: readonly PathStep[], value: unknown): SetResult {
  const keys = keysOf(path);
  const document = readToml(text);
  const missing = keys.findIndex((_, index) => valueAt(document, keys.slice(0, index + 1)) === undefined);
  const madeFrom = missing === -1 ? keys.length : missing;
  const sections = outlineToml(text);
  const item = sections.find((section) => section.isItem && isBelow(keys, section.path));
  if (item !== undefined) throw notAContainer(item.path, "");
  const inline = sections.flatMap(({ rows }) => rows).find((row) => isBelow(keys, row.path));
  if (inline !== undefined) return { text: setInline(text, inline, keys, value), madeFrom };
  if (missing === -1) return { text: replaceEntry(text, sections, keys, value), madeFrom };
  return { text: addEntry(text, keys, value), madeFrom };
}

function keysOf(path: readonly PathStep[]): string[] {
  return path.map((step) => {
    if (typeof step === "string") return step;
    throw new ToolcribError("invalid_arguments", "items of lists cannot be edited in TOML");
  });
}

/** The value of a row, or something in its inline table. */
function setInline(text: string, row: TomlRow, keys: readonly string[], value: unknown): string {
  let node = row.value;
  for (let index = row.path.length; index < keys.length; index++) {
    const key = keys[index] ?? "";
    if (node.kind !== "object") throw notAContainer(keys.slice(0, index), key);
    const member = node.members[indexOfStep(node, key)];
    if (member === undefined) {
      const rendered = renderRow([key], nestedValue(keys.slice(index + 1), value));
      return insertMember(text, node, () => rendered, inlineStyle(text));
    }
    node = member.value;
  }
  return splice(text, node.start, node.end, renderInline(value));
}

/** For entries with headers or dotted keys: the new one takes the place of the first part of the old one. */
function replaceEntry(text: string, sections: readonly TomlSection[], keys: readonly string[], value: unknown): string {
  const tables = sections.filter(({ path }) => isBelow(path, keys));
  const rows = sections
    .filter((section) => !tables.includes(section))
    .flatMap((section) => section.rows.map((row) => ({ ...row, depth: section.path.length })))
    .filter(({ path }) => isBelow(path, keys));
  const [table, ...otherTables] = tables;
  const [row, ...otherRows] = rows;
  if (row !== undefined && row.start < (table?.start ?? Infinity)) {
    const without = cutAll(text, tables, otherRows);
    return splice(without, row.start, row.end, renderRow(keys.slice(row.depth), value));
  }
  if (table === undefined) return text;
  if (row !== undefined || !isJsonObject(value)) return addEntry(cutAll(text, tables, rows), keys, value);
  const style = { lineBreak: lineBreakOf(text), indent: indentAt(text, table.start) };
  const rendered = renderTable(keys, value, style).slice(style.indent.length);
  return splice(cutAll(text, otherTables, []), table.start, table.end, rendered);
}

function addEntry(text: string, keys: readonly string[], value: unknown): string {
  const sections = outlineToml(text);
  const parent = keys.slice(0, -1);
  const dotted = sections.findLast(({ path, rows }) =>
    rows.some((row) => parent.length > path.length && row.path.length > parent.length && isBelow(row.path, parent)),
  );
  const home =
    dotted ?? sections.find(({ path, isItem }) => !isItem && path.length === parent.length && isBelow(parent, path));
  if (dotted !== undefined && home !== undefined) {
    const last = dotted.rows.findLast((row) => isBelow(row.path, parent));
    return addRow(text, sections, home, last, renderRow(keys.slice(home.path.length), value));
  }
  if (home !== undefined && (!isJsonObject(value) || hasInlineTables(sections, home))) {
    return addRow(text, sections, home, home.rows.at(-1), renderRow(keys.slice(-1), value));
  }
  if (isJsonObject(value)) return addTable(text, sections, keys, value);
  return addTable(text, sections, parent, { [keys.at(-1) ?? ""]: value });
}

/** A table whose entries are all written in one line each. */
function hasInlineTables(sections: readonly TomlSection[], home: TomlSection): boolean {
  if (home.path.length === 0) return false;
  const hasHeaders = sections.some(({ path }) => path.length > home.path.length && isBelow(path, home.path));
  return !hasHeaders && home.rows.some(({ value }) => value.kind === "object");
}

function addRow(
  text: string,
  sections: readonly TomlSection[],
  home: TomlSection,
  last: TomlRow | undefined,
  rendered: string,
): string {
  const lineBreak = lineBreakOf(text);
  if (last !== undefined || home.path.length > 0) {
    const at = lineEnd(text, last?.end ?? home.end);
    return splice(text, at, at, `${lineBreak}${indentAt(text, last?.start ?? home.start)}${rendered}`);
  }
  // Before the first header, since nothing behind it is at the top.
  const header = sections[1];
  if (header === undefined) return addAtEnd(text, rendered, lineBreak);
  const at = lineStart(text, header.start);
  const above = at === 0 ? lineBreak : text.slice(at - (text[at - 2] === "\r" ? 2 : 1), at);
  return splice(text, at, at, rendered + above);
}

function addTable(text: string, sections: readonly TomlSection[], keys: readonly string[], value: JsonObject): string {
  const lineBreak = lineBreakOf(text);
  const [first = ""] = keys;
  const neighbour = sections.findLast(({ path }) => path[0] === first);
  const indent = neighbour === undefined ? "" : indentAt(text, neighbour.start);
  const rendered = renderTable(keys, value, { lineBreak, indent });
  if (neighbour === undefined) return addAtEnd(text, rendered, lineBreak + lineBreak);
  const at = pastOwnComments(text, lineEnd(text, neighbour.end));
  return splice(text, at, at, lineBreak + lineBreak + rendered);
}

/** Behind the last line that says something; empty lines at the end stay there. */
function addAtEnd(text: string, rendered: string, gap: string): string {
  const content = text.trimEnd();
  if (content === "") return rendered + lineBreakOf(text) + text;
  const at = lineEnd(text, content.length);
  return splice(text, at, at, gap + rendered);
}

/** Comments right below a table belong to it, unless the next header follows them at once. */
function pastOwnComments(text: string, end: number): number {
  let past = end;
  for (;;) {
    const next = pastLineBreak(text, past);
    const line = text.slice(next, lineEnd(text, next));
    if (/^\s*\[/.test(line)) return end;
    if (next === past || !/^\s*#/.test(line)) return past;
    past = next + line.length;
  }
}

function inlineStyle(text: string): BracketStyle {
  return { comments: "hashes", lineBreak: lineBreakOf(text), unit: "  ", flat: true, space: " " };
}

// Removing tables and rows, with the line breaks before them.

/** `alsoFrom` as in TextEditor. */
function removeToml(text: string, keys: readonly string[], alsoFrom: number, style: BracketStyle): string {
  const sections = outlineToml(text);
  const inline = sections
    .flatMap(({ rows }) => rows)
    .find((row) => row.path.length < keys.length && isBelow(keys, row.path));
  if (inline !== undefined) return removeInline(text, inline, keys, alsoFrom, style);
  const tables = sections.filter(({ path }) => path.length > 0 && isBelow(path, keys));
  const rows = sections.flatMap((section) => (tables.includes(section) ? [] : section.rows));
  const without = cutAll(
    text,
    tables,
    rows.filter(({ path }) => isBelow(path, keys)),
  );
  return removeEmptyTables(without, keys, alsoFrom);
}

/** The text without these tables, their rows included, and without these rows of others. */
function cutAll(text: string, tables: readonly TomlSection[], rows: readonly TomlRow[]): string {
  const parts = [
    ...tables.map(({ start, end }) => ({ start, end, rangeOf: tableRange })),
    ...rows.map(({ start, end }) => ({ start, end, rangeOf: rowRange })),
  ];
  // From the end on, so that the places of the others stay right.
  return parts
    .toSorted((one, other) => other.start - one.start)
    .reduce((left, part) => splice(left, ...part.rangeOf(left, part), ""), text);
}

function isBelow(path: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((key, index) => path[index] === key);
}

function removeInline(
  text: string,
  row: TomlRow,
  keys: readonly string[],
  alsoFrom: number,
  style: BracketStyle,
): string {
  const first = row.path.length;
  const trail: { node: BracketNode; index: number }[] = [];
  let node = row.value;
  for (const key of keys.slice(first)) {
    const index = indexOfStep(node, key);
    const member = node.members[index];
    if (member === undefined) return text;
    trail.push({ node, index });
    node = member.value;
  }
  const from = outermostRemovable(keys.length, alsoFrom, (step) => trail[step - first]?.node.members.length === 1);
  if (from < first) return splice(text, ...rowRange(text, row), "");
  const place = trail[from - first];
  return place === undefined ? text : removeMember(text, place.node, place.index, style);
}

/** A table that was made for one entry has nothing but its header left. */
function removeEmptyTables(text: string, keys: readonly string[], alsoFrom: number): string {
  let left = text;
  for (let length = keys.length - 1; length > Math.max(alsoFrom, 0); length--) {
    const path = keys.slice(0, length);
    const [table, ...more] = outlineToml(left).filter(
      (section) => section.path.length > 0 && isBelow(section.path, path),
    );
    if (table === undefined) continue;
    if (more.length > 0 || table.path.length > length || table.rows.length > 0) break;
    left = splice(left, ...tableRange(left, table), "");
  }
  return left;
}

type RangeOf = (text: string, place: { readonly start: number; readonly end: number }) => [number, number];

// Rendering values: tables with headers, inline behind a key.

interface TomlStyle {
  readonly lineBreak: string;
  /** Before headers and rows. */
  readonly indent: string;
}

/** A table with its header, followed by its inner tables with theirs. */
function renderTable(path: readonly string[], table: JsonObject, style: TomlStyle): string {
  const entries = Object.entries(table);
  const rows = entries.filter(([, value]) => !isTable(value)).map(([key, value]) => renderRow([key], value));
  const own = [`[${renderKey(path)}]`, ...rows].map((line) => style.indent + line).join(style.lineBreak);
  const inner = entries.flatMap(([key, value]) => (isTable(value) ? [renderTable([...path, key], value, style)] : []));
  return [own, ...inner].join(style.lineBreak + style.lineBreak);
}

function renderRow(path: readonly string[], value: unknown): string {
  return `${renderKey(path)} = ${renderInline(value)}`;
}

function renderInline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(renderInline).join(", ")}]`;
  if (typeof value === "string") return renderText(value);
  if (typeof value === "number") return renderNumber(value);
  if (typeof value === "boolean") return String(value);
  if (!isJsonObject(value)) throw new ToolcribError("invalid_arguments", "TOML cannot express null");
  const rows = Object.entries(value).map(([key, item]) => renderRow([key], item));
  return rows.length === 0 ? "{}" : `{ ${rows.join(", ")} }`;
}

function renderKey(path: readonly string[]): string {
  return path.map((key) => (/^[\w-]+$/.test(key) ? key : renderText(key))).join(".");
}

/** A JSON text is a basic string of TOML, but for one character. */
function renderText(text: string): string {
  return JSON.stringify(text).replaceAll("\u007F", "\\u007F");
}

/** Integers of TOML have 64 bits; what a number of JSON cannot hold exactly is written as a float. */
function renderNumber(value: number): string {
  const text = JSON.stringify(value);
  return Number.isSafeInteger(value) || /[.e]/.test(text) ? text : `${text}.0`;
}

function isTable(value: unknown): value is JsonObject {
  return isJsonObject(value) && Object.keys(value).length > 0;
}

// The tables and keys of a document with their offsets, as a flat list in the order of the text.

interface TomlSection {
  /** Empty for what precedes the first header. */
  readonly path: readonly string[];
  /** `[[name]]`: one item of a list. */
  readonly isItem: boolean;
  readonly start: number;
  /** The end of its last row, or of its header. */
  readonly end: number;
  readonly rows: readonly TomlRow[];
}

interface TomlRow {
  /** From the root of the document on. */
  readonly path: readonly string[];
  readonly start: number;
  readonly end: number;
  readonly value: BracketNode;
}

type Block = ReturnType<typeof parseDocument>["cst"][number];
type KeyValue = Extract<Block, { equals: number }>;
type Value = KeyValue["value"];

/** The first one has no header and is always there. */
function outlineToml(text: string): [TomlSection, ...TomlSection[]] {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const { cst } = parseDocument(text);
  // `loc` counts lines from 1 and columns from 0.
  const offset = ({ line, column }: { line: number; column: number }): number => (starts[line - 1] ?? 0) + column;
  const row = (item: KeyValue, above: readonly string[]): TomlRow => ({
    path: [...above, ...item.key.value],
    start: offset(item.key.loc.start),
    end: offset(item.value.loc.end),
    value: nodeOf(item.value, offset, text),
  });
  const sections: TomlSection[] = [];
  const loose: TomlRow[] = [];
  for (const block of cst) {
    if ("equals" in block) loose.push(row(block, []));
    else if ("items" in block) {
      const path = block.key.item.value;
      const start = offset(block.key.loc.start);
      const rows = block.items.flatMap((item) => ("equals" in item ? [row(item, path)] : []));
      const end = rows.at(-1)?.end ?? offset(block.key.loc.end);
      sections.push({
        path,
        isItem: text.startsWith("[[", start),
        start,
        end,
        rows,
      });
    }
  }
  return [{ path: [], isItem: false, start: 0, end: loose.at(-1)?.end ?? 0, rows: loose }, ...sections];
}

type ToOffset = (position: { line: number; column: number }) => number;

function nodeOf(value: Value, offset: ToOffset, text: string): BracketNode {
  const start = offset(value.loc.start);
  const end = offset(value.loc.end);
  if (!("items" in value)) {
    const string = typeof value.value === "string" ? value.value : undefined;
    return { kind: "scalar", start, end, members: [], string };
  }
  const isTable = text[start] === "{";
  const members = value.items.map(({ item, comma }): BracketMember => {
    // The items of a table are keys with values, those of a list are values.
    const inner = item as Value | KeyValue;
    const isRow = "equals" in inner;
    const node = nodeOf(isRow ? inner.value : inner, offset, text);
    const key = isRow && inner.key.value.length === 1 ? { key: inner.key.value[0] ?? "" } : {};
    const at = comma ? commaBehind(text, node.end) : undefined;
    return {
      ...key,
      start: isRow ? offset(inner.key.loc.start) : node.start,
      end: node.end,
      value: node,
      comma: at,
    };
  });
  return { kind: isTable ? "object" : "list", start, end, members };
}

function commaBehind(text: string, from: number): number | undefined {
  let at = from;
  while (at < text.length && text[at] !== ",") at = Math.max(at + 1, pastLineComments(text, at, "hashes"));
  return at < text.length ? at : undefined;
}

export function tomlScalars(text: string): PlacedScalar[] {
  return outlineToml(text).flatMap(({ rows }) => rows.flatMap(({ path, value }) => bracketScalars(text, value, path)));
}
