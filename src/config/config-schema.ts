/** The JSON Schema of the config file. */
import { type SchemaNode, type SchemaNodes, schemaNodes } from "./schema-nodes.ts";

export type { SchemaNode } from "./schema-nodes.ts";

let nodes: SchemaNodes | undefined;

/** The schema of a whole config. */
export function configNode(): SchemaNode {
  return (nodes ??= schemaNodes()).config;
}

/** The schema of one entry under `mcpServers`. */
export function entryNode(): SchemaNode {
  return (nodes ??= schemaNodes()).entry;
}

/** The JSON Schema as `toolcrib schema` prints it: draft 2020-12, nothing to fetch. */
export function configJsonSchema(): Record<string, unknown> {
  const { $schema, ...rest } = configNode() as SchemaNode & { $schema?: string };
  return {
    $schema,
    $id: "urn:toolcrib:config",
    title: "Toolcrib config",
    description: "toolcrib.json: MCP servers, tools, rules and limits of one hub.",
    ...rest,
  };
}
