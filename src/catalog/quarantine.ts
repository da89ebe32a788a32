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
      /** The definition, with an input schema that clients can use. */
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
  const definition = kind === "tool" ? withObjectSchema(original) : original;
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

/** Only what the rest of Toolcrib reads. `null` passes for an absent optional field: many servers write it so. */
function faultOfShape(kind: Capability["kind"], definition: JsonObject): string | undefined {
  for (const key of ["title", "description"]) {
    const value = definition[key];
    if (value !== undefined && value !== null && typeof value !== "string")
      return `${key} is ${typeName(value)}, not text`;
  }
  for (const key of kind === "tool" ? ["annotations", "outputSchema", "_meta"] : ["_meta"]) {
    const found = typeName(definition[key]);
    if (found !== "an object" && found !== "null" && found !== "nothing") return `${key} is ${found}, not an object`;
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
 * servers: the official SDK requires `type: "object"`.
 */
function withObjectSchema(definition: JsonObject): JsonObject {
  const { inputSchema: schema, _meta: meta } = definition;
  if (isJsonObject(schema) && schema.type === "object") return definition;
  const takesObject =
    isJsonObject(schema) &&
    (schema.type === undefined || (Array.isArray(schema.type) && schema.type.includes("object")));
  return {
    ...definition,
    inputSchema: takesObject ? { ...schema, type: "object" } : { type: "object" },
    // Any other `_meta` is a fault that is found later.
    ...(meta === undefined || meta === null || isJsonObject(meta)
      ? // The server's own input schema; null for none.
        { _meta: { ...meta, ...ownMeta("inputSchema", schema ?? null) } }
      : {}),
  };
}

function faultOfSchema(key: "inputSchema" | "outputSchema", { [key]: schema }: JsonObject): string | undefined {
  const { fault } = isJsonObject(schema) ? schemaSize(schema) : {};
  return fault === undefined ? undefined : `${key} ${fault}`;
}

function faultOfArguments(given: unknown): string | undefined {
  if (given === undefined || given === null) return undefined;
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
