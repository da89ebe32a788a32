/**
 * The zod schemas of the config as JSON Schema. That takes 20 ms and has the same result at every start, so the build does it once
 * and puts the result in the place of this module.
 */
import { z } from "zod";
import { ConfigSchema } from "../model/config.ts";
import { ServerEntrySchema, ServerEnvSchema } from "../model/server-spec.ts";

/** The part of JSON Schema that the config schema uses. */
export interface SchemaNode {
  type?: string;
  description?: string;
  default?: unknown;
  properties?: Record<string, SchemaNode>;
  required?: string[];
  additionalProperties?: boolean | SchemaNode;
  propertyNames?: SchemaNode;
  items?: SchemaNode;
  anyOf?: SchemaNode[];
  oneOf?: SchemaNode[];
  const?: unknown;
  enum?: unknown[];
  pattern?: string;
  minLength?: number;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
}

export interface SchemaNodes {
  readonly config: SchemaNode;
  /** Of one entry under `mcpServers`. */
  readonly entry: SchemaNode;
}

export function schemaNodes(): SchemaNodes {
  return { config: nodeOf(ConfigSchema), entry: nodeOf(ServerEntrySchema) };
}

function nodeOf(schema: z.ZodType): SchemaNode {
  // What zod emits for the schemas in src/model is covered by SchemaNode; a test walks the whole of it.
  return z.toJSONSchema(schema, {
    io: "input",
    override: ({ zodSchema, jsonSchema }) => {
      tidy(jsonSchema as SchemaNode);
      if (zodSchema === ServerEnvSchema) allowInherit(jsonSchema as SchemaNode);
    },
  }) as SchemaNode;
}

/** Bounds that every JSON number and key has anyway are noise for a reader. */
function tidy(node: SchemaNode): void {
  if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
  if (node.propertyNames !== undefined && node.propertyNames.pattern === undefined) delete node.propertyNames;
}

/** As files may have it: reading moves it out of `env`. A variable of that name is a text. */
function allowInherit(node: SchemaNode): void {
  node.properties = { inherit: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] } };
}
