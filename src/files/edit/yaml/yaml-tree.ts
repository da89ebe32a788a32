/** The places of the entries of a YAML document: of blocks here, of what stands between brackets as a BracketNode. */
import {
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  parseDocument,
  type CST,
  type Document,
  type Pair,
  type ParsedNode,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import type { BracketMember, BracketNode } from "../bracket-tree.ts";

export interface YamlBlock {
  readonly kind: "map" | "list";
  readonly entries: readonly YamlEntry[];
  /** The end of the last thing in it that is no comment. */
  readonly end: number;
}

export interface YamlEntry {
  /** Of a map's entry. */
  readonly key?: string;
  /** Where the key, or the dash of an item, stands. */
  readonly start: number;
  /** Behind the colon or the dash. */
  readonly after: number;
  readonly value: YamlValue;
  readonly end: number;
}

export type YamlValue =
  | YamlBlock
  | { readonly kind: "flow"; readonly node: BracketNode; readonly end: number }
  /** A key with nothing behind it, which YAML takes for null. */
  | { readonly kind: "empty"; readonly end: number }
  | { readonly kind: "scalar"; readonly start: number; readonly end: number; readonly string?: string };

export function parseYaml(text: string): Document.Parsed {
  return parseDocument(text, { keepSourceTokens: true, prettyErrors: false });
}

/** Undefined for a text without a document. */
export function outlineYaml(text: string): YamlValue | undefined {
  const { contents } = parseYaml(text);
  const root = valueOf(text, contents, 0);
  return root.kind === "empty" ? undefined : root;
}

function valueOf(text: string, node: unknown, fallback: number): YamlValue {
  if (!isNode(node) || node.range == null) return { kind: "empty", end: fallback };
  if ((isMap(node) || isSeq(node)) && isBracketed(node)) {
    return { kind: "flow", node: bracketOf(node, fallback), end: node.range[1] };
  }
  if (isMap(node))
    return blockOf(
      "map",
      node.items.map((pair) => entryOfPair(text, pair)),
      node.range[0],
    );
  if (isSeq(node)) return blockOf("list", itemsOf(text, node), node.range[0]);
  const [start, end] = node.range;
  if (isScalar(node) && node.source === "" && start === end) return { kind: "empty", end: fallback };
  const string = isScalar(node) && typeof node.value === "string" ? { string: node.value } : {};
  return { kind: "scalar", start, end: isAlias(node) ? end : contentEnd(text, start, end), ...string };
}

function blockOf(kind: "map" | "list", entries: readonly YamlEntry[], start: number): YamlBlock {
  return { kind, entries, end: entries.at(-1)?.end ?? start };
}

/** A block of text goes to the line break behind it, and past empty lines; those count only if it says to keep them. */
function contentEnd(text: string, start: number, end: number): number {
  const isKept = /^[|>]\d?\+/.test(text.slice(start, start + 3));
  return isKept ? end : start + text.slice(start, end).trimEnd().length;
}

function entryOfPair(text: string, pair: Pair): YamlEntry {
  const key = scalarKey(pair);
  const token = pair.srcToken;
  const keyEnd = isNode(pair.key) ? (pair.key.range?.[1] ?? 0) : 0;
  const colon = token?.sep?.find(({ type }) => type === "map-value-ind");
  const after = colon === undefined ? keyEnd : colon.offset + 1;
  const value = valueOf(text, pair.value, after);
  return { ...key, start: startOf(token?.start, pair.key), after, value, end: value.end };
}

function itemsOf(text: string, node: YAMLSeq): YamlEntry[] {
  const tokens = node.srcToken?.type === "block-seq" ? node.srcToken.items : [];
  const dashes = tokens.flatMap(({ start }) => start.filter(({ type }) => type === "seq-item-ind"));
  return node.items.map((item, index) => {
    const start = dashes[index]?.offset ?? 0;
    const value = valueOf(text, item, start + 1);
    return { start, after: start + 1, value, end: value.end };
  });
}

function isBracketed(node: YAMLMap | YAMLSeq): boolean {
  return node.srcToken?.type === "flow-collection";
}

function bracketOf(node: unknown, fallback: number): BracketNode {
  if (!isNode(node) || node.range == null) return { kind: "scalar", start: fallback, end: fallback, members: [] };
  const [start, end] = node.range;
  if (!isMap(node) && !isSeq(node)) {
    const string = isScalar(node) && typeof node.value === "string" ? { string: node.value } : {};
    return { kind: "scalar", start, end, members: [], ...string };
  }
  const tokens = node.srcToken?.type === "flow-collection" ? node.srcToken.items : [];
  const members = node.items.map((item, index): BracketMember => {
    const comma = tokens[index + 1]?.start.find(({ type }) => type === "comma");
    const member = isPair(item) ? memberOf(item) : itemOf(item, tokens[index]?.start);
    return comma === undefined ? member : { ...member, comma: comma.offset };
  });
  return { kind: isMap(node) ? "object" : "list", start, end, members };
}

function memberOf(pair: Pair): BracketMember {
  const keyEnd = isNode(pair.key) ? (pair.key.range?.[1] ?? 0) : 0;
  const value = bracketOf(pair.value, keyEnd);
  const token = pair.srcToken;
  const colon = token?.sep?.find(({ type }) => type === "map-value-ind");
  const end = Math.max(value.end, colon === undefined ? keyEnd : colon.offset + 1);
  return { ...scalarKey(pair), start: startOf(token?.start, pair.key), end, value };
}

function itemOf(item: unknown, tokens: readonly CST.SourceToken[] | undefined): BracketMember {
  const value = bracketOf(item, 0);
  return { start: startOf(tokens, item), end: value.end, value };
}

function scalarKey(pair: Pair): { key?: string } {
  return isScalar(pair.key) ? { key: String(pair.key.value) } : {};
}

const TRIVIA: readonly string[] = ["space", "newline", "comment", "comma"];

/** An anchor, a tag or the question mark of a long key belongs to the entry. */
function startOf(tokens: readonly CST.SourceToken[] | undefined, node: unknown): number {
  const first = tokens?.find(({ type }) => !TRIVIA.includes(type));
  if (first !== undefined) return first.offset;
  // Every node of a parsed document has a range.
  return isNode(node) ? ((node as ParsedNode).range[0] ?? 0) : 0;
}
