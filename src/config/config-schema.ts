/** The schema that configs are checked against, as JSON Schema. Descriptions are not in what is built: only docs need them. */
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
