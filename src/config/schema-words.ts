/** Says in a person's words what a schema allows and what was found instead. */
import { isJsonObject } from "../model/json.ts";
import type { SchemaNode } from "./json-schema.ts";

/** Such as `a whole number above 0`, `"stdio", "http" or "sse"`, `false or an object`. */
export function allowedBy(node: SchemaNode): string {
  const options = node.anyOf ?? node.oneOf;
  if (options !== undefined) {
    const kinds = options.map((option) => option.properties?.["type"]?.const);
    if (kinds.every((kind) => kind !== undefined)) {
      return `an object with type ${either(kinds.map((kind) => JSON.stringify(kind)))}`;
    }
    return either(options.map(allowedBy));
  }
  if (node.const !== undefined) return JSON.stringify(node.const);
  if (node.enum !== undefined) return either(node.enum.map((value) => JSON.stringify(value)));
  switch (node.type) {
    case "string":
      return (node.minLength ?? 0) > 0 ? "a text that is not empty" : "a text";
    case "integer":
      return `a whole number${boundOf(node)}`;
    case "number":
      return `a number${boundOf(node)}`;
    case "boolean":
      return "true or false";
    case "null":
      return "null";
    case "array":
      return `a list${node.items?.type === "string" ? " of texts" : ""}`;
    case "object": {
      const values = node.additionalProperties;
      return typeof values === "object" && values.type === "string" ? "an object of texts" : "an object";
    }
    default:
      return "any value";
  }
}

/** The kind of a value. The value itself is given only where it can be no secret. */
export function foundIn(value: unknown, show: "value" | "kind"): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isJsonObject(value)) return "an object";
  if (value === "") return "an empty text";
  const shown = JSON.stringify(value);
  if (show === "value" && shown !== undefined && shown.length <= 42) return shown;
  return typeof value === "string" ? "a text" : `a ${typeof value}`;
}

function boundOf(node: SchemaNode): string {
  if (node.exclusiveMinimum !== undefined) return ` above ${node.exclusiveMinimum}`;
  return node.minimum === undefined ? "" : ` from ${node.minimum}`;
}

function either(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? "nothing";
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
