/** Builds the arguments object that a tool's schema describes from the `key=value` words of a command line. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { nearMatches } from "../base/near-matches.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject, parseJson, parseJsonObject } from "../model/json.ts";
import {
  additionalSchema,
  alternatives,
  fixedValues,
  itemSchema,
  propertiesOf,
  propertySchema,
  rootSchema,
  type SchemaNode,
  type SchemaType,
  typeName,
  typesOf,
} from "./argument-schema.ts";

/** Everything typed for one property of the arguments object. */
interface ArgumentNode {
  readonly values: Assignment[];
  readonly parts: Map<string, ArgumentNode>;
}

interface BuiltArguments {
  readonly arguments: JsonObject;
  readonly warnings: readonly string[];
}

/** Throws `invalid_arguments` with all problems of a call of `tool` at once. */
export function buildArguments(
  assignments: readonly Assignment[],
  inputSchema: JsonObject,
  tool: string,
): BuiltArguments {
  const root = rootSchema(inputSchema);
  const place = newNode();
  for (const assignment of assignments) nodeAt(place, pathOf(assignment.key, root)).values.push(assignment);
  const builder = new ArgumentsBuilder();
  const built = builder.object(place, root, []);
  builder.problems.push(...missingArguments(built, inputSchema));
  if (builder.problems.length > 0) throw invalidArguments([...builder.problems, ...builder.typos], tool);
  return { arguments: built, warnings: builder.warnings };
}

/** Only required arguments at the top level: the server checks the rest. */
export function missingArguments(given: JsonObject, inputSchema: JsonObject): string[] {
  return propertiesOf(rootSchema(inputSchema))
    .filter(({ name, required }) => required && !Object.hasOwn(given, name))
    .map(({ name, at }) => `"${name}" is missing (${typeName(at)})`);
}

export function invalidArguments(problems: readonly string[], tool: string): ToolcribError {
  const message = problems.length === 1 ? `Argument ${problems[0]}.` : `Arguments: ${problems.join("; ")}.`;
  return new ToolcribError("invalid_arguments", message, {
    hint: `Run toolcrib call ${tool} --schema to see its arguments.`,
    details: { problems },
  });
}

class ArgumentsBuilder {
  readonly problems: string[] = [];
  readonly warnings: string[] = [];
  /** Arguments that are passed on, and explain why a declared one is missing. */
  readonly typos: string[] = [];

  object(place: ArgumentNode, at: SchemaNode, path: readonly string[]): JsonObject {
    const entries: [string, unknown][] = [];
    for (const [key, part] of place.parts) {
      const schema = this.#schemaOf(at, key, path);
      if (schema !== undefined) entries.push([key, this.#value(part, schema, [...path, key])]);
    }
    // fromEntries defines properties, so a key such as __proto__ is only a key.
    return Object.fromEntries(entries);
  }

  /** Undefined, with a problem recorded, if the key is not allowed. */
  #schemaOf(at: SchemaNode, key: string, path: readonly string[]): SchemaNode | undefined {
    const named = propertySchema(at, key);
    if (named !== undefined) return named;
    const additional = additionalSchema(at);
    if (typeof additional === "object") return additional;
    const known = propertiesOf(at).map(({ name }) => name);
    const near = nearMatches(key, known);
    const suggestion = near.length === 0 ? "" : `; did you mean ${near.map((name) => `"${name}"`).join(" or ")}?`;
    const shown = [...path, key].join(".");
    if (additional) {
      if (suggestion !== "") {
        this.warnings.push(`The tool does not declare the argument "${shown}"; it is passed on${suggestion}`);
        this.typos.push(`"${shown}" is unknown${suggestion}`.replace(/\?$/, ""));
      }
      return { schema: {}, root: at.root };
    }
    const allowed = known.length === 0 ? "; the tool takes no arguments" : `; known arguments: ${known.join(", ")}`;
    this.problems.push(`"${shown}" is unknown${suggestion === "" ? allowed : suggestion}`.replace(/\?$/, ""));
    return undefined;
  }

  #value(place: ArgumentNode, at: SchemaNode, path: readonly string[]): unknown {
    const shown = path.join(".");
    if (place.parts.size > 0) {
      if (place.values.length > 0) this.problems.push(`"${shown}" is given both as a whole and in parts`);
      const array = arrayBranch(at);
      const byIndex = array !== undefined && [...place.parts.keys()].every((key) => /^\d{1,4}$/.test(key));
      return byIndex ? this.#elements(place, array, path) : this.object(place, at, path);
    }
    try {
      return valueOf(place.values, at);
    } catch (error) {
      if (!(error instanceof ArgumentMismatch)) throw error;
      this.problems.push(`"${shown}": ${error.message}`);
      return undefined;
    }
  }

  #elements(place: ArgumentNode, array: SchemaNode, path: readonly string[]): unknown[] {
    return [...place.parts]
      .toSorted(([a], [b]) => Number(a) - Number(b))
      .map(([key, part], index) => this.#value(part, itemSchema(array, index), [...path, key]));
  }
}

/** One value, or an array where the key was repeated or the schema wants one. */
function valueOf(values: readonly Assignment[], at: SchemaNode): unknown {
  const array = arrayBranch(at);
  const [first] = values;
  if (first === undefined) return undefined;
  if (values.length === 1 && (array === undefined || !isArrayOnly(at))) return single(first, at);
  if (array === undefined)
    throw new ArgumentMismatch(`given ${values.length} times, but takes a single ${typeName(at)}`);
  const elements: unknown[] = [];
  for (const value of values) {
    const whole = wholeArray(value);
    if (whole !== undefined) elements.push(...whole);
    else elements.push(single(value, itemSchema(array, elements.length)));
  }
  return elements;
}

function single(assignment: Assignment, at: SchemaNode): unknown {
  switch (assignment.kind) {
    case "json":
      return assignment.value;
    case "text":
      return coerceText(assignment.text, at);
    case "file": {
      const encoded = alternatives(at).some(({ schema }) => schema["contentEncoding"] === "base64");
      return encoded ? assignment.bytes.toString("base64") : coerceText(assignment.bytes.toString("utf8"), at);
    }
  }
}

/** `tags=["a","b"]` sets the whole array. */
function wholeArray(assignment: Assignment): unknown[] | undefined {
  if (assignment.kind === "json") return Array.isArray(assignment.value) ? assignment.value : undefined;
  const text = assignment.kind === "text" ? assignment.text : assignment.bytes.toString("utf8");
  if (!text.trimStart().startsWith("[")) return undefined;
  const parsed = parseJson(text);
  return Array.isArray(parsed) ? parsed : undefined;
}

/** The alternative that is an array; for a schema that allows anything, an array of anything. */
function arrayBranch(at: SchemaNode): SchemaNode | undefined {
  const branches = alternatives(at);
  const array = branches.find(({ schema }) => typesOf(schema).includes("array"));
  if (array !== undefined) return array;
  const allowsAnything = branches.some(
    ({ schema }) => typesOf(schema).length === 0 && fixedValues(schema) === undefined,
  );
  return allowsAnything ? { schema: {}, root: at.root } : undefined;
}

function isArrayOnly(at: SchemaNode): boolean {
  const types = new Set(alternatives(at).flatMap(({ schema }) => typesOf(schema)));
  types.delete("null");
  return types.size === 1 && types.has("array");
}

function newNode(): ArgumentNode {
  return { values: [], parts: new Map() };
}

function nodeAt(root: ArgumentNode, path: readonly string[]): ArgumentNode {
  let at = root;
  for (const key of path) {
    const next = at.parts.get(key) ?? newNode();
    at.parts.set(key, next);
    at = next;
  }
  return at;
}

/** `a.b` is a path, unless the schema has a property called `a.b`, or `a` cannot have properties. */
function pathOf(key: string, root: SchemaNode): string[] {
  if (!key.includes(".") || propertySchema(root, key) !== undefined) return [key];
  const path = key.split(".");
  const [head = ""] = path;
  if (path.includes("")) return [key];
  const schema = propertySchema(root, head);
  return schema === undefined || canHoldParts(schema) ? path : [key];
}

function canHoldParts(at: SchemaNode): boolean {
  return alternatives(at).some(({ schema }) => {
    const types = typesOf(schema);
    return types.length === 0 || types.includes("object") || types.includes("array");
  });
}

/** The object after `--args`. */
export function parseArgumentsObject(text: string): JsonObject {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ToolcribError("invalid_arguments", `--args is not valid JSON: ${reason}`, {
      hint: `Quote it for the shell: --args '{"key": "value"}'`,
    });
  }
  if (!isJsonObject(parsed)) throw new ToolcribError("invalid_arguments", "--args must be a JSON object.");
  return parsed;
}

export type Assignment =
  /** Converted to the type in the schema. */
  | { readonly key: string; readonly kind: "text"; readonly text: string }
  /** Taken as written. */
  | { readonly key: string; readonly kind: "json"; readonly value: unknown }
  /** Bytes of a file: text, or base64 if the schema says so. */
  | { readonly key: string; readonly kind: "file"; readonly bytes: Buffer };

/** The files of `key=@file`. */
export type ReadFile = (path: string) => Buffer;

export function filesIn(cwd: string): ReadFile {
  return (path) => readFileSync(resolve(cwd, path));
}

/** The file that an argument names, if it does. */
export function fileOf(typed: string): string | undefined {
  return /^[^=]+=@(?!@)(.*)$/s.exec(typed)?.[1];
}

export function parseAssignment(typed: string, readFile: ReadFile): Assignment {
  const at = typed.indexOf("=");
  if (at <= 0 || typed.startsWith(":=")) {
    throw new ToolcribError("invalid_arguments", `"${typed}" is not key=value.`, {
      hint: "Write key=value, key:=JSON or key=@file. Pass a JSON object with --args.",
    });
  }
  const isJson = typed[at - 1] === ":";
  const key = typed.slice(0, isJson ? at - 1 : at);
  const text = typed.slice(at + 1);
  if (text.startsWith("@@")) return fromText(key, text.slice(1), isJson);
  if (!text.startsWith("@")) return fromText(key, text, isJson);
  const bytes = readBytes(key, text.slice(1), readFile);
  return isJson ? fromText(key, bytes.toString("utf8"), true) : { key, kind: "file", bytes };
}

function fromText(key: string, text: string, isJson: boolean): Assignment {
  if (!isJson) return { key, kind: "text", text };
  try {
    return { key, kind: "json", value: JSON.parse(text) };
  } catch (error) {
    throw new ToolcribError("invalid_arguments", `Argument "${key}" is not valid JSON.`, {
      hint: `Use ${key}=… for plain text.`,
      cause: error,
    });
  }
}

function readBytes(key: string, path: string, readFile: ReadFile): Buffer {
  try {
    return readFile(path);
  } catch (error) {
    throw new ToolcribError("invalid_arguments", `Argument "${key}": the file "${path}" cannot be read.`, {
      hint: `For a text that begins with @, write ${key}=@@${path}`,
      cause: error,
    });
  }
}

/** Why a text does not fit its schema; the caller adds the argument's name. */
export class ArgumentMismatch extends Error {}

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/** If several types are allowed, the first one in this order that fits is used. */
const TYPE_ORDER: readonly SchemaType[] = ["null", "boolean", "integer", "number", "array", "object", "string"];

export function coerceText(text: string, at: SchemaNode): unknown {
  const branches = alternatives(at);
  for (const { schema } of branches) {
    const value = fixedValues(schema)?.find((candidate) => isWritten(candidate, text));
    if (value !== undefined) return value;
  }
  const open = branches.filter(({ schema }) => fixedValues(schema) === undefined);
  const types = new Set(open.flatMap(({ schema }) => typesOf(schema)));
  if (open.some(({ schema }) => typesOf(schema).length === 0)) return parseLoosely(text);
  for (const type of TYPE_ORDER) {
    if (!types.has(type)) continue;
    const value = convert(text, type, types.size > 1);
    if (value !== undefined) return value;
  }
  throw new ArgumentMismatch(`"${excerpt(text)}" is not ${typeName(at)}${advice(types)}`);
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
      if (!Number.isSafeInteger(parsed)) throw new ArgumentMismatch(`${text} is too large to be represented exactly`);
      return parsed;
    }
    case "array": {
      const parsed = parseJson(text);
      return Array.isArray(parsed) ? parsed : undefined;
    }
    case "object":
      return parseJsonObject(text);
    case "string":
      return text;
  }
}

/** Without a schema: JSON where it is JSON, text otherwise. */
function parseLoosely(text: string): unknown {
  const parsed = parseJson(text);
  return parsed === undefined ? text : parsed;
}

function excerpt(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function advice(types: ReadonlySet<SchemaType>): string {
  if (types.has("object")) return "; write it as JSON or as nested.key=value";
  return types.has("boolean") ? "; write true or false" : "";
}
