/** What does not fit a schema, in words. */
import type { ErrorObject as AjvError } from "ajv";
import type { JsonObject } from "../model/json.ts";
import type { Validate } from "./validator.ts";

/** A union can fail in dozens of ways at once; a reader is helped by the first few. */
const MAX_PROBLEMS = 8;
/** A long list can fail at each of its items. */
const MAX_ERRORS_READ = 1000;
const MAX_SHOWN_LENGTH = 40;

export interface Problems {
  /** The first few; none if the value fits. */
  readonly problems: string[];
  /** How many others there are. */
  readonly more: number;
  /** A reference leads only to itself. */
  readonly isEndless: boolean;
}

export function problemsOf(validate: Validate, value: unknown): Problems {
  try {
    if (validate(value)) return { problems: [], more: 0, isEndless: false };
  } catch (error) {
    // Such a reference makes ajv recurse until the stack is full.
    if (error instanceof RangeError) return { problems: [], more: 0, isEndless: true };
    throw error;
  }
  const errors = (validate.errors ?? []).slice(0, MAX_ERRORS_READ);
  const all = [...new Set(errors.map(describeProblem))];
  const problems = all.slice(0, MAX_PROBLEMS);
  return { problems, more: all.length - problems.length, isEndless: false };
}

function describeProblem(error: AjvError): string {
  const where = argumentPath(error.instancePath);
  // Each keyword has its own params; the names come from ajv's documentation of errors.
  const params: JsonObject = error.params;
  switch (error.keyword) {
    case "required":
      return `${join(where, String(params["missingProperty"]))} is missing`;
    case "additionalProperties":
    case "unevaluatedProperties": {
      const name = params["additionalProperty"] ?? params["unevaluatedProperty"];
      return `${join(where, String(name))} is not an argument${knownNames(error.parentSchema)}`;
    }
    case "type":
      return `${subject(where)} must be ${[params["type"]].flat().join(" or ")}, found ${kindOf(error.data)}`;
    case "enum":
      return `${subject(where)} must be one of ${list(params["allowedValues"])}, found ${shownValue(error.data)}`;
    case "const":
      return `${subject(where)} must be ${shownValue(params["allowedValue"])}, found ${shownValue(error.data)}`;
    default:
      return `${subject(where)} ${error.message ?? `fails "${error.keyword}"`}, found ${kindOf(error.data)}`;
  }
}

/** `/files/0/name` as `files[0].name`. */
function argumentPath(pointer: string): string {
  let path = "";
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    path = /^\d+$/.test(name) ? `${path}[${name}]` : join(path, name);
  }
  return path;
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function subject(path: string): string {
  return path === "" ? "the arguments" : path;
}

function knownNames(schema: unknown): string {
  const properties = (schema as { properties?: object } | undefined)?.properties;
  const names = Object.keys(properties ?? {});
  if (names.length === 0) return "";
  return ` (known: ${names.slice(0, 20).join(", ")}${names.length > 20 ? ", …" : ""})`;
}

function list(values: unknown): string {
  const items = Array.isArray(values) ? values : [values];
  return items.slice(0, 20).map(shownValue).join(", ") + (items.length > 20 ? ", …" : "");
}

/** Short values only, and only where a fixed set of values is expected: anything else may hold a secret. */
function shownValue(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= MAX_SHOWN_LENGTH ? text : kindOf(value);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === "string") return `a string of ${value.length} characters`;
  if (typeof value === "object") return "an object";
  return `the ${typeof value} ${JSON.stringify(value)}`;
}
