/** The config file as one zod schema: types, JSON Schema and docs/config.md all come from here. */
import { z } from "zod";
import { AgentSchema, SessionsSchema } from "./agent-config.ts";
import { HttpSchema } from "./http-config.ts";
import { ClusterSchema } from "./cluster-config.ts";
import { ContainersSchema, SandboxSchema } from "./sandbox.ts";
import { ServerEntrySchema, ServerIdSchema } from "./server-spec.ts";
import { ToolRulesSchema } from "./tool-rules.ts";

export const DEFAULT_NAMING = "{server}__{tool}";

const Count = z.int().positive();

export const LimitsSchema = z.strictObject({
  callsPerMinute: Count.default(100).describe("Calls per minute, for each server and for each session."),
  concurrency: Count.default(16).describe("Calls under way at once, for each server."),
  servers: Count.default(50).describe("Servers in all."),
  sessionServers: Count.default(10).describe("Servers that one session may bring."),
  sessionTools: Count.default(100).describe("Tools that one session may bring."),
  sessionConnections: Count.default(100).describe(
    'Sessions that may have a connection, and with it a process, of their own at one server with `isolation: "session"`.',
  ),
  resultBytes: Count.default(10 * 1024 * 1024).describe("A larger result is refused as `too_large`."),
  inlineBytes: Count.default(256 * 1024).describe(
    "Of a larger text an agent gets beginning and end; the whole stays readable as `toolcrib://results/<id>`.",
  ),
  graceMs: z
    .int()
    .min(0)
    .default(300_000)
    .describe("Milliseconds for which the tools of a server that dropped out stay listed."),
});

export type Limits = z.output<typeof LimitsSchema>;

const HubToolsSchema = ToolRulesSchema.extend({
  naming: z
    .string()
    .regex(/\{tool\}/, "a template that holds {tool}")
    .default(DEFAULT_NAMING)
    .describe("Template of public names, with `{server}` and `{tool}`."),
  askTimeout: Count.default(300_000).describe(
    "Milliseconds that a question to a person stays open; then the answer is no.",
  ),
  max: Count.optional().describe(
    "With more tools than this a session is offered the best of them and three search tools that reach the rest; all if absent.",
  ),
});

const RoleSchema = z.strictObject({
  servers: z
    .array(z.string().min(1))
    .optional()
    .describe("Ids of the servers that the role may see, `local` for in-process tools; all if absent."),
  mcpServers: z
    .record(ServerIdSchema, ServerEntrySchema)
    .optional()
    .describe("Servers of the role's own; one with the id of a hub's server takes its place."),
  tools: ToolRulesSchema.optional().describe("Rules that narrow what the role may use."),
  skills: z
    .array(z.string().min(1))
    .optional()
    .describe(
      "Names of skills whose instructions the role's agents get from the start. With `servers` these are the only skills that the role sees.",
    ),
});

const SkillsSchema = z.strictObject({
  dirs: z
    .array(z.string().min(1))
    .prefault([])
    .describe("Folders of skills that are offered as they are, without being imported; relative to this file."),
  imported: z
    .boolean()
    .optional()
    .describe("Offer the skills that were imported into the home: yes if absent, no for a config given in code."),
  autoStart: z
    .boolean()
    .default(false)
    .describe("Bring up the MCP servers that skills require, where no server of the config does their job."),
  sandbox: SandboxSchema.optional().describe("The cage of servers that skills bring; the hub's `sandbox` if absent."),
  gates: z
    .enum(["warn", "hide"])
    .default("warn")
    .describe("A skill that needs what this machine does not have is offered with a remark, or not at all."),
});

const Patterns = z.array(z.string().min(1));

const GuardSchema = z.strictObject({
  wrap: z
    .enum(["all", "agents", "none"])
    .default("agents")
    .describe("For whom untrusted text is put between boundary markers."),
  onSuspicious: z
    .enum(["ignore", "warn", "redact", "block"])
    .default("warn")
    .describe("What is done with a result that looks like an attack."),
  definitions: z
    .enum(["ignore", "warn", "quarantine"])
    .default("warn")
    .describe("What is done with a tool whose own description looks like an attack."),
  pins: z
    .enum(["off", "warn", "ask", "block"])
    .optional()
    .describe(
      "What is done with tools, prompts, resources, templates and instructions that changed or are new since their server was first seen: `warn` if absent, `off` for a config given in code.",
    ),
  taint: z
    .enum(["off", "ask", "deny"])
    .default("off")
    .describe(
      "After a session has read untrusted open-world content: what is done with tools that destroy or send out.",
    ),
  classes: z
    .strictObject({
      openWorld: Patterns.optional().describe("Tools that bring in content from anywhere."),
      destructive: Patterns.optional().describe("Tools that can destroy."),
      sendsOut: Patterns.optional().describe("Tools that can send data out; those of the open world count anyway."),
    })
    .prefault({})
    .describe("Corrects the classes that tools claim for themselves: patterns to add, `!` in front to take out."),
});

const KeyReference = z
  .string()
  .regex(/\$\{|secret:\/\//, "a reference such as secret://env/AUDIT_KEY, not the key itself");

const AuditSchema = z.strictObject({
  arguments: z.boolean().default(false).describe("Write arguments, redacted; otherwise only their hash."),
  maxBytes: Count.default(100 * 1024 * 1024).describe("Size of the whole log; the oldest files of it make room."),
  maxDays: z
    .int()
    .min(1)
    .optional()
    .describe(
      "How many days a file of the log is kept after it was last written to; as long as there is room if absent.",
    ),
  key: KeyReference.optional().describe(
    "A reference to a key of 16 characters or more, such as `secret://env/AUDIT_KEY`: lines are keyed with it (HMAC-SHA256), so that only a holder of the key can write lines that verify. Read at start.",
  ),
  oldKeys: z
    .array(KeyReference)
    .default([])
    .describe("References to keys that were used before, so that `toolcrib audit verify` can check older chains."),
});

const SecretsSchema = z.strictObject({
  exec: z
    .record(
      z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/, "a name of letters, digits, _ . and -"),
      z.array(z.string()).min(1),
    )
    .prefault({})
    .describe(
      'Programs that print a secret, by the name in `secret://exec/<name>`, such as `{"op": ["op", "read"]}`. No shell is used.',
    ),
  cacheSeconds: z
    .int()
    .min(0)
    .max(86_400)
    .default(300)
    .describe("How long a value may be kept in memory; a server that connects again reads it anew all the same."),
  maskResults: z
    .boolean()
    .default(true)
    .describe(
      "Mask values of secrets in what tools return too, so that a server cannot hand its own token to a model.",
    ),
  keep: z
    .enum(["keychain", "encrypted"])
    .optional()
    .describe(
      "What is done with a plain secret in a server that is added while the hub runs: it is put into the keychain, or encrypted into the store, and the entry gets a reference. Refused if absent.",
    ),
  key: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The key of `encrypted`, by reference: 32 bytes as base64 or hex, or any passphrase. The file `store.key` of the home if absent.",
    ),
});

export type GuardRules = z.output<typeof GuardSchema>;

export const ConfigSchema = z.strictObject({
  $schema: z.string().optional().describe("Address of the JSON Schema, for editors."),
  mcpServers: z
    .record(ServerIdSchema, ServerEntrySchema)
    .prefault({})
    .describe("The MCP servers, by id. The form of Claude Desktop and Cursor is valid as it stands."),
  import: z
    .array(z.string().min(1))
    .prefault([])
    .describe(
      "Where else servers are read from: config files, relative to this one, and ids of clients such as `cursor`.",
    ),
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
  skills: SkillsSchema.prefault({}).describe("Skills, besides those that were imported into the home."),
  roles: z
    .record(z.string().min(1), RoleSchema)
    .prefault({})
    .describe("Subsets of servers and tools, by name of the role."),
  guard: GuardSchema.prefault({}).describe("What is done with untrusted content."),
  audit: AuditSchema.prefault({}).describe("The audit record."),
  secrets: SecretsSchema.prefault({}).describe("How `secret://` references are looked up."),
  http: HttpSchema.prefault({}).describe("Address, tokens and limits of the HTTP doors."),
  agent: AgentSchema.prefault({}).describe("The built-in agent."),
  sessions: SessionsSchema.prefault({}).describe("What clients may bring along."),
  store: z
    .string()
    .regex(/^sqlite$|^postgres(?:ql)?:\/\/.|\$\{|secret:\/\//, '"sqlite" or the address of a PostgreSQL database')
    .optional()
    .describe(
      "Where state is kept: `sqlite` (in the home), or the address of a PostgreSQL database, which may hold references. `sqlite` if absent; nowhere for a config given in code that does not name it.",
    ),
  sandbox: SandboxSchema.optional().describe("The cage of servers that name none; `none` if absent."),
  containers: ContainersSchema.prefault({}).describe("How containers are run."),
  cluster: ClusterSchema.optional().describe(
    "Several hubs as one: the address of a NATS server with JetStream. Needs `store` to be a PostgreSQL database.",
  ),
});

export type Config = z.output<typeof ConfigSchema>;
export type ConfigInput = z.input<typeof ConfigSchema>;
