/** A schema as the lines of a table. */
import { choicesOf, isObject, merged, propertiesOf, requiredOf, type Schema, textOf, typesOf } from "./schema.ts";

export interface SchemaRow {
  /** Where it stands, such as `filter.tags[]`. */
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  readonly type: string;
  readonly required: boolean;
  readonly description: string | undefined;
  readonly defaultText: string | undefined;
  readonly values: readonly string[] | undefined;
  /** Bounds and patterns in words. */
  readonly limits: readonly string[];
}

const DEEPEST = 6;
const MOST_ROWS = 500;

export function schemaRows(schema: Schema): SchemaRow[] {
  const rows: SchemaRow[] = [];
  addProperties(rows, merged(schema, schema), schema, "", 0);
  return rows;
}

function addProperties(rows: SchemaRow[], schema: Schema, root: Schema, prefix: string, depth: number): void {
  // Schemas that hold themselves would never end.
  if (depth > DEEPEST) return;
  const required = new Set(requiredOf(schema));
  for (const [name, property] of Object.entries(propertiesOf(schema))) {
    if (rows.length >= MOST_ROWS) return;
    addRow(rows, {
      schema: merged(property, root),
      root,
      path: prefix + name,
      name,
      depth,
      required: required.has(name),
    });
  }
}

interface Place {
  readonly schema: Schema;
  readonly root: Schema;
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  readonly required: boolean;
}

function addRow(rows: SchemaRow[], { schema, root, path, name, depth, required }: Place): void {
  rows.push({
    path,
    name,
    depth,
    type: typeText(schema, root),
    required,
    description: textOf(schema, "description") ?? textOf(schema, "title"),
    defaultText: schema["default"] === undefined ? undefined : JSON.stringify(schema["default"]),
    values: Array.isArray(schema["enum"]) ? schema["enum"].map((value) => JSON.stringify(value)) : undefined,
    limits: limitsOf(schema),
  });
  addProperties(rows, schema, root, `${path}.`, depth + 1);
  const items = schema["items"];
  if (isObject(items)) addProperties(rows, merged(items, root), root, `${path}[].`, depth + 1);
  choicesOf(schema)?.forEach((choice, index) => {
    const option = merged(choice, root);
    if (Object.keys(propertiesOf(option)).length === 0 || depth >= DEEPEST) return;
    const label = textOf(option, "title") ?? `choice ${index + 1}`;
    addRow(rows, {
      schema: { ...option, title: undefined },
      root,
      path: `${path}|${index + 1}`,
      name: label,
      depth: depth + 1,
      required: false,
    });
  });
}

/** A type in words, such as `string[]`, `integer or null`. */
export function typeText(schema: Schema, root: Schema, depth = 0): string {
  if (schema["const"] !== undefined) return JSON.stringify(schema["const"]);
  const choices = choicesOf(schema);
  if (choices !== undefined && depth < DEEPEST) {
    const words = choices.map((choice) => typeText(merged(choice, root), root, depth + 1));
    return [...new Set(words)].join(" or ");
  }
  const types = typesOf(schema).map((type) => {
    if (type !== "array") return Array.isArray(schema["enum"]) ? `${type} (one of)` : type;
    const items = schema["items"];
    const inner = isObject(items) && depth < DEEPEST ? typeText(merged(items, root), root, depth + 1) : "any";
    return inner.includes(" ") ? `(${inner})[]` : `${inner}[]`;
  });
  const nullable = schema["type"] === "null" || (Array.isArray(schema["type"]) && schema["type"].includes("null"));
  const words = nullable ? [...types, "null"] : types;
  return words.length === 0 ? (Array.isArray(schema["enum"]) ? "one of" : "any") : words.join(" or ");
}

const LIMITS: Readonly<Record<string, (value: string) => string>> = {
  format: (value) => value,
  minimum: (value) => `at least ${value}`,
  exclusiveMinimum: (value) => `more than ${value}`,
  maximum: (value) => `at most ${value}`,
  exclusiveMaximum: (value) => `less than ${value}`,
  multipleOf: (value) => `a multiple of ${value}`,
  minLength: (value) => `at least ${value} characters`,
  maxLength: (value) => `at most ${value} characters`,
  pattern: (value) => `matches ${value}`,
  minItems: (value) => `at least ${value} entries`,
  maxItems: (value) => `at most ${value} entries`,
};

function limitsOf(schema: Schema): string[] {
  return Object.entries(LIMITS).flatMap(([key, words]) => {
    const value = schema[key];
    return typeof value === "string" || typeof value === "number" ? [words(String(value))] : [];
  });
}
