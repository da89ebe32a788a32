/** Validates a skill: problems that the schema finds and repairs that the reader made. */
import type { ErrorObject, ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { z } from "zod";
import { isJsonObject, type JsonObject, pointerSteps } from "../../model/json.ts";
import type { Skill, SkillFacts, SkillWarning } from "../../model/skill.ts";
import { readFrontmatter, type SourceLocations } from "../read/frontmatter.ts";
import { FrontmatterFields } from "../read/frontmatter-fields.ts";
import { abbreviate, ReadWarnings, typeName } from "../read/read-warnings.ts";
import { type SchemaNode, ServerSchema, skillJsonSchema, StandardSchema } from "./frontmatter-schema.ts";

export interface SkillProblem {
  readonly code: string;
  readonly message: string;
  readonly line?: number;
  readonly severity: "error" | "warning";
}

interface ValidateOptions {
  /** The Agent Skills standard to the letter: what it does not allow is an error, and so is what had to be repaired. */
  readonly strict: boolean;
  readonly dirName: string;
}

/**
 * Without `strict` there are only warnings, because a skill that can be read can be used, except for the servers that it
 * requires: programs are started by what is written there. A file that conforms to the standard has no problems either way.
 */
export function validateSkill(
  skill: SkillFacts & Pick<Skill, "bytes">,
  { strict, dirName }: ValidateOptions,
): SkillProblem[] {
  const front = readFrontmatter(skill.bytes);
  const ofServers = serverProblems(skill.frontmatter, front);
  const found = [
    ...schemaProblems(skill.frontmatter, { strict }).filter(({ path }) => path[0] !== SERVERS_KEY),
    ...ofServers,
    ...nameProblems(skill, dirName),
  ];
  const strictly = new Set(strict ? found : ofServers);
  const repairs = [...skill.warnings];
  const problems = found.flatMap((problem): SkillProblem[] => {
    const { code, message, path } = problem;
    const line = code === "MISSING_FIELD" && path.length === 1 ? 1 : front.lineOf(path.map(pathStep));
    const repair = takeRepair(repairs, { path, line });
    if (strictly.has(problem)) return [{ code, message, line, severity: "error" }];
    // The reader found it under another spelling.
    if (code === "MISSING_FIELD" && repair === undefined) return [];
    // The reader's message is more specific than the rule's.
    return [{ code, message: repair?.message ?? message, line, severity: "warning" }];
  });
  const standardLines = new Set(standardFieldsOf(skill).map((field) => front.lineOf([field])));
  const isAside = ({ code, line = 0 }: SkillWarning): boolean =>
    BEYOND_STANDARD.has(code) || (code === "WRONG_TYPE" && !standardLines.has(line));
  const rest = repairs.map((warning): SkillProblem => {
    return { ...warning, severity: strict && !isAside(warning) ? "error" : "warning" };
  });
  return [...problems, ...rest].toSorted((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity) || 0);
}

function standardFieldsOf({ frontmatter }: Pick<Skill, "frontmatter">): string[] {
  return Object.keys(StandardSchema.shape).filter((field) => Object.hasOwn(frontmatter, field));
}

/** Warnings about things of which the standard says nothing. */
const BEYOND_STANDARD: ReadonlySet<string> = new Set([
  ...["DISPATCH_UNKNOWN", "DISPATCH_WITHOUT_TOOL", "VENDOR_BLOCK_UNREADABLE"],
  ...["ASSUMED_SENSITIVE", "COMMAND_LINE", "CONTAINER_ONLY", "DUPLICATE_SERVER", "IMPLIED_PARAMETER", "INVALID_DOCKER"],
  ...["INVALID_PARAMETER", "INVALID_PLACEHOLDER", "INVALID_SERVER", "INVALID_SERVER_NAME", "PLAIN_CREDENTIAL"],
  ...["REFERENCE_IN_TEMPLATE", "SENSITIVE_DEFAULT", "SERVER_AMBIGUOUS", "UNKNOWN_SERVER", "UNKNOWN_SERVER_FIELD"],
  ...["UNKNOWN_VARIABLE", "UNUSED_PARAMETER"],
]);

/** The reader's warnings that say the same of a field as the schema does. */
const SAME: Readonly<Record<string, string>> = {
  NAME_FROM_FOLDER: "name",
  NAME_CHANGED: "name",
  DESCRIPTION_FROM_BODY: "description",
  METADATA_UNREADABLE: "metadata",
};

/** Warnings that repeat whatever the schema says about their line. */
const SAME_LINE: ReadonlySet<string> = new Set([
  ...["WRONG_TYPE", "KEY_RENAMED", "DISPATCH_UNKNOWN"],
  ...["INVALID_DOCKER", "INVALID_SERVER", "INVALID_TYPE", "UNKNOWN_SERVER_FIELD"],
]);

const SERVERS_KEY = "requires-mcp-servers";

function takeRepair(
  repairs: SkillWarning[],
  { path, line }: { path: readonly string[]; line: number },
): SkillWarning | undefined {
  const index = repairs.findIndex(({ code, line: at }) =>
    Object.hasOwn(SAME, code) ? SAME[code] === path[0] : SAME_LINE.has(code) && at === line,
  );
  return index === -1 ? undefined : repairs.splice(index, 1)[0];
}

/** Of the name that was written; one that comes from the folder cannot differ from it. */
function nameProblems(skill: SkillFacts, dirName: string): SchemaProblem[] {
  const name = skill.frontmatter["name"];
  if (typeof name !== "string" || name === "" || name === dirName) return [];
  const code: ProblemCode = "NAME_MISMATCH";
  return [{ code, message: `The name differs from the folder's, which is "${dirName}".`, path: ["name"] }];
}

function pathStep(step: string): string | number {
  return /^\d+$/.test(step) ? Number(step) : step;
}

/** One by one, so that a message is about the server that is wrong and not about all forms that the list may have. */
function serverProblems(frontmatter: JsonObject, places: SourceLocations): SchemaProblem[] {
  // Wherever the reader takes servers from: they are started from there, too.
  const top = new FrontmatterFields(frontmatter, [], places, new ReadWarnings());
  const fields = top.has(SERVERS_KEY) ? top : top.object("metadata");
  const value = fields?.get(SERVERS_KEY);
  if (fields === undefined || value === undefined || value === null || typeof value === "string") return [];
  const at = fields.pathOf(SERVERS_KEY).map(String);
  if (!Array.isArray(value)) return [wrongType(value, at, "a list of servers")];
  return value.flatMap((server: unknown, index): SchemaProblem[] => {
    const path = [...at, String(index)];
    if (typeof server === "string") return server.trim() === "" ? [wrongType(null, path, "the name of a server")] : [];
    if (!isJsonObject(server)) return [wrongType(server, path, "a name or a map")];
    const { error } = ServerSchema.safeParse(server);
    const problems = (error?.issues ?? []).flatMap((issue) => issueProblems(issue, path, server));
    const isNamed = server["name"] !== undefined || server["package"] !== undefined;
    if (isNamed) return problems;
    const message = `"${path.join(".")}" needs a name or a package.`;
    return [{ code: "MISSING_FIELD", message, path: [...path, "name"] }, ...problems];
  });
}

/** @param value What is at `above`, where the path of the issue starts. */
function issueProblems(issue: z.core.$ZodIssue, above: readonly string[], value: unknown): SchemaProblem[] {
  const path = [...above, ...issue.path.map(String)];
  const shown = path.map(abbreviate).join(".");
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({
      code: "UNKNOWN_FIELD",
      message: `"${shown}" has no field "${abbreviate(key)}".`,
      path: [...path, key],
    }));
  }
  const found = valueAt(value, issue.path);
  if (issue.code === "invalid_union") {
    // What is wrong inside of the form that was meant says more than that no form fits.
    const inner = issue.errors.flat().filter((each) => each.path.length > 0 || each.code === "unrecognized_keys");
    if (inner.length > 0) return inner.slice(0, 1).flatMap((each) => issueProblems(each, path, found));
    return [wrongType(found, path, "of another type")];
  }
  if (issue.code === "invalid_type") {
    if (found === undefined) return [{ code: "MISSING_FIELD", message: `"${shown}" is missing.`, path }];
    return [
      wrongType(found, path, TYPE_NAMES[issue.expected] ?? (issue.expected === "record" ? "a map" : issue.expected)),
    ];
  }
  return [{ code: "INVALID_VALUE", message: `"${shown}": ${issue.message}.`, path }];
}

function wrongType(value: unknown, path: readonly string[], wanted: string): SchemaProblem {
  const message = `"${path.map(abbreviate).join(".")}" must be ${wanted}, not ${typeName(value)}.`;
  return { code: "INVALID_TYPE", message, path };
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((inner, step) => {
    if (Array.isArray(inner)) return inner[Number(step)];
    return isJsonObject(inner) ? inner[String(step)] : undefined;
  }, value);
}

// Problems that the JSON Schema finds, each with a stable code.

interface SchemaProblem {
  readonly code: ProblemCode;
  readonly message: string;
  /** Where in the frontmatter; of a missing field its own name. */
  readonly path: readonly string[];
}

function schemaProblems(frontmatter: JsonObject, { strict }: { strict: boolean }): SchemaProblem[] {
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
    // A wrong type is also a wrong value; one report is enough.
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
  const path = pointerSteps(error.instancePath);
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
      const message = `The standard has no field "${abbreviate(name)}"; put other values into metadata.`;
      return { code: "UNKNOWN_FIELD", message, path: [...path, name] };
    }
    case "minLength":
    case "maxLength": {
      const code = lengthCode(field);
      // The schema has both bounds, so one message serves both.
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
    const message = "The name must consist of a-z, 0-9 and single hyphens between them.";
    return { code: isEmpty ? "INVALID_NAME_LENGTH" : "INVALID_NAME", message, path };
  }
  if (field === "description")
    return { code: "INVALID_DESCRIPTION_LENGTH", message: "The description is blank.", path };
  return { code: "INVALID_ALLOWED_TOOLS", message: "allowed-tools must be tools separated by spaces.", path };
}

function typeProblem(error: ErrorObject, path: readonly string[]): SchemaProblem {
  const [field = ""] = path;
  const value: unknown = error.data;
  const isRequired = path.length === 1 && (field === "name" || field === "description");
  if (isRequired && value === null) return { code: "MISSING_FIELD", message: `"${field}" has no value.`, path };
  // ajv hands the schema back that it was given.
  const allowed = allowedBy((error.parentSchema ?? {}) as SchemaNode);
  const message = `"${path.map(abbreviate).join(".")}" must be ${allowed}, not ${typeName(value)}.`;
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

/** The codes of what validation finds by itself, and what they mean. Programs may rely on them. */
export const PROBLEM_CODES = {
  MISSING_FIELD: "A required field is missing.",
  INVALID_NAME: "The name has characters other than a-z, 0-9 and single hyphens between them.",
  INVALID_NAME_LENGTH: "The name is empty or has more than 64 characters.",
  NAME_MISMATCH: "The name differs from the name of the folder.",
  INVALID_DESCRIPTION_LENGTH: "The description is empty or has more than 1024 characters.",
  INVALID_COMPATIBILITY_LENGTH: "The compatibility is empty or has more than 500 characters.",
  INVALID_METADATA: "A value in metadata is not text.",
  INVALID_ALLOWED_TOOLS: "allowed-tools is not a list of tools separated by spaces.",
  INVALID_TYPE: "A value has the wrong type.",
  INVALID_VALUE: "A value is not one of those allowed.",
  UNKNOWN_FIELD: "There is no such field: in a required server, or with --strict in the standard.",
} as const;

type ProblemCode = keyof typeof PROBLEM_CODES;

// Schemas in words.

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
  null: "nothing",
  array: "a list",
  object: "a map",
};

/** `text or a list`, `"tool"`, `a map of strings`. */
export function allowedBy(node: SchemaNode): string {
  if (node.anyOf !== undefined) return joinWithOr([...new Set(node.anyOf.map(allowedBy))]);
  if (node.const !== undefined) return JSON.stringify(node.const);
  if (node.type === "object" && typeof node.additionalProperties === "object") {
    if (node.additionalProperties.type === "string") return "a map of strings";
  }
  if (node.type === "array" && node.items?.type === "string") return "a list of strings";
  return node.type === undefined ? "anything" : joinWithOr([node.type].flat().map((type) => TYPE_NAMES[type] ?? type));
}

function joinWithOr(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? "anything";
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
