/** A schema as the lines of a table. */
import { type Message, t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";
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
    const label = textOf(option, "title") ?? t(toolWords.choiceNumber, { number: index + 1 });
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
    return [...new Set(words)].join(t(toolWords.typeOr));
  }
  const types = typesOf(schema).map((type) => {
    if (type !== "array") return Array.isArray(schema["enum"]) ? `${type} (${t(toolWords.typeOneOf)})` : type;
    const items = schema["items"];
    const inner =
      isObject(items) && depth < DEEPEST ? typeText(merged(items, root), root, depth + 1) : t(toolWords.typeAny);
    return inner.includes(" ") ? `(${inner})[]` : `${inner}[]`;
  });
  const nullable = schema["type"] === "null" || (Array.isArray(schema["type"]) && schema["type"].includes("null"));
  const words = nullable ? [...types, "null"] : types;
  return words.length === 0
    ? Array.isArray(schema["enum"])
      ? t(toolWords.typeOneOf)
      : t(toolWords.typeAny)
    : words.join(t(toolWords.typeOr));
}

const LIMITS: Readonly<Record<string, Message | undefined>> = {
  format: undefined,
  minimum: toolWords.limitAtLeast,
  exclusiveMinimum: toolWords.limitMore,
  maximum: toolWords.limitAtMost,
  exclusiveMaximum: toolWords.limitLess,
  multipleOf: toolWords.limitMultiple,
  minLength: toolWords.limitMinCharacters,
  maxLength: toolWords.limitMaxCharacters,
  pattern: toolWords.limitPattern,
  minItems: toolWords.limitMinEntries,
  maxItems: toolWords.limitMaxEntries,
};

function limitsOf(schema: Schema): string[] {
  return Object.entries(LIMITS).flatMap(([key, message]) => {
    const value = schema[key];
    if (typeof value !== "string" && typeof value !== "number") return [];
    return [message === undefined ? String(value) : t(message, { value, count: value })];
  });
}
