/** Says in a person's words what a schema allows. */
import type { SchemaNode } from "./json-schema.ts";

const TYPES: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
  null: "nothing",
  array: "a list",
  object: "a map",
};

/** `text or a list`, `"tool"`, `a map of texts`. */
export function allowedBy(node: SchemaNode): string {
  if (node.anyOf !== undefined) return either([...new Set(node.anyOf.map(allowedBy))]);
  if (node.const !== undefined) return JSON.stringify(node.const);
  if (node.type === "object" && typeof node.additionalProperties === "object") {
    if (node.additionalProperties.type === "string") return "a map of texts";
  }
  if (node.type === "array" && node.items?.type === "string") return "a list of texts";
  return node.type === undefined ? "anything" : either([node.type].flat().map((type) => TYPES[type] ?? type));
}

/** What was found instead. */
export function foundIn(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "a map" : typeof value === "string" ? "text" : `a ${typeof value}`;
}

function either(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? "anything";
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
