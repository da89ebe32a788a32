/** Tool schemas in the form that a model provider takes. */
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { canonical } from "./copy.ts";
import { geminiSchema } from "./gemini.ts";
import { inlineReferences } from "./inline.ts";
import { Notes } from "./notes.ts";
import { openAiStrictSchema } from "./openai-strict.ts";
import { withClaudeNames } from "./property-names.ts";
import { plainRoot } from "./root.ts";

export const PROVIDERS = ["anthropic", "openai", "openai-strict", "gemini", "bedrock", "raw"] as const;
export type Provider = (typeof PROVIDERS)[number];

/** Each round makes a schema smaller or leaves it alone; two are the rule. */
const MAX_ROUNDS = 10;

export interface NormalizedSchema {
  readonly schema: JsonObject;
  /** What was changed or lost, with the place, for a person. */
  readonly notes: string[];
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
  if (provider === "raw") return { schema, notes: [] };
  if (!isJsonObject(schema)) throw new ToolcribError("invalid_arguments", "The schema is not an object.");
  const notes = new Notes();
  const first = normalizeOnce(schema, provider, notes);
  return { schema: settled(first, provider), notes: notes.list() };
}

function normalizeOnce(schema: JsonObject, provider: Exclude<Provider, "raw">, notes: Notes): JsonObject {
  const plain = plainRoot(inlineReferences(schema, notes), notes);
  switch (provider) {
    case "anthropic":
    case "bedrock":
      return withClaudeNames(plain, notes);
    case "openai":
      return plain;
    case "openai-strict":
      return openAiStrictSchema(plain, notes);
    case "gemini":
      return geminiSchema(plain, notes);
  }
}

/** Repeats until nothing changes: a dropped keyword can make branches equal, which then become one. */
function settled(schema: JsonObject, provider: Exclude<Provider, "raw">): JsonObject {
  let current = schema;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const next = normalizeOnce(current, provider, new Notes());
    if (canonical(next) === canonical(current)) return current;
    current = next;
  }
  return current;
}
