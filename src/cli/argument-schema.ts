/** The part of JSON Schema that typing arguments needs. Servers use all drafts, so nothing here is strict. */
import { isJsonObject, type JsonObject, referencedIn } from "../model/json.ts";
import { type Column, firstLine } from "./table.ts";

export type SchemaType = "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";

const TYPES = new Set<unknown>(["string", "number", "integer", "boolean", "null", "array", "object"]);
/** Schemas may refer to themselves. No command line goes deeper than this. */
const MAX_SCHEMA_DEPTH = 8;

/** A schema together with the document that its `$ref`s point into. */
export interface SchemaNode {
  readonly schema: JsonObject;
  readonly root: JsonObject;
}

export function rootSchema(schema: JsonObject): SchemaNode {
  return { schema, root: schema };
}

/**
 * The alternatives of a schema as simple schemas: `$ref` followed, `allOf` merged, `anyOf` and `oneOf` spread out.
 * `{}` stands for anything.
 */
export function alternatives(at: SchemaNode, depth = 0): SchemaNode[] {
  if (depth > MAX_SCHEMA_DEPTH) return [{ schema: {}, root: at.root }];
  const schema = follow(at, depth);
  const branches = [schema["anyOf"], schema["oneOf"]].find((list) => Array.isArray(list) && list.length > 0);
  const { anyOf: _anyOf, oneOf: _oneOf, allOf, ...own } = schema;
  const parts = Array.isArray(allOf) ? allOf.filter(isJsonObject) : [];
  let found: SchemaNode[] = [{ schema: own, root: at.root }];
  for (const part of parts) found = combine(found, alternatives({ schema: part, root: at.root }, depth + 1), at.root);
  if (Array.isArray(branches)) {
    const spread = branches
      .filter(isJsonObject)
      .flatMap((branch) => alternatives({ schema: branch, root: at.root }, depth + 1));
    if (spread.length > 0) found = combine(found, spread, at.root);
  }
  return found;
}

function combine(left: readonly SchemaNode[], right: readonly SchemaNode[], root: JsonObject): SchemaNode[] {
  return left.flatMap((a) => right.map((b) => ({ schema: merge(a.schema, b.schema), root })));
}

function merge(a: JsonObject, b: JsonObject): JsonObject {
  const merged: JsonObject = { ...a, ...b };
  if (isJsonObject(a["properties"]) && isJsonObject(b["properties"])) {
    merged["properties"] = { ...a["properties"], ...b["properties"] };
  }
  if (Array.isArray(a["required"]) && Array.isArray(b["required"]))
    merged["required"] = [...a["required"], ...b["required"]];
  return merged;
}

/** Resolves `$ref` within the document; other keywords beside it stay in force. */
function follow(at: SchemaNode, depth: number): JsonObject {
  const reference = at.schema["$ref"];
  if (typeof reference !== "string" || depth > MAX_SCHEMA_DEPTH) return at.schema;
  const { $ref: _ref, ...beside } = at.schema;
  const target = referencedIn(at.root, reference);
  return !isJsonObject(target) ? beside : { ...follow({ schema: target, root: at.root }, depth + 1), ...beside };
}

/** The types that a simple schema allows; empty for anything. */
export function typesOf(schema: JsonObject): SchemaType[] {
  const { type } = schema;
  // Filtered by the set, so what is left is a SchemaType.
  const named = (Array.isArray(type) ? type : [type]).filter((name) => TYPES.has(name)) as SchemaType[];
  if (named.length === 0) {
    if (isJsonObject(schema["properties"])) named.push("object");
    else if (schema["items"] !== undefined || schema["prefixItems"] !== undefined) named.push("array");
  }
  // OpenAPI's way of saying it, which many servers use.
  if (named.length > 0 && schema["nullable"] === true && !named.includes("null")) named.push("null");
  return named;
}

/** The values that `enum` or `const` allow, if either is there. */
export function fixedValues(schema: JsonObject): readonly unknown[] | undefined {
  if (Object.hasOwn(schema, "const")) return [schema["const"]];
  const values = schema["enum"];
  if (!Array.isArray(values)) return undefined;
  return schema["nullable"] === true && !values.includes(null) ? [...values, null] : values;
}

/** The schema of a property, over all alternatives; undefined where none names it. */
export function propertySchema(at: SchemaNode, key: string): SchemaNode | undefined {
  const found = alternatives(at).flatMap(({ schema }) => {
    const properties = schema["properties"];
    const own = isJsonObject(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
    return isJsonObject(own) ? [own] : [];
  });
  const [only] = found;
  if (only === undefined) return undefined;
  const distinct = new Set(found.map((schema) => JSON.stringify(schema)));
  return { schema: distinct.size === 1 ? only : { anyOf: found }, root: at.root };
}

/** The schema of properties that nothing names: a schema, `true` (anything goes) or `false` (none allowed). */
export function additionalSchema(at: SchemaNode): SchemaNode | boolean {
  let allowed = false;
  for (const { schema } of alternatives(at)) {
    const additional = schema["additionalProperties"] ?? schema["unevaluatedProperties"];
    if (isJsonObject(additional)) return { schema: additional, root: at.root };
    if (isJsonObject(schema["patternProperties"]) || additional !== false) allowed = true;
  }
  return allowed;
}

export function itemSchema(array: SchemaNode, index: number): SchemaNode {
  const { items, prefixItems } = array.schema;
  const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
  const own: unknown = tuple[index] ?? (Array.isArray(items) ? undefined : items);
  return { schema: isJsonObject(own) ? own : {}, root: array.root };
}

interface Property {
  readonly name: string;
  readonly at: SchemaNode;
  readonly required: boolean;
}

/** Every property that some alternative names; required where every alternative requires it. */
export function propertiesOf(at: SchemaNode): Property[] {
  const branches = alternatives(at).map(({ schema }) => schema);
  const names = new Set(
    branches.flatMap((schema) => Object.keys(isJsonObject(schema["properties"]) ? schema["properties"] : {})),
  );
  return [...names].flatMap((name) => {
    const property = propertySchema(at, name);
    if (property === undefined) return [];
    return [{ name, at: property, required: branches.every((schema) => requires(schema, name)) }];
  });
}

function requires(schema: JsonObject, name: string): boolean {
  return Array.isArray(schema["required"]) && schema["required"].includes(name);
}

const MAX_SHOWN_VALUES = 12;

/** For example `integer 1..10`, `string[]` or `"low" | "high"`. */
export function typeName(at: SchemaNode, depth = 0): string {
  const names = alternatives(at).flatMap((branch) => branchNames(branch, depth));
  return [...new Set(names)].join(" | ");
}

function branchNames(at: SchemaNode, depth: number): string[] {
  const values = fixedValues(at.schema);
  if (values !== undefined) {
    const shown = values.slice(0, MAX_SHOWN_VALUES).map((value) => JSON.stringify(value));
    return values.length > MAX_SHOWN_VALUES ? [...shown, "…"] : shown;
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

function arrayName(at: SchemaNode, depth: number): string {
  if (depth > 3) return "array";
  const element = typeName(itemSchema(at, 0), depth + 1);
  if (element === "any") return "array";
  return element.includes(" ") ? `(${element})[]` : `${element}[]`;
}

function range(minimum: unknown, maximum: unknown): string {
  const [from, to] = [minimum, maximum].map((limit) => (typeof limit === "number" ? String(limit) : ""));
  return from === "" && to === "" ? "" : ` ${from}..${to}`;
}

interface ArgumentRow {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string;
}

/** Deeper parts are left to JSON. */
const MAX_ROW_DEPTH = 3;

export const ARGUMENT_COLUMNS: readonly Column<ArgumentRow>[] = [
  { title: "ARGUMENT", cell: (row) => row.name },
  { title: "TYPE", cell: (row) => row.type },
  { title: "REQUIRED", cell: (row) => (row.required ? "yes" : "") },
  { title: "DESCRIPTION", cell: (row) => row.description, shrink: true },
];

export function describeArguments(inputSchema: JsonObject): ArgumentRow[] {
  return rowsOf(rootSchema(inputSchema), "", MAX_ROW_DEPTH);
}

function rowsOf(at: SchemaNode, prefix: string, depth: number): ArgumentRow[] {
  return propertiesOf(at).flatMap(({ name, at: property, required }) => {
    const row = { name: prefix + name, type: typeName(property), required, description: describeProperty(property) };
    const nested = depth > 1 && isObject(property) ? rowsOf(property, `${row.name}.`, depth - 1) : [];
    return [row, ...nested];
  });
}

function isObject(at: SchemaNode): boolean {
  return alternatives(at).some(({ schema }) => typesOf(schema).includes("object"));
}

function describeProperty({ schema }: SchemaNode): string {
  const { description, default: fallback } = schema;
  const text = typeof description === "string" ? firstLine(description) : "";
  if (fallback === undefined) return text;
  return `${text}${text === "" ? "" : " "}(default ${JSON.stringify(fallback)})`;
}

/** An example call with a placeholder for each required argument. */
export function exampleCall(tool: string, inputSchema: JsonObject): string {
  const required = propertiesOf(rootSchema(inputSchema)).filter((property) => property.required);
  return ["toolcrib call", tool, ...required.map(({ name }) => `${name}=…`)].join(" ");
}
