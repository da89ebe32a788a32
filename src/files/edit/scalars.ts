/** The plain values of a document with their places in its text, in the order of the text. */
import type { BracketNode } from "./bracket-tree.ts";
import { outlineJson } from "./json-outline.ts";

export interface PlacedScalar {
  /** Keys, and places in lists. */
  readonly path: readonly (string | number)[];
  /** In the text, with quotes. */
  readonly start: number;
  readonly end: number;
  /** What it says; for what is no text, as it is written. */
  readonly value: string;
}

/** JSON, JSONC and JSON5. Throws for what is none of them. */
export function jsonScalars(text: string): PlacedScalar[] {
  const root = outlineJson(text);
  return root === undefined ? [] : bracketScalars(text, root, []);
}

export function bracketScalars(text: string, node: BracketNode, path: PlacedScalar["path"]): PlacedScalar[] {
  const { kind, start, end } = node;
  if (kind === "scalar") return [{ path, start, end, value: node.string ?? text.slice(start, end) }];
  return node.members.flatMap(({ key, value }, index) => bracketScalars(text, value, [...path, key ?? index]));
}
