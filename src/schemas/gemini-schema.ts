/**
 * Schemas for Gemini's function declarations, which take a small part of OpenAPI 3.0 and refuse the whole request for
 * one unknown keyword. Three rules are not obvious: `anyOf` must be alone, `enum` contains non-empty strings only, and
 * every node needs a `type`.
 */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { distinct, mapValues, schemaList, schemaMap, type SchemaNotes, stringList } from "./schema-keywords.ts";
import { simplify, typeOfValue, typesOf, valuesOf } from "./combine.ts";

const FORMATS: { readonly [type: string]: readonly string[] } = {
  string: ["enum", "date-time"],
  number: ["float", "double"],
  integer: ["int32", "int64"],
};

const LOST = [
  "pattern",
  "multipleOf",
  "uniqueItems",
  "patternProperties",
  "propertyNames",
  "dependentRequired",
  "dependentSchemas",
  "not",
  "if",
  "contains",
] as const;

export function geminiSchema(root: JsonObject, notes: SchemaNotes): JsonObject {
  const { type, properties = {}, ...rest } = convert(root, notes, "");
  return { type, properties, ...rest };
}

function convert(schema: JsonObject, notes: SchemaNotes, path: string): JsonObject {
  const node = simplify(schema, notes, path);
  if (node["anyOf"] !== undefined) return convertUnion(node, notes, path);
  for (const keyword of LOST) if (node[keyword] !== undefined) notes.add(`${keyword} is dropped for Gemini`, path);
  if (isJsonObject(node["additionalProperties"]))
    notes.add("the shape of further properties is dropped for Gemini", path);
  const types = possibleTypes(node);
  const nullable = types.includes("null");
  const shapes = types.filter((type) => type !== "null").map((type) => convertTyped(node, type, notes, path));
  if (types.length === 0) return either(anything(), node, false);
  // Gemini has no schema for null alone.
  return either(shapes.length === 0 ? [{ type: "string" }] : shapes, node, nullable);
}

/** The types of which the node's values, if it lists them, have any. */
function possibleTypes(node: JsonObject): string[] {
  const types = typesOf(node);
  const found = new Set(valuesOf(node)?.map(typeOfValue));
  const possible = types.filter((type) => found.has(type) || (type === "number" && found.has("integer")));
  return possible.length === 0 ? types : possible;
}

function convertUnion(node: JsonObject, notes: SchemaNotes, path: string): JsonObject {
  const branches = schemaList(node["anyOf"]);
  const real = branches.filter(
    (branch) => typesOf(branch).some((type) => type !== "null") || typesOf(branch).length === 0,
  );
  const shapes = real
    .map((branch, index) => convert(branch, notes, `${path}/anyOf/${index}`))
    .flatMap((shape) => (shape["anyOf"] === undefined ? [shape] : schemaList(shape["anyOf"])));
  return either(shapes.length === 0 ? [{ type: "string" }] : shapes, node, real.length < branches.length);
}

/** One shape as it is; several under an `anyOf`, with title and description in the first of them. */
function either(shapes: readonly JsonObject[], { title, description }: JsonObject, nullable: boolean): JsonObject {
  const [first = {}, ...others] = distinct(shapes).map((shape) => (nullable ? { ...shape, nullable } : shape));
  const texts = [...new Set([description, first["description"]])].filter(
    (text) => typeof text === "string" && text !== "",
  );
  const about = {
    ...(typeof title === "string" ? { title } : {}),
    ...(texts.length === 0 ? {} : { description: texts.join(" ") }),
  };
  const described = { ...first, ...about };
  return others.length === 0 ? described : { anyOf: [described, ...others] };
}

function anything(): JsonObject[] {
  const scalars = ["string", "number", "boolean", "object"].map((type) => ({ type }));
  return [...scalars, { type: "array", items: { type: "string" } }];
}

function convertTyped(node: JsonObject, type: string, notes: SchemaNotes, path: string): JsonObject {
  const { format } = node;
  const allowed = FORMATS[type] ?? [];
  const shape: JsonObject = { type };
  if (typeof format === "string") {
    if (allowed.includes(format)) shape["format"] = format;
    else if (allowed.length > 0) notes.add(`the format ${format} is dropped for Gemini`, path);
  }
  switch (type) {
    case "string":
      return { ...shape, ...numbers(node, ["minLength", "maxLength"]), ...stringValues(node, notes, path) };
    case "number":
    case "integer":
      return { ...shape, ...bounds(node, type), ...numberValues(node, type) };
    case "boolean":
      return { ...shape, ...booleanValue(node) };
    case "array": {
      const items = isJsonObject(node["items"]) ? node["items"] : {};
      return { ...shape, ...numbers(node, ["minItems", "maxItems"]), items: convert(items, notes, `${path}/items`) };
    }
    default:
      return { ...shape, ...objectShape(node, notes, path) };
  }
}

function objectShape(node: JsonObject, notes: SchemaNotes, path: string): JsonObject {
  const at = `${path}/properties`;
  const properties = mapValues(schemaMap(node["properties"]), at, (inner, where) => convert(inner, notes, where));
  const known = (name: string): boolean => Object.hasOwn(properties, name);
  const required = stringList(node["required"]).filter(known);
  const ordering = stringList(node["propertyOrdering"]).filter(known);
  return {
    ...numbers(node, ["minProperties", "maxProperties"]),
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
    ...(required.length === 0 ? {} : { required }),
    ...(ordering.length === 0 ? {} : { propertyOrdering: ordering }),
  };
}

function numbers(node: JsonObject, keywords: readonly string[]): JsonObject {
  return Object.fromEntries(
    keywords.filter((keyword) => typeof node[keyword] === "number").map((keyword) => [keyword, node[keyword]]),
  );
}

/** Exclusive bounds become inclusive ones; for integers that loses nothing. */
function bounds(node: JsonObject, type: string): JsonObject {
  const { exclusiveMinimum: above, exclusiveMaximum: below } = node;
  const shape = numbers(node, ["minimum", "maximum"]);
  if (typeof above === "number") {
    const least = type === "integer" ? Math.floor(above) + 1 : above;
    shape["minimum"] = Math.max(least, typeof shape["minimum"] === "number" ? shape["minimum"] : least);
  }
  if (typeof below === "number") {
    const most = type === "integer" ? Math.ceil(below) - 1 : below;
    shape["maximum"] = Math.min(most, typeof shape["maximum"] === "number" ? shape["maximum"] : most);
  }
  return shape;
}

function stringValues(node: JsonObject, notes: SchemaNotes, path: string): JsonObject {
  const values = valuesOf(node)?.filter((value) => typeof value === "string");
  if (values === undefined || values.length === 0) return {};
  const usable = values.filter((value) => value !== "");
  if (usable.length < values.length) notes.add("the empty string is dropped from an enum for Gemini", path);
  return usable.length === 0 ? {} : { enum: usable };
}

/** Numbers are not allowed in an enum, so the bounds and the description express them. */
function numberValues(node: JsonObject, type: string): JsonObject {
  const values = (valuesOf(node) ?? []).filter(
    (value) => typeof value === "number" && (type === "number" || typeOfValue(value) === type),
  ) as number[];
  if (values.length === 0) return {};
  return {
    minimum: Math.min(...values),
    maximum: Math.max(...values),
    description: values.length === 1 ? `Always ${values[0]}.` : `One of ${values.join(", ")}.`,
  };
}

function booleanValue(node: JsonObject): JsonObject {
  const values = new Set((valuesOf(node) ?? []).filter((value) => typeof value === "boolean"));
  return values.size === 1 ? { description: `Always ${[...values].join("")}.` } : {};
}
