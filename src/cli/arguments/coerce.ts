/** Text from the command line as a value of the type that a schema asks for. */
import { isJsonObject } from "../../model/json.ts";
import { alternatives, fixedValues, type SchemaAt, type SchemaType, typesOf } from "./json-schema.ts";
import { typeName } from "./type-name.ts";

/** Why a text does not fit; `build.ts` adds the argument's name. */
export class Misfit extends Error {}

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/** Where several types are allowed the most specific one that fits wins, and plain text comes last. */
const ORDER: readonly SchemaType[] = ["null", "boolean", "integer", "number", "array", "object", "string"];

export function coerceText(text: string, at: SchemaAt): unknown {
  const branches = alternatives(at);
  for (const { schema } of branches) {
    const value = fixedValues(schema)?.find((candidate) => isWritten(candidate, text));
    if (value !== undefined) return value;
  }
  const open = branches.filter(({ schema }) => fixedValues(schema) === undefined);
  const types = new Set(open.flatMap(({ schema }) => typesOf(schema)));
  if (open.some(({ schema }) => typesOf(schema).length === 0)) return anything(text);
  for (const type of ORDER) {
    if (!types.has(type)) continue;
    const value = convert(text, type, types.size > 1);
    if (value !== undefined) return value;
  }
  throw new Misfit(`"${excerpt(text)}" is not ${typeName(at)}${advice(types)}`);
}

function isWritten(value: unknown, text: string): boolean {
  return typeof value === "string" ? value === text : JSON.stringify(value) === text;
}

/** undefined: does not fit. `null` is a value. */
function convert(text: string, type: SchemaType, ambiguous: boolean): unknown {
  switch (type) {
    case "null":
      return text === "null" ? null : undefined;
    case "boolean":
      return text === "true" ? true : text === "false" ? false : undefined;
    case "integer":
    case "number": {
      // `007` among other types is a name, not a number.
      const parsed = ambiguous ? parseJson(text) : NUMBER.test(text) ? Number(text) : undefined;
      if (typeof parsed !== "number" || !Number.isFinite(parsed)) return undefined;
      if (type === "number") return parsed;
      if (!Number.isInteger(parsed)) return undefined;
      if (!Number.isSafeInteger(parsed)) throw new Misfit(`${text} is too large to be held exactly`);
      return parsed;
    }
    case "array": {
      const parsed = parseJson(text);
      return Array.isArray(parsed) ? parsed : undefined;
    }
    case "object": {
      const parsed = parseJson(text);
      return isJsonObject(parsed) ? parsed : undefined;
    }
    case "string":
      return text;
  }
}

/** Without a schema: JSON where it is JSON, text otherwise. */
function anything(text: string): unknown {
  const parsed = parseJson(text);
  return parsed === undefined ? text : parsed;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function excerpt(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function advice(types: ReadonlySet<SchemaType>): string {
  if (types.has("object")) return "; give it as JSON or as nested.key=value";
  return types.has("boolean") ? "; write true or false" : "";
}
