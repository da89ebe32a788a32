/** Takes tables and rows out of TOML text, with the line breaks that stand before them. */
import { removeMember, type BracketStyle } from "../bracket-edit.ts";
import { indexOfStep, type BracketNode } from "../bracket-tree.ts";
import { beforeLineBreak, lineEnd, lineStart, pastLineBreak } from "../lines.ts";
import { soleFrom } from "../paths.ts";
import { outlineToml, type TomlRow, type TomlSection } from "./toml-tree.ts";

/** `alsoFrom` as in TextEditor. */
export function removeToml(text: string, keys: readonly string[], alsoFrom: number, style: BracketStyle): string {
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
export function cutAll(text: string, tables: readonly TomlSection[], rows: readonly TomlRow[]): string {
  const parts = [
    ...tables.map(({ start, end }) => ({ start, end, rangeOf: tableRange })),
    ...rows.map(({ start, end }) => ({ start, end, rangeOf: rowRange })),
  ];
  // From the end on, so that the places of the others stay right.
  return parts
    .toSorted((one, other) => other.start - one.start)
    .reduce((left, part) => splice(left, ...part.rangeOf(left, part), ""), text);
}

export function isBelow(path: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((key, index) => path[index] === key);
}

export function splice(text: string, from: number, to: number, by: string): string {
  return text.slice(0, from) + by + text.slice(to);
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
  const from = soleFrom(keys.length, alsoFrom, (step) => trail[step - first]?.node.members.length === 1);
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

/** One empty line before a table goes with it: new ones are written so. At the top it is the one behind. */
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
