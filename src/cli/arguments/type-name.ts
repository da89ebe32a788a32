/** A schema in a few words, for messages and for `--schema`. */
import { alternatives, fixedValues, itemSchema, type SchemaAt, typesOf } from "./json-schema.ts";

const MAX_VALUES = 12;

/** For example `integer 1..10`, `string[]` or `"low" | "high"`. */
export function typeName(at: SchemaAt, depth = 0): string {
  const names = alternatives(at).flatMap((branch) => branchNames(branch, depth));
  return [...new Set(names)].join(" | ");
}

function branchNames(at: SchemaAt, depth: number): string[] {
  const values = fixedValues(at.schema);
  if (values !== undefined) {
    const shown = values.slice(0, MAX_VALUES).map((value) => JSON.stringify(value));
    return values.length > MAX_VALUES ? [...shown, "…"] : shown;
  }
  const types = typesOf(at.schema);
  if (types.length === 0) return ["any"];
  return types.map((type) => {
    switch (type) {
      case "array":
        return arrayName(at, depth);
      case "number":
      case "integer":
        return `${type}${range(at.schema["minimum"], at.schema["maximum"])}`;
      case "string":
        return typeof at.schema["format"] === "string" ? `string (${at.schema["format"]})` : type;
      case "boolean":
      case "null":
      case "object":
        return type;
    }
  });
}

function arrayName(at: SchemaAt, depth: number): string {
  if (depth > 3) return "array";
  const element = typeName(itemSchema(at, 0), depth + 1);
  if (element === "any") return "array";
  return element.includes(" ") ? `(${element})[]` : `${element}[]`;
}

function range(minimum: unknown, maximum: unknown): string {
  const [from, to] = [minimum, maximum].map((limit) => (typeof limit === "number" ? String(limit) : ""));
  return from === "" && to === "" ? "" : ` ${from}..${to}`;
}
