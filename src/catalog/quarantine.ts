/** Checks of definitions, cheap and structural: a bad one is set aside with a reason and sinks nothing else. */
import { fingerprint } from "../base/fingerprint.ts";
import type { Capability } from "../model/capability.ts";
import { formatBytes } from "../model/content.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { ownMeta } from "../model/own-meta.ts";
import { schemaSize } from "../schemas/schema-size.ts";
import { MASK } from "../secrets/mask.ts";
import { UriTemplate } from "./uri-template.ts";

/** For people. */
export function describeQuarantined({ kind, name, reason }: Quarantined): string {
  return `The ${kind} ${name === "" ? "without a name" : `"${name}"`} is not offered: ${reason}`;
}

export interface Quarantined {
  readonly source: string;
  readonly kind: Capability["kind"];
  /** The source's own name or URI, as far as it has one. */
  readonly name: string;
  readonly reason: string;
}

type Verdict =
  | {
      readonly ok: true;
      readonly name: string;
      readonly fingerprint: string;
      /** The definition, in a form that clients can use. */
      readonly definition: JsonObject;
    }
  | { readonly ok: false; readonly name: string; readonly reason: string };

const MAX_DEFINITION_BYTES = 1024 * 1024;
const MAX_DEPTH = 100;
const MAX_NAME_LENGTH = 1024;
const MAX_URI_LENGTH = 8192;

const NAME_KEY = { tool: "name", prompt: "name", resource: "uri", template: "uriTemplate" } as const;

/** By definition object: definitions are immutable, so each is checked and fingerprinted once in its life. */
const verdictsByDefinition: Readonly<Record<Capability["kind"], WeakMap<object, Verdict>>> = {
  tool: new WeakMap(),
  resource: new WeakMap(),
  template: new WeakMap(),
  prompt: new WeakMap(),
};

export function checkDefinition(kind: Capability["kind"], definition: unknown): Verdict {
  if (!isJsonObject(definition))
    return { ok: false, name: "", reason: `the definition is ${typeName(definition)}, not an object` };
  const verdicts = verdictsByDefinition[kind];
  let verdict = verdicts.get(definition);
  if (verdict === undefined) verdicts.set(definition, (verdict = checkUncached(kind, definition)));
  return verdict;
}

function checkUncached(kind: Capability["kind"], original: JsonObject): Verdict {
  const definition = withoutUnreadable(kind === "tool" ? withClientSchemas(original) : original);
  const key = NAME_KEY[kind];
  const given = definition[key];
  const name = typeof given === "string" ? given : "";
  try {
    const reason = faultOfName(key, given) ?? faultOfSize(definition) ?? faultOfShape(kind, definition);
    if (reason !== undefined) return { ok: false, name: name.slice(0, MAX_NAME_LENGTH), reason };
    return { ok: true, name, fingerprint: fingerprint(definition), definition };
  } catch (error) {
    const message = error instanceof Error ? error.message : "unknown fault";
    return { ok: false, name, reason: `the definition cannot be read: ${message}` };
  }
}

function faultOfName(key: string, name: unknown): string | undefined {
  if (name === undefined) return `${key} is missing`;
  if (typeof name !== "string") return `${key} is ${typeName(name)}, not text`;
  if (name.trim() === "") return `${key} is empty`;
  const limit = key === "name" ? MAX_NAME_LENGTH : MAX_URI_LENGTH;
  if (name.length > limit) return `${key} is longer than ${limit} characters`;
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f]/.test(name)) return `${key} contains control characters`;
  // Under its masked name it could not be used, and two of them would be taken for one.
  if (name.includes(MASK)) return `${key} contains a secret, which is masked here`;
  if (!name.isWellFormed()) return `${key} is not valid Unicode`;
  return undefined;
}

function faultOfSize(definition: JsonObject): string | undefined {
  // Throws for a cyclic definition.
  const json = JSON.stringify(definition);
  if (Buffer.byteLength(json) > MAX_DEFINITION_BYTES) {
    return `the definition is larger than ${formatBytes(MAX_DEFINITION_BYTES)}`;
  }
  return isDeeperThan(definition, MAX_DEPTH)
    ? `the definition is nested more than ${MAX_DEPTH} levels deep`
    : undefined;
}

/** Only what the rest of Toolcrib reads. */
function faultOfShape(kind: Capability["kind"], definition: JsonObject): string | undefined {
  for (const key of ["title", "description"]) {
    const value = definition[key];
    if (value !== undefined && typeof value !== "string") return `${key} is ${typeName(value)}, not text`;
  }
  for (const key of kind === "tool" ? ["annotations", "outputSchema", "_meta"] : ["_meta"]) {
    const found = typeName(definition[key]);
    if (found !== "an object" && found !== "nothing") return `${key} is ${found}, not an object`;
  }
  switch (kind) {
    case "tool":
      return faultOfSchema("inputSchema", definition) ?? faultOfSchema("outputSchema", definition);
    case "template":
      return UriTemplate.parse(String(definition.uriTemplate)) === undefined
        ? "uriTemplate is not a URI template (RFC 6570)"
        : undefined;
    case "prompt":
      return faultOfArguments(definition.arguments);
    case "resource":
      return undefined;
  }
}

/**
 * Arguments are always an object, and one tool whose schema does not say so makes clients refuse the whole list, that of all
 * servers: the official SDK requires `type: "object"`, `properties` that are objects, and names in `required`.
 */
function withClientSchemas(definition: JsonObject): JsonObject {
  const { inputSchema: given, outputSchema, _meta: meta } = definition;
  const inputSchema = withRoot(isJsonObject(given) && canBeObject(given) ? given : {});
  const output = isJsonObject(outputSchema) && canBeObject(outputSchema) ? withRoot(outputSchema) : outputSchema;
  if (inputSchema === given && output === outputSchema) return definition;
  const isChanged = inputSchema !== given;
  return {
    ...definition,
    inputSchema,
    ...(output === outputSchema ? {} : { outputSchema: output }),
    // Any other `_meta` is a fault that is found later.
    ...(isChanged && (meta === undefined || meta === null || isJsonObject(meta))
      ? // The server's own input schema; null for none.
        { _meta: { ...meta, ...ownMeta("inputSchema", given ?? null) } }
      : {}),
  };
}

function canBeObject({ type }: JsonObject): boolean {
  return type === undefined || type === "object" || (Array.isArray(type) && type.includes("object"));
}

/** The schema as it is if its root can be read. PHP writes `[]` for no properties. */
function withRoot(schema: JsonObject): JsonObject {
  const { properties, required } = schema;
  const areSchemas = isJsonObject(properties) && Object.values(properties).every(isSchema);
  const areNames = Array.isArray(required) && required.every((name) => typeof name === "string");
  const fits = (properties === undefined || areSchemas) && (required === undefined || areNames);
  if (schema.type === "object" && fits) return schema;
  const root: JsonObject = { ...schema, type: "object" };
  if (!isJsonObject(properties)) delete root.properties;
  else if (!areSchemas)
    root.properties = Object.fromEntries(
      Object.entries(properties).map(([name, schema]) => [name, isSchema(schema) ? schema : {}]),
    );
  if (!Array.isArray(required)) delete root.required;
  else if (!areNames) root.required = required.filter((name) => typeof name === "string");
  return root;
}

function isSchema(value: unknown): boolean {
  return isJsonObject(value) || typeof value === "boolean";
}

/** Fields that a definition of any kind may lack. Official clients refuse a list in which one is `null`. */
const OPTIONAL_FIELDS: readonly string[] =
  "title description icons annotations outputSchema execution _meta mimeType size arguments".split(" ");

/** Without optional fields that say nothing clients can read, where that changes nothing about the tool itself. */
function withoutUnreadable(definition: JsonObject): JsonObject {
  const { icons, execution, annotations, arguments: args } = definition;
  const unreadable = OPTIONAL_FIELDS.filter((key) => definition[key] === null);
  if (icons !== undefined && !(Array.isArray(icons) && icons.every(isIcon))) unreadable.push("icons");
  if (execution !== undefined && !isJsonObject(execution)) unreadable.push("execution");
  const hints = isJsonObject(annotations) ? Object.entries(annotations) : [];
  const readable = hints.filter(isReadableHint);
  const holedArguments = Array.isArray(args) && args.some((each) => isJsonObject(each) && hasNull(each));
  if (unreadable.length === 0 && readable.length === hints.length && !holedArguments) return definition;
  const rest = Object.fromEntries(Object.entries(definition).filter(([key]) => !unreadable.includes(key)));
  if (readable.length < hints.length) rest.annotations = Object.fromEntries(readable);
  if (holedArguments) rest.arguments = args.map((each: unknown) => (isJsonObject(each) ? withoutNulls(each) : each));
  return rest;
}

function hasNull(value: JsonObject): boolean {
  return Object.values(value).includes(null);
}

function withoutNulls(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

function isIcon(icon: unknown): boolean {
  return isJsonObject(icon) && typeof icon.src === "string";
}

function isReadableHint([key, value]: [string, unknown]): boolean {
  if (value === null) return false;
  if (key === "title") return typeof value === "string";
  return !/^(?:readOnly|destructive|idempotent|openWorld)Hint$/.test(key) || typeof value === "boolean";
}

function faultOfSchema(key: "inputSchema" | "outputSchema", { [key]: schema }: JsonObject): string | undefined {
  const { fault } = isJsonObject(schema) ? schemaSize(schema) : {};
  return fault === undefined ? undefined : `${key} ${fault}`;
}

function faultOfArguments(given: unknown): string | undefined {
  if (given === undefined) return undefined;
  if (!Array.isArray(given)) return `arguments is ${typeName(given)}, not a list`;
  const nameless = given.some((argument) => !isJsonObject(argument) || typeof argument.name !== "string");
  return nameless ? "an argument has no name" : undefined;
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depth === 0) return true;
  return Object.values(value).some((member) => isDeeperThan(member, depth - 1));
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  const names: Record<string, string> = {
    string: "text",
    number: "a number",
    boolean: "a boolean",
    undefined: "nothing",
  };
  return names[typeof value] ?? "an object";
}
