/** A tool's arguments as rows that a person can read. */
import type { JsonObject } from "../../model/json.ts";
import type { Column } from "../table.ts";
import { firstLine } from "../text-width.ts";
import { alternatives, propertiesOf, rootSchema, type SchemaAt, typesOf } from "./json-schema.ts";
import { typeName } from "./type-name.ts";

export interface ArgumentRow {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string;
}

/** Deeper parts are left to JSON. */
const MAX_DEPTH = 3;

export const ARGUMENT_COLUMNS: readonly Column<ArgumentRow>[] = [
  { title: "ARGUMENT", cell: (row) => row.name },
  { title: "TYPE", cell: (row) => row.type },
  { title: "REQUIRED", cell: (row) => (row.required ? "yes" : "") },
  { title: "DESCRIPTION", cell: (row) => row.description, shrink: true },
];

export function describeArguments(inputSchema: JsonObject): ArgumentRow[] {
  return rowsOf(rootSchema(inputSchema), "", MAX_DEPTH);
}

function rowsOf(at: SchemaAt, prefix: string, depth: number): ArgumentRow[] {
  return propertiesOf(at).flatMap(({ name, at: property, required }) => {
    const row = { name: prefix + name, type: typeName(property), required, description: describe(property) };
    const nested = depth > 1 && isObject(property) ? rowsOf(property, `${row.name}.`, depth - 1) : [];
    return [row, ...nested];
  });
}

function isObject(at: SchemaAt): boolean {
  return alternatives(at).some(({ schema }) => typesOf(schema).includes("object"));
}

function describe({ schema }: SchemaAt): string {
  const { description, default: fallback } = schema;
  const text = typeof description === "string" ? firstLine(description) : "";
  if (fallback === undefined) return text;
  return `${text}${text === "" ? "" : " "}(default ${JSON.stringify(fallback)})`;
}

/** How a call of the tool looks, with a stand-in for each required argument. */
export function exampleCall(tool: string, inputSchema: JsonObject): string {
  const required = propertiesOf(rootSchema(inputSchema)).filter((property) => property.required);
  return ["toolcrib call", tool, ...required.map(({ name }) => `${name}=…`)].join(" ");
}
