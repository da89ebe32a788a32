/** Checks the arguments of a call against a tool's schema and says in words what does not fit. */
import type { ErrorObject as AjvError } from "ajv";
import { ToolcribError } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { Tool } from "../model/tool.ts";
import { compileSchema, type Validate } from "./validator.ts";

/** A union can fail in dozens of ways at once; a reader is helped by the first few. */
const MAX_PROBLEMS = 8;
const MAX_SHOWN_LENGTH = 40;

type Checked = Pick<Tool, "name" | "parameters">;

/**
 * A deep copy of the arguments that fits the tool's schema. The copy keeps a tool from changing its caller's object,
 * and makes what was checked the same as what is run; arguments are JSON, so it costs little beside a call.
 */
export function checkedArguments(tool: Checked, args: JsonObject): JsonObject {
  const copy = plainCopy(tool, args);
  const validate = compileSchema(tool.parameters);
  if (fits(tool, validate, copy)) return copy;
  const problems = [...new Set((validate.errors ?? []).map(describeProblem))];
  const shown = problems.slice(0, MAX_PROBLEMS);
  if (problems.length > shown.length) shown.push(`${problems.length - shown.length} more`);
  throw new ToolcribError(
    "invalid_arguments",
    `Arguments of the tool "${tool.name}" do not fit: ${shown.join("; ")}.`,
    {
      hint: "Look at the tool's input schema and call it again.",
      details: { tool: tool.name, problems: problems.slice(0, MAX_PROBLEMS) },
    },
  );
}

function fits(tool: Checked, validate: Validate, args: JsonObject): boolean {
  try {
    return validate(args);
  } catch (error) {
    if (error instanceof ToolcribError) throw error;
    // A reference that leads only to itself makes ajv recurse without end.
    const message = `Arguments of the tool "${tool.name}" cannot be checked: its schema has no end.`;
    throw new ToolcribError("invalid_arguments", message, { cause: error });
  }
}

function plainCopy(tool: Checked, args: JsonObject): JsonObject {
  try {
    return structuredClone(args);
  } catch (error) {
    throw new ToolcribError("invalid_arguments", `Arguments of the tool "${tool.name}" must be plain JSON values.`, {
      cause: error,
    });
  }
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
