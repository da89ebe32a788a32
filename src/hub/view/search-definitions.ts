/**
 * The three tools that stand in for those that a list leaves out. They are not in the catalog: their names are reserved,
 * so no server can have them, and a list that is complete needs none of them.
 */
import type { Capability, ToolCapability } from "../../model/capability.ts";
import type { ToolDefinition } from "../../model/protocol.ts";

export const SEARCH_TOOL = "toolcrib_search";
export const DESCRIBE_TOOL = "toolcrib_describe";
export const CALL_TOOL = "toolcrib_call";

/** No server can have it as its id. */
export const SEARCH_SOURCE = "toolcrib:search";

export const DEFAULT_RESULTS = 10;
const MAX_RESULTS = 50;

const READS_ONLY = { readOnlyHint: true, openWorldHint: false };

const DEFINITIONS: readonly ToolDefinition[] = [
  {
    name: SEARCH_TOOL,
    title: "Search tools",
    description:
      "Find tools that are not in your list. Say in a few words what you want to do; returns the names of the best matching " +
      `tools with one line about each. Then use ${DESCRIBE_TOOL} for a tool's arguments and ${CALL_TOOL} to run it.`,
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", minLength: 1, description: 'What to do, such as "create a calendar event".' },
        limit: {
          type: "integer",
          minimum: 1,
          maximum: MAX_RESULTS,
          description: `How many tools to return at most; ${DEFAULT_RESULTS} if absent.`,
        },
      },
      required: ["query"],
      additionalProperties: false,
    },
    annotations: READS_ONLY,
  },
  {
    name: DESCRIBE_TOOL,
    title: "Describe a tool",
    description: `Get the full definition of one tool that ${SEARCH_TOOL} found, with the JSON Schema of its arguments.`,
    inputSchema: {
      type: "object",
      properties: { name: { type: "string", minLength: 1, description: `A name as ${SEARCH_TOOL} returns it.` } },
      required: ["name"],
      additionalProperties: false,
    },
    annotations: READS_ONLY,
  },
  {
    name: CALL_TOOL,
    title: "Call a tool",
    description: `Run a tool that ${SEARCH_TOOL} found. Returns what that tool returns.`,
    inputSchema: {
      type: "object",
      properties: {
        name: { type: "string", minLength: 1, description: `A name as ${SEARCH_TOOL} returns it.` },
        // Text too, because OpenAI's strict mode has no object with free names, and models like to send it anyway.
        arguments: {
          type: ["object", "string"],
          description: `The tool's own arguments as ${DESCRIBE_TOOL} says: an object, or the same as JSON text. None if absent.`,
        },
      },
      required: ["name"],
      additionalProperties: false,
    },
    // No hints: it can do whatever the tool that it runs can do.
  },
];

export const SEARCH_TOOLS: readonly ToolCapability[] = DEFINITIONS.map((definition) =>
  Object.freeze({
    kind: "tool",
    name: definition.name,
    origin: Object.freeze({ source: SEARCH_SOURCE, name: definition.name }),
    definition,
    // Pins are for what others may change.
    fingerprint: "",
  }),
);

export const SEARCH_TOOLS_BY_NAME: ReadonlyMap<string, ToolCapability> = new Map(
  SEARCH_TOOLS.map((tool) => [tool.name, tool]),
);

/** By identity, so that nothing a server sends can pass for one. */
export function isSearchTool(capability: Capability): boolean {
  return SEARCH_TOOLS_BY_NAME.get(capability.name) === capability;
}
