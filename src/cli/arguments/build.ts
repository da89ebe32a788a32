/** Puts the assignments of a command line together to the arguments object that a tool's schema describes. */
import { nearMatches } from "../../catalog/near-matches.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Assignment } from "./assignment.ts";
import { coerceText, Misfit } from "./coerce.ts";
import {
  additionalSchema,
  alternatives,
  fixedValues,
  itemSchema,
  propertiesOf,
  propertySchema,
  rootSchema,
  type SchemaAt,
  typesOf,
} from "./json-schema.ts";
import { typeName } from "./type-name.ts";

/** All that was typed for one place in the arguments object. */
interface Place {
  readonly values: Assignment[];
  readonly parts: Map<string, Place>;
}

export interface BuiltArguments {
  readonly arguments: JsonObject;
  readonly warnings: readonly string[];
}

/** Throws `invalid_arguments` that tells every problem at once. */
export function buildArguments(assignments: readonly Assignment[], inputSchema: JsonObject): BuiltArguments {
  const root = rootSchema(inputSchema);
  const place = newPlace();
  for (const assignment of assignments) placeAt(place, pathOf(assignment.key, root)).values.push(assignment);
  const builder = new Builder();
  const built = builder.object(place, root, []);
  builder.problems.push(...missing(built, inputSchema));
  if (builder.problems.length > 0) throw invalid(builder.problems);
  return { arguments: built, warnings: builder.warnings };
}

/** What is required and not there, in words. Deeper checks are the server's. */
export function missing(given: JsonObject, inputSchema: JsonObject): string[] {
  return propertiesOf(rootSchema(inputSchema))
    .filter(({ name, required }) => required && !Object.hasOwn(given, name))
    .map(({ name, at }) => `"${name}" is missing (${typeName(at)})`);
}

export function invalid(problems: readonly string[]): ToolcribError {
  const message = problems.length === 1 ? `Argument ${problems[0]}.` : `Arguments: ${problems.join("; ")}.`;
  return new ToolcribError("invalid_arguments", message, {
    hint: "toolcrib call <tool> --schema shows what it takes.",
    details: { problems },
  });
}

class Builder {
  readonly problems: string[] = [];
  readonly warnings: string[] = [];

  object(place: Place, at: SchemaAt, path: readonly string[]): JsonObject {
    const entries: [string, unknown][] = [];
    for (const [key, part] of place.parts) {
      const schema = this.#schemaOf(at, key, path);
      if (schema !== undefined) entries.push([key, this.#value(part, schema, [...path, key])]);
    }
    // fromEntries defines properties, so a key such as __proto__ is only a key.
    return Object.fromEntries(entries);
  }

  /** The schema for a key, or undefined with a problem noted where the key is not allowed. */
  #schemaOf(at: SchemaAt, key: string, path: readonly string[]): SchemaAt | undefined {
    const named = propertySchema(at, key);
    if (named !== undefined) return named;
    const additional = additionalSchema(at);
    if (typeof additional === "object") return additional;
    const near = nearMatches(
      key,
      propertiesOf(at).map(({ name }) => name),
    );
    const suggestion = near.length === 0 ? "" : `; did you mean ${near.map((name) => `"${name}"`).join(" or ")}?`;
    const shown = [...path, key].join(".");
    if (additional) {
      if (suggestion !== "") this.warnings.push(`The tool knows no argument "${shown}"; it is passed on${suggestion}`);
      return { schema: {}, root: at.root };
    }
    const known = propertiesOf(at).map(({ name }) => name);
    const allowed = known.length === 0 ? "; there are no arguments" : `; known are ${known.join(", ")}`;
    this.problems.push(`"${shown}" is unknown${suggestion === "" ? allowed : suggestion}`.replace(/\?$/, ""));
    return undefined;
  }

  #value(place: Place, at: SchemaAt, path: readonly string[]): unknown {
    const shown = path.join(".");
    if (place.parts.size > 0) {
      if (place.values.length > 0) this.problems.push(`"${shown}" is given both whole and in parts`);
      const array = arrayBranch(at);
      const byIndex = array !== undefined && [...place.parts.keys()].every((key) => /^\d{1,4}$/.test(key));
      return byIndex ? this.#elements(place, array, path) : this.object(place, at, path);
    }
    try {
      return valueOf(place.values, at);
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      this.problems.push(`"${shown}": ${error.message}`);
      return undefined;
    }
  }

  #elements(place: Place, array: SchemaAt, path: readonly string[]): unknown[] {
    return [...place.parts]
      .toSorted(([a], [b]) => Number(a) - Number(b))
      .map(([key, part], index) => this.#value(part, itemSchema(array, index), [...path, key]));
  }
}

/** One value, or an array where the key was repeated or the schema wants one. */
function valueOf(values: readonly Assignment[], at: SchemaAt): unknown {
  const array = arrayBranch(at);
  const [first] = values;
  if (first === undefined) return undefined;
  if (values.length === 1 && (array === undefined || !isArrayOnly(at))) return single(first, at);
  if (array === undefined) throw new Misfit(`given ${values.length} times, but is ${typeName(at)}`);
  const elements: unknown[] = [];
  for (const value of values) {
    const whole = wholeArray(value);
    if (whole !== undefined) elements.push(...whole);
    else elements.push(single(value, itemSchema(array, elements.length)));
  }
  return elements;
}

function single(assignment: Assignment, at: SchemaAt): unknown {
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

/** `tags=["a","b"]` gives the whole array. */
function wholeArray(assignment: Assignment): unknown[] | undefined {
  if (assignment.kind === "json") return Array.isArray(assignment.value) ? assignment.value : undefined;
  const text = assignment.kind === "text" ? assignment.text : assignment.bytes.toString("utf8");
  if (!text.trimStart().startsWith("[")) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** The alternative that is an array; for a schema that allows anything, an array of anything. */
function arrayBranch(at: SchemaAt): SchemaAt | undefined {
  const branches = alternatives(at);
  const array = branches.find(({ schema }) => typesOf(schema).includes("array"));
  if (array !== undefined) return array;
  const allowsAnything = branches.some(
    ({ schema }) => typesOf(schema).length === 0 && fixedValues(schema) === undefined,
  );
  return allowsAnything ? { schema: {}, root: at.root } : undefined;
}

function isArrayOnly(at: SchemaAt): boolean {
  const types = new Set(alternatives(at).flatMap(({ schema }) => typesOf(schema)));
  types.delete("null");
  return types.size === 1 && types.has("array");
}

function newPlace(): Place {
  return { values: [], parts: new Map() };
}

function placeAt(root: Place, path: readonly string[]): Place {
  let at = root;
  for (const key of path) {
    let next = at.parts.get(key);
    if (next === undefined) {
      next = newPlace();
      at.parts.set(key, next);
    }
    at = next;
  }
  return at;
}

/** `a.b` is a path, unless the schema has a property that is really called `a.b`, or `a` can hold no parts. */
function pathOf(key: string, root: SchemaAt): string[] {
  if (!key.includes(".") || propertySchema(root, key) !== undefined) return [key];
  const path = key.split(".");
  const [head = ""] = path;
  if (path.includes("")) return [key];
  const schema = propertySchema(root, head);
  return schema === undefined || canHoldParts(schema) ? path : [key];
}

function canHoldParts(at: SchemaAt): boolean {
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
