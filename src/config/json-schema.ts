/** The JSON Schema of the config file, made from the zod schema. */
import { z } from "zod";
import { ConfigSchema } from "../model/config.ts";
import { ServerEntrySchema } from "../model/server-spec.ts";

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
  /** Set by `notBuilt()`: what this version cannot do yet. */
  notBuilt?: string;
}

const nodes = new Map<z.ZodType, SchemaNode>();

function nodeOf(schema: z.ZodType): SchemaNode {
  let node = nodes.get(schema);
  if (node === undefined) {
    // What zod emits for the schemas in src/model is covered by SchemaNode; a test walks the whole of it.
    node = z.toJSONSchema(schema, {
      io: "input",
      override: ({ jsonSchema }) => tidy(jsonSchema as SchemaNode),
    }) as SchemaNode;
    nodes.set(schema, node);
  }
  return node;
}

/** Bounds that every JSON number and key has anyway are noise for a reader. */
function tidy(node: SchemaNode): void {
  if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
  if (node.propertyNames !== undefined && node.propertyNames.pattern === undefined) delete node.propertyNames;
}

/** The schema of a whole config, with its `notBuilt` marks. */
export function configNode(): SchemaNode {
  return nodeOf(ConfigSchema);
}

/** The schema of one entry under `mcpServers`. */
export function entryNode(): SchemaNode {
  return nodeOf(ServerEntrySchema);
}

/** The JSON Schema as `toolcrib schema` prints it: draft 2020-12, nothing to fetch. */
export function configJsonSchema(): Record<string, unknown> {
  const { $schema, ...rest } = published(configNode()) as SchemaNode & { $schema?: string };
  return {
    $schema,
    $id: "urn:toolcrib:config",
    title: "Toolcrib config",
    description: "toolcrib.json: MCP servers, tools, rules and limits of one hub.",
    ...rest,
  };
}

/** A copy in which the mark has become text, because an editor shows descriptions only. */
function published(node: SchemaNode): SchemaNode {
  const { notBuilt, ...copy } = mapChildren(node, published);
  if (notBuilt === undefined) return copy;
  const note = `Not built in this version: ${notBuilt}.`;
  return { ...copy, description: copy.description === undefined ? note : `${copy.description} ${note}` };
}

function mapChildren(node: SchemaNode, change: (child: SchemaNode) => SchemaNode): SchemaNode {
  const copy: SchemaNode = { ...node };
  if (node.properties !== undefined) {
    copy.properties = Object.fromEntries(Object.entries(node.properties).map(([key, child]) => [key, change(child)]));
  }
  if (typeof node.additionalProperties === "object") copy.additionalProperties = change(node.additionalProperties);
  if (node.items !== undefined) copy.items = change(node.items);
  if (node.anyOf !== undefined) copy.anyOf = node.anyOf.map(change);
  if (node.oneOf !== undefined) copy.oneOf = node.oneOf.map(change);
  return copy;
}
