/** The places of the tables and keys of a TOML document, as a flat list in the order of the text. */
import { parseDocument } from "@decimalturn/toml-patch";
import type { BracketMember, BracketNode } from "../bracket-tree.ts";
import { pastLineComments } from "../lines.ts";

export interface TomlSection {
  /** Empty for what stands before the first header. */
  readonly path: readonly string[];
  /** `[[name]]`: one item of a list. */
  readonly isItem: boolean;
  readonly start: number;
  /** The end of its last row, or of its header. */
  readonly end: number;
  readonly rows: readonly TomlRow[];
}

export interface TomlRow {
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
export function outlineToml(text: string): [TomlSection, ...TomlSection[]] {
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
    return {
      kind: "scalar",
      start,
      end,
      members: [],
      ...(typeof value.value === "string" ? { string: value.value } : {}),
    };
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
      ...(at === undefined ? {} : { comma: at }),
    };
  });
  return { kind: isTable ? "object" : "list", start, end, members };
}

function commaBehind(text: string, from: number): number | undefined {
  let at = from;
  while (at < text.length && text[at] !== ",") at = Math.max(at + 1, pastLineComments(text, at, "hashes"));
  return at < text.length ? at : undefined;
}
