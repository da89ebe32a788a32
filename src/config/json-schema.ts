/** The JSON Schema of the config file. */
import { type SchemaNode, type SchemaNodes, schemaNodes } from "./schema-nodes.ts";

export type { SchemaNode } from "./schema-nodes.ts";

let nodes: SchemaNodes | undefined;

/** The schema of a whole config, with its `notBuilt` marks. */
export function configNode(): SchemaNode {
  return (nodes ??= schemaNodes()).config;
}

/** The schema of one entry under `mcpServers`. */
export function entryNode(): SchemaNode {
  return (nodes ??= schemaNodes()).entry;
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
