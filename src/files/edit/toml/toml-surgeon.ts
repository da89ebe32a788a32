/**
 * TOML. An entry may be a table with a header, or several, or rows with dotted keys, or stand in an inline table; a new one
 * is written as its neighbours are. The package's own `patch` writes inline tables at the top whatever the file does, so
 * only its parser is used.
 */
import { parse } from "@decimalturn/toml-patch";
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import { insertMember, type BracketStyle } from "../bracket-edit.ts";
import { indexOfStep } from "../bracket-tree.ts";
import { indentAt, lineBreakOf, lineEnd, lineStart, pastLineBreak } from "../lines.ts";
import { nestedValue, notAContainer, valueAt } from "../paths.ts";
import type { PathStep, SetResult, Surgeon } from "../text-editor.ts";
import { TextSyntaxError } from "../text-syntax-error.ts";
import { cutAll, isBelow, removeToml, splice } from "./toml-cut.ts";
import { renderInline, renderRow, renderTable } from "./toml-render.ts";
import { outlineToml, type TomlRow, type TomlSection } from "./toml-tree.ts";

export const TOML: Surgeon = {
  format: "toml",
  read,
  set,
  remove: (text, path, alsoFrom) => removeToml(text, keysOf(path), alsoFrom, inlineStyle(text)),
};

function read(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    // The stack ran out.
    if (error instanceof RangeError) throw error;
    const { line, column, message } = error as { line?: unknown; column?: unknown; message?: unknown };
    throw new TextSyntaxError(wordsFor(String(message)), Number(line ?? 1), Number(column ?? 0) + 1);
  }
}

/** The package's messages quote the line. */
function wordsFor(message: string): string {
  if (/already|redefin|duplicate/i.test(message)) return "this is defined twice";
  if (/EOF|end of file|close of string|unterminated/i.test(message)) return "something is not closed or not complete";
  return "this is not TOML";
}

function set(text: string, path: readonly PathStep[], value: unknown): SetResult {
  const keys = keysOf(path);
  const document = read(text);
  const missing = keys.findIndex((_, index) => valueAt(document, keys.slice(0, index + 1)) === undefined);
  const madeFrom = missing === -1 ? keys.length : missing;
  const sections = outlineToml(text);
  const item = sections.find((section) => section.isItem && isBelow(keys, section.path));
  if (item !== undefined) throw notAContainer(item.path, "");
  const inline = sections.flatMap(({ rows }) => rows).find((row) => isBelow(keys, row.path));
  if (inline !== undefined) return { text: setInline(text, inline, keys, value), madeFrom };
  if (missing === -1) return { text: replace(text, sections, keys, value), madeFrom };
  return { text: add(text, sections, keys, value), madeFrom };
}

function keysOf(path: readonly PathStep[]): string[] {
  return path.map((step) => {
    if (typeof step === "string") return step;
    throw new ToolcribError("invalid_arguments", "items of lists are not edited in TOML");
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

/** What is written with headers or dotted keys: the new one stands where the first part of the old one stood. */
function replace(text: string, sections: readonly TomlSection[], keys: readonly string[], value: unknown): string {
  const tables = sections.filter(({ path }) => isBelow(path, keys));
  const rows = sections.flatMap((section) =>
    isBelow(section.path, keys)
      ? []
      : section.rows.filter(({ path }) => isBelow(path, keys)).map((row) => ({ row, section })),
  );
  const [table, ...otherTables] = tables;
  const [first, ...otherRows] = rows;
  if (first !== undefined) {
    const without = cutAll(
      text,
      tables,
      otherRows.map(({ row }) => row),
    );
    const rendered = renderRow(keys.slice(first.section.path.length), value);
    return first.row.start > (table?.start ?? Infinity)
      ? add(
          cutAll(
            text,
            tables,
            rows.map(({ row }) => row),
          ),
          undefined,
          keys,
          value,
        )
      : splice(without, first.row.start, first.row.end, rendered);
  }
  if (table === undefined) return text;
  const without = cutAll(text, otherTables, []);
  if (!isJsonObject(value)) return add(cutAll(text, tables, []), undefined, keys, value);
  const style = { lineBreak: lineBreakOf(text), indent: indentAt(text, table.start) };
  const rendered = renderTable(keys, value, style).slice(style.indent.length);
  return splice(without, table.start, table.end, rendered);
}

function add(text: string, known: readonly TomlSection[] | undefined, keys: readonly string[], value: unknown): string {
  const sections = known ?? outlineToml(text);
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
