/** What the JSON Schema says is wrong with a frontmatter, with a stable code for each. */
import type { ErrorObject, ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { JsonObject } from "../../model/json.ts";
import { type SchemaNode, skillJsonSchema } from "./json-schema.ts";
import type { ProblemCode } from "./problem-codes.ts";
import { allowedBy, foundIn } from "./words.ts";

export interface SchemaProblem {
  readonly code: ProblemCode;
  readonly message: string;
  /** Where in the frontmatter; of a missing field its own name. */
  readonly path: readonly string[];
}

export function schemaProblems(frontmatter: JsonObject, { strict }: { strict: boolean }): SchemaProblem[] {
  const validate = strict ? validators().standard : validators().all;
  if (validate(frontmatter)) return [];
  const errors = validate.errors ?? [];
  const problems = new Map<string, SchemaProblem>();
  for (const error of errors) {
    // The options of a union are faulted one by one; the union itself says it better.
    if (error.schemaPath.includes("/anyOf/")) continue;
    const meant = error.keyword === "anyOf" ? meantOption(error, errors) : error;
    const problem = problemOf(meant);
    const { code, path } = problem;
    // Leniently a key without a value counts as absent.
    if (!strict && meant.data === null && code !== "MISSING_FIELD") continue;
    // A wrong type is no allowed value either; the first is enough.
    const kind = code === "INVALID_VALUE" ? "INVALID_TYPE" : code;
    const key = `${kind} ${path.join("\0")}`;
    if (!problems.has(key)) problems.set(key, problem);
  }
  return [...problems.values()];
}

/** Where the value is of the type that one option wants, what is wrong is inside of it. */
function meantOption(union: ErrorObject, errors: readonly ErrorObject[]): ErrorObject {
  const inside = `${union.schemaPath}/`;
  return (
    errors.find((one) => one.schemaPath.startsWith(inside) && one.instancePath.length > union.instancePath.length) ??
    union
  );
}

interface Validators {
  readonly all: ValidateFunction;
  readonly standard: ValidateFunction;
}

let compiled: Validators | undefined;

function validators(): Validators {
  if (compiled !== undefined) return compiled;
  const schema = skillJsonSchema();
  const ajv = new Ajv2020({ allErrors: true, verbose: true, strict: false, logger: false }).addSchema(schema);
  const id = String(schema["$id"]);
  const all = ajv.getSchema(id);
  const standard = ajv.getSchema(`${id}#/$defs/standard`);
  if (all === undefined || standard === undefined) throw new Error("the schema of the frontmatter is not whole");
  return (compiled = { all, standard });
}

function problemOf(error: ErrorObject): SchemaProblem {
  const path = pathOf(error.instancePath);
  const [field = ""] = path;
  const shown = `"${path.join(".")}"`;
  const value: unknown = error.data;
  switch (error.keyword) {
    case "required": {
      const missing = String(error.params["missingProperty"]);
      return {
        code: "MISSING_FIELD",
        message: `"${[...path, missing].join(".")}" is missing.`,
        path: [...path, missing],
      };
    }
    case "additionalProperties": {
      const name = String(error.params["additionalProperty"]);
      const message = `The standard has no field "${clip(name)}"; further values belong into metadata.`;
      return { code: "UNKNOWN_FIELD", message, path: [...path, name] };
    }
    case "minLength":
    case "maxLength": {
      const code = lengthCode(field);
      // Both bounds stand in the same schema, so one message serves both.
      const { minLength = 0, maxLength } = (error.parentSchema ?? {}) as SchemaNode;
      return {
        code,
        message: `${shown} has ${lengthOf(value)} characters; ${minLength} to ${maxLength} are allowed.`,
        path,
      };
    }
    case "pattern":
      return patternProblem(field, value, path);
    case "const":
      return {
        code: "INVALID_VALUE",
        message: `${shown} must be ${JSON.stringify(error.params["allowedValue"])}.`,
        path,
      };
    default:
      return typeProblem(error, path);
  }
}

function patternProblem(field: string, value: unknown, path: readonly string[]): SchemaProblem {
  if (field === "name") {
    const isEmpty = value === "";
    const message = "The name must be of a-z, 0-9 and single hyphens between them.";
    return { code: isEmpty ? "INVALID_NAME_LENGTH" : "INVALID_NAME", message, path };
  }
  if (field === "description")
    return { code: "INVALID_DESCRIPTION_LENGTH", message: "The description is blank.", path };
  return { code: "INVALID_ALLOWED_TOOLS", message: "allowed-tools must be tools with spaces between them.", path };
}

function typeProblem(error: ErrorObject, path: readonly string[]): SchemaProblem {
  const [field = ""] = path;
  const value: unknown = error.data;
  const isRequired = path.length === 1 && (field === "name" || field === "description");
  if (isRequired && value === null) return { code: "MISSING_FIELD", message: `"${field}" has no value.`, path };
  // ajv hands the schema back that it was given.
  const allowed = allowedBy((error.parentSchema ?? {}) as SchemaNode);
  const message = `"${path.map(clip).join(".")}" must be ${allowed}, not ${foundIn(value)}.`;
  if (field === "metadata") return { code: "INVALID_METADATA", message, path };
  return { code: field === "allowed-tools" ? "INVALID_ALLOWED_TOOLS" : "INVALID_TYPE", message, path };
}

function lengthCode(field: string): ProblemCode {
  if (field === "name") return "INVALID_NAME_LENGTH";
  return field === "compatibility" ? "INVALID_COMPATIBILITY_LENGTH" : "INVALID_DESCRIPTION_LENGTH";
}

/** As JSON Schema counts: characters, not code units. */
function lengthOf(value: unknown): number {
  return typeof value === "string" ? [...value].length : 0;
}

function pathOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Names from a stranger's file, printable and short enough for a message. */
function clip(name: string): string {
  const clean = name.replaceAll(/[\p{C}\s]+/gu, " ");
  return clean.length > 60 ? `${clean.slice(0, 60)}…` : clean;
}
