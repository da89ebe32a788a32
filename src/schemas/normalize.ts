/** Tool schemas in the form that a model provider takes. */
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { withArrayItems } from "./array-items.ts";
import { canonical } from "./copy.ts";
import { geminiSchema } from "./gemini.ts";
import { type Dialect, inlineReferences, PLAIN } from "./inline.ts";
import { Notes } from "./notes.ts";
import { openAiStrictSchema } from "./openai-strict.ts";
import { isRegexForOpenAi } from "./patterns.ts";
import { renameProperties, renamesForClaude, restoreNames } from "./property-names.ts";
import { plainRoot } from "./root.ts";
import { withoutStrictNulls } from "./strict-arguments.ts";

export const PROVIDERS = ["anthropic", "openai", "openai-strict", "gemini", "bedrock", "raw"] as const;
export type Provider = (typeof PROVIDERS)[number];

/** `unevaluatedItems` gives way to the `items` that OpenAI wants. */
const OPENAI: Dialect = { takesPattern: isRegexForOpenAi, unknown: new Set(["unevaluatedItems"]) };

/** Each round makes a schema smaller or leaves it alone; two are the rule. */
const MAX_ROUNDS = 10;

export interface NormalizedSchema {
  readonly schema: JsonObject;
  /** What was changed or lost, with the place, for a person. */
  readonly notes: string[];
  /**
   * The arguments that a model gave for the normalised schema as the tool itself expects them: names that Claude cannot
   * take are put back, nulls that only OpenAI's strict mode allowed are taken out. Must be applied before the call.
   */
  readonly restore: (args: JsonObject) => JsonObject;
}

/**
 * `raw` gives the very object back; the others give a new one and leave the input untouched. Normalising again changes
 * nothing. Throws ToolcribError for a schema that cannot be sent at all, so that the caller leaves that one tool out.
 *
 * @example
 * normalizeSchema({ $ref: "#/$defs/A", $defs: { A: { type: "object" } } }, "anthropic").schema
 * // { type: "object", properties: {} }
 */
export function normalizeSchema(schema: JsonObject, provider: Provider): NormalizedSchema {
  if (provider === "raw") return { schema, notes: [], restore: (args) => args };
  if (!isJsonObject(schema)) throw new ToolcribError("invalid_arguments", "The schema is not an object.");
  const notes = new Notes();
  const dialect = provider === "openai" || provider === "openai-strict" ? OPENAI : PLAIN;
  const inlined = inlineReferences(schema, notes, dialect);
  const plain = plainRoot(inlined, notes);
  switch (provider) {
    case "openai":
      return { schema: withArrayItems(plain), notes: notes.list(), restore: (args) => args };
    case "anthropic":
    case "bedrock": {
      const renamed = renamesForClaude(plain);
      const named = renameProperties(plain, renamed, notes);
      return {
        schema: named,
        notes: notes.list(),
        restore: (args) => (renamed.size === 0 ? args : restoreNames(args, renamed)),
      };
    }
    case "openai-strict": {
      const strict = settled(openAiStrictSchema(plain, notes), openAiStrictSchema, dialect);
      return { schema: strict, notes: notes.list(), restore: (args) => withoutStrictNulls(args, inlined) };
    }
    case "gemini":
      return {
        schema: settled(geminiSchema(plain, notes), geminiSchema, dialect),
        notes: notes.list(),
        restore: (args) => args,
      };
  }
}

/** Repeats until nothing changes: a dropped keyword can make branches equal, which then become one. */
function settled(
  schema: JsonObject,
  convert: (schema: JsonObject, notes: Notes) => JsonObject,
  dialect: Dialect,
): JsonObject {
  let current = schema;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const ignored = new Notes();
    // From the start, because Gemini's `nullable` is understood there.
    const next = convert(plainRoot(inlineReferences(current, ignored, dialect), ignored), ignored);
    if (canonical(next) === canonical(current)) return current;
    current = next;
  }
  return current;
}
