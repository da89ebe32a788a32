import { configNode, type SchemaNode } from "./config-schema.ts";

/** The JSON Schema as `toolcrib schema` prints it: draft 2020-12, nothing to fetch. The build puts the result in the place of this module. */
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
