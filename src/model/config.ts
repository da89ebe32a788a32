/** The config file as one zod schema: types, JSON Schema and docs/config.md all come from here. */
import { z } from "zod";
import { notBuilt } from "./not-built.ts";
import { ServerEntrySchema, ServerIdSchema } from "./server-spec.ts";
import { ToolRulesSchema } from "./tool-rules.ts";

export const DEFAULT_NAMING = "{server}__{tool}";

const Count = z.int().positive();

export const LimitsSchema = z.strictObject({
  callsPerMinute: Count.default(100).describe("Calls per minute, for each server and for each session."),
  concurrency: Count.default(16).describe("Calls under way at once, for each server."),
  servers: Count.default(50).describe("Servers in all."),
  sessionServers: notBuilt(Count, "Servers that a session brings").optional().describe("Servers that one session may bring."),
  sessionTools: notBuilt(Count, "A limit on tools per session").optional().describe("Tools that one session may bring."),
  resultBytes: Count.default(10 * 1024 * 1024).describe("A larger result is refused as `too_large`."),
  inlineBytes: Count.default(256 * 1024).describe(
    "Of a larger text an agent gets beginning and end; the whole stays readable as `toolcrib://results/<id>`.",
  ),
});

export type Limits = z.output<typeof LimitsSchema>;

const HubToolsSchema = ToolRulesSchema.extend({
  naming: z
    .string()
    .regex(/\{tool\}/, "a template that holds {tool}")
    .default(DEFAULT_NAMING)
    .describe("Template of public names, with `{server}` and `{tool}`."),
  max: notBuilt(Count, "The search tools").optional().describe("Above this many tools, search tools stand in for the rest."),
});

const Anything = z.unknown();

export const ConfigSchema = z.strictObject({
  $schema: z.string().optional().describe("Address of the JSON Schema, for editors."),
  mcpServers: z
    .record(ServerIdSchema, ServerEntrySchema)
    .prefault({})
    .describe("The MCP servers, by id. The form of Claude Desktop and Cursor is valid as it stands."),
  import: z.array(z.string().min(1)).prefault([]).describe("Other config files to read servers from; relative to this file."),
  plugins: z
    .array(z.string().min(1))
    .prefault([])
    .describe("Modules whose default export `register(api)` brings in-process tools; relative to this file."),
  tools: HubToolsSchema.prefault({}).describe("Names and rules for all tools."),
  limits: LimitsSchema.prefault({}).describe("Limits. `TOOLCRIB_LIMITS_<KEY>` in the environment overrides each."),
  workspaceDir: z
    .string()
    .optional()
    .describe("Folder offered to servers as a root; relative to this file. None is offered if absent."),
  skills: notBuilt(Anything, "Skills").optional().describe("Folders of skills."),
  roles: notBuilt(Anything, "Roles").optional().describe("Subsets of servers and tools by role."),
  guard: notBuilt(Anything, "The content guard").optional().describe("What is done with untrusted content."),
  audit: notBuilt(Anything, "Audit settings").optional().describe("The audit record."),
  http: notBuilt(Anything, "The HTTP doors").optional().describe("Address and tokens of the HTTP doors."),
  agent: notBuilt(Anything, "The built-in agent").optional().describe("The built-in agent."),
  store: z
    .union([z.literal("sqlite"), notBuilt(Anything, "Another store")])
    .optional()
    .describe("Where state is kept."),
  sandbox: z
    .union([z.literal("none"), notBuilt(Anything, "Sandboxes")])
    .optional()
    .describe("The default cage for servers."),
  cluster: z
    .union([z.null(), notBuilt(Anything, "Clusters")])
    .optional()
    .describe("Several hubs as one."),
});

export type Config = z.output<typeof ConfigSchema>;
export type ConfigInput = z.input<typeof ConfigSchema>;
