/** Tool schemas in the form that a model provider takes. */
import { ToolcribError } from "../model/errors.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../model/json.ts";
import { flattenObject } from "./combine.ts";
import { geminiSchema } from "./gemini-schema.ts";
import { type Dialect, inlineReferences, isRegexForOpenAi, PLAIN_DIALECT } from "./inline.ts";
import { openAiStrictSchema, withArrayItems, withoutStrictNulls } from "./openai-schema.ts";
import { schemaMap, SchemaNotes, stringList } from "./schema-keywords.ts";

/** `any`: a form that Claude (also on Bedrock) and OpenAI without strict mode accept, for a program that does not know its model. */
export const PROVIDERS = ["anthropic", "openai", "openai-strict", "gemini", "bedrock", "any", "raw"] as const;
export type Provider = (typeof PROVIDERS)[number];

/** `unevaluatedItems` gives way to the `items` that OpenAI wants. */
const OPENAI: Dialect = { takesPattern: isRegexForOpenAi, unknown: new Set(["unevaluatedItems"]) };

/** Each round makes a schema smaller or leaves it alone; two are the rule. */
const MAX_ROUNDS = 10;

export interface NormalizedSchema {
  readonly schema: JsonObject;
  /** Changes and losses, with their places, for people. */
  readonly notes: string[];
  /**
   * The arguments that a model gave for the normalised schema as the tool itself expects them: names that Claude cannot
   * take are put back, nulls that only OpenAI's strict mode allowed are taken out. Must be applied before the call.
   */
  readonly restore: (args: JsonObject) => JsonObject;
}

/**
 * `raw` returns the same object; the others return a new one and leave the input unchanged. Normalizing again changes
 * nothing. Throws ToolcribError for a schema that cannot be sent at all, so that the caller leaves that one tool out.
 *
 * @example
 * normalizeSchema({ $ref: "#/$defs/A", $defs: { A: { type: "object" } } }, "anthropic").schema
 * // { type: "object", properties: {} }
 */
export function normalizeSchema(schema: JsonObject, provider: Provider): NormalizedSchema {
  if (provider === "raw") return { schema, notes: [], restore: (args) => args };
  if (!isJsonObject(schema)) throw new ToolcribError("invalid_arguments", "The schema is not an object.");
  const notes = new SchemaNotes();
  const dialect = ["openai", "openai-strict", "any"].includes(provider) ? OPENAI : PLAIN_DIALECT;
  const inlined = inlineReferences(schema, notes, dialect);
  const plain = plainRoot(inlined, notes);
  switch (provider) {
    case "openai":
      return { schema: withArrayItems(plain), notes: notes.list(), restore: (args) => args };
    case "anthropic":
    case "bedrock":
    case "any": {
      const complete = provider === "any" ? withArrayItems(plain) : plain;
      const renamed = renamesForClaude(complete);
      const named = renameProperties(complete, renamed, notes);
      const restore = (args: JsonObject): JsonObject => (renamed.size === 0 ? args : restoreNames(args, renamed));
      return { schema: named, notes: notes.list(), restore };
    }
    case "openai-strict": {
      const strict = convertUntilStable(openAiStrictSchema(plain, notes), openAiStrictSchema, dialect);
      return { schema: strict, notes: notes.list(), restore: (args) => withoutStrictNulls(args, inlined) };
    }
    case "gemini": {
      const converted = convertUntilStable(geminiSchema(plain, notes), geminiSchema, dialect);
      return { schema: converted, notes: notes.list(), restore: (args) => args };
    }
  }
}

const ROOT_UNIONS = ["anyOf", "oneOf", "allOf"] as const;

/** A schema whose root has no unions, which clients pass on to models that refuse them; others as they are. */
export function withFlatRoot(schema: JsonObject): JsonObject {
  if (ROOT_UNIONS.every((keyword) => schema[keyword] === undefined)) return schema;
  try {
    const notes = new SchemaNotes();
    return plainRoot(inlineReferences(schema, notes, PLAIN_DIALECT), notes);
  } catch {
    // Cyclic or unsatisfiable: the arguments are checked with the schema itself in any case.
    return schema;
  }
}

/** Repeats until nothing changes: a dropped keyword can make branches equal, which then become one. */
function convertUntilStable(
  schema: JsonObject,
  convert: (schema: JsonObject, notes: SchemaNotes) => JsonObject,
  dialect: Dialect,
): JsonObject {
  let current = schema;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const ignored = new SchemaNotes();
    // From the start, because Gemini's `nullable` is understood there.
    const next = convert(plainRoot(inlineReferences(current, ignored, dialect), ignored), ignored);
    if (canonicalJson(next) === canonicalJson(current)) return current;
    current = next;
  }
  return current;
}

/** Providers refuse these at the root, with the whole request. */
const FORBIDDEN = ["enum", "const", "not"] as const;

/** An inlined schema with a root that every provider takes: a plain object with properties and without unions. */
function plainRoot(schema: JsonObject, notes: SchemaNotes): JsonObject {
  const flat = flattenObject(schema, notes, "");
  if (flat === undefined) {
    const message = "The schema does not allow an object, and the arguments of a tool are always an object.";
    throw new ToolcribError("invalid_arguments", message, { details: { type: schema["type"] } });
  }
  const { type: _, properties, ...rest } = flat;
  for (const keyword of FORBIDDEN) {
    if (!(keyword in rest)) continue;
    delete rest[keyword];
    notes.add(`${keyword} is dropped at the root`, "");
  }
  return { type: "object", properties: properties ?? {}, ...rest };
}

const MAX_LENGTH = 64;
const CLAUDE_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;

/** From the tool's own name to the one that the model sees; only names that differ. */
type Renamed = ReadonlyMap<string, string>;

/**
 * Claude refuses the whole request for one root property whose name it does not accept, such as `filter[id]` or `$top`.
 * Such properties get another name, and `restoreNames` undoes it in the arguments.
 */
export function renamesForClaude(schema: JsonObject): Renamed {
  const names = Object.keys(schemaMap(schema["properties"]));
  const taken = new Set(names.filter((name) => CLAUDE_NAME.test(name)));
  const renamed = new Map<string, string>();
  const next = new Map<string, number>();
  for (const name of names) {
    if (taken.has(name)) continue;
    const plain = name.replaceAll(/[^a-zA-Z0-9_.-]/g, "_").slice(0, MAX_LENGTH) || "_";
    const candidate = taken.has(plain) ? numbered(plain, taken, next) : plain;
    taken.add(candidate);
    renamed.set(name, candidate);
  }
  return renamed;
}

/** Thousands of names may become the same one, so `next` remembers the first number that may be free. */
function numbered(plain: string, taken: ReadonlySet<string>, next: Map<string, number>): string {
  for (let digits = 1; ; digits += 1) {
    const start = `${plain.slice(0, MAX_LENGTH - 1 - digits)}_`;
    const key = `${digits} ${start}`;
    let count = next.get(key) ?? Math.max(2, 10 ** (digits - 1));
    while (count < 10 ** digits && taken.has(`${start}${count}`)) count += 1;
    next.set(key, count);
    if (count < 10 ** digits) return `${start}${count}`;
  }
}

/** Nested properties may be called anything, so only the root is touched. */
function renameProperties(schema: JsonObject, renamed: Renamed, notes: SchemaNotes): JsonObject {
  if (renamed.size === 0) return schema;
  const newName = (name: string): string => renamed.get(name) ?? name;
  const newKeys = (map: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(map).map(([name, value]) => [newName(name), value]));
  for (const [name, other] of renamed)
    notes.add(`the property ${JSON.stringify(name)} is shown as ${other}`, "/properties");
  const copy: JsonObject = { ...schema, properties: newKeys(schemaMap(schema["properties"])) };
  if (schema["required"] !== undefined) copy["required"] = stringList(schema["required"]).map(newName);
  if (isJsonObject(schema["dependentSchemas"])) copy["dependentSchemas"] = newKeys(schema["dependentSchemas"]);
  if (isJsonObject(schema["dependentRequired"])) {
    const lists = Object.entries(newKeys(schema["dependentRequired"]));
    copy["dependentRequired"] = Object.fromEntries(lists.map(([name, list]) => [name, stringList(list).map(newName)]));
  }
  return copy;
}

function restoreNames(args: JsonObject, renamed: Renamed): JsonObject {
  const back = new Map([...renamed].map(([name, other]) => [other, name]));
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [back.get(name) ?? name, value]));
}
