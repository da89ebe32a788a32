/** The config file as one zod schema: types, JSON Schema and docs/config.md all come from here. */
import { z } from "zod";
import { SCOPES } from "./caller.ts";
import { ContainersSchema, SandboxSchema, ServerEntrySchema, ServerIdSchema, ToolRulesSchema } from "./server-spec.ts";

const AgentCount = z.int().positive();
const AgentPatterns = z.array(z.string().min(1));

/** How an endpoint that is not its provider's own is reached. */
const EndpointSchema = z.strictObject({
  model: z.string().min(1).describe("What the endpoint calls the model."),
  provider: z
    .enum(["openai-compatible", "openai", "anthropic", "google"])
    .default("openai-compatible")
    .describe("The protocol that it speaks: `openai-compatible` is that of Ollama, vLLM, llama.cpp and LM Studio."),
  baseUrl: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Its address, such as `http://localhost:11434/v1`; the provider's own if absent. `/v1` may be left out where there is no other path.",
    ),
  apiKey: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Its key, by reference; the provider's usual variable if absent. It is not sent over plain http to another machine.",
    ),
  headers: z.record(z.string(), z.string()).optional().describe("Further HTTP headers. Values may hold references."),
  images: z.boolean().optional().describe("Whether the model sees images; known by its name if absent."),
});

const ModelSettingSchema = z.union([
  z.string().regex(/^[^/\s]+\/\S+$/, "`<provider>/<model>`, such as `anthropic/claude-sonnet-4-5`"),
  EndpointSchema,
]);

/** `"anthropic/…"`, `"openai/…"`, `"google/…"`, `"ollama/…"`, `"lmstudio/…"`, `"llamacpp/…"`, `"vllm/…"`, or an endpoint. */
export type ModelSetting = z.input<typeof ModelSettingSchema>;
export type ModelEndpoint = z.output<typeof EndpointSchema>;

const AgentSchema = z.strictObject({
  model: ModelSettingSchema.optional().describe(
    "The model: `anthropic/…`, `openai/…`, `google/…`, `ollama/…`, `lmstudio/…`, `llamacpp/…`, `vllm/…`, or an endpoint of your own.",
  ),
  models: z
    .array(ModelSettingSchema)
    .prefault([])
    .describe("Others that a user may choose instead, in ACP clients and in `toolcrib run -i`."),
  instructions: z.string().optional().describe("Put before everything else in the system prompt."),
  maxTools: AgentCount.default(50).describe(
    "Tools that the model is told of at once; those that fit the prompt best, and search tools that reach the rest.",
  ),
  include: AgentPatterns.optional().describe("Patterns of tools that the agent uses; all that it may if absent."),
  exclude: AgentPatterns.optional().describe("Patterns of tools that the agent does not use."),
  maxSteps: AgentCount.default(50).describe("Answers of the model in one run."),
  maxTokens: AgentCount.optional().describe("Tokens of one run, input and output together; no limit if absent."),
  maxOutputTokens: AgentCount.optional().describe("Tokens of one answer of the model; its own limit if absent."),
  retries: z
    .int()
    .min(0)
    .default(3)
    .describe("How often a model that is busy, or whose answer broke off, is asked again."),
  resultBytes: AgentCount.default(32 * 1024).describe(
    "Of a longer text of a tool the model gets beginning and end, and a resource to read the whole.",
  ),
  skillsBudget: AgentCount.default(8000).describe("Characters of the system prompt that the list of skills may take."),
  sampling: z
    .enum(["deny", "ask", "allow"])
    .default("deny")
    .describe("Whether servers may use the model (MCP sampling)."),
  samplingTokens: AgentCount.default(4096).describe("Tokens of one answer for a server."),
});

export type AgentConfig = z.output<typeof AgentSchema>;

const SessionsSchema = z.strictObject({
  wait: z.int().min(0).default(5000).describe("Milliseconds that opening a session waits for the servers it brings."),
  allowHosts: z
    .array(z.string().min(1))
    .prefault([])
    .describe(
      "Hosts and addresses that a session's servers may be at although they are private: names, `*.example.internal`, addresses, or networks such as `10.1.0.0/16`. A server on Toolcrib's own machine is named with its port: `127.0.0.1:8080`. Plain http is allowed to names and private addresses that stand here.",
    ),
  allowReferences: z
    .array(
      z
        .string()
        .regex(/^(?:\$\{[^{}]+\}|secret:\/\/[^\s"'{}]+)$/i, "one reference such as `secret://env/NAME` or `${NAME}`"),
    )
    .prefault([])
    .describe(
      "References that servers of clients on stdio, and of tokens with the scope `admin`, may hold, each exactly as the client writes it. What a client brings is literal otherwise: a server with any other reference is left out.",
    ),
});

export type SessionsConfig = z.output<typeof SessionsSchema>;

const HttpCount = z.int().positive();
const Milliseconds = z.int().positive();
const Text = z.string().min(1);

const Origin = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^\s/?#@*]+$/, "an origin such as https://app.example.com");

const TokenSchema = z.strictObject({
  token: Text.describe("The token. Use a reference such as `secret://env/TOOLCRIB_TOKEN`, not the text."),
  user: Text.optional().describe('Who is behind it; servers with `isolation: "user"` need it.'),
  role: Text.optional().describe("The role that it is bound to; it can choose no other. It may choose any if absent."),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .prefault(["read", "call"])
    .describe(
      "What it may do: `read` lists, resources and prompts; `call` tools as well; `approve` answers for calls of others that wait for approval, and nothing else; `admin` everything.",
    ),
});

const ScopeName = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, "a scope without spaces");
const ScopeRule = z.union([ScopeName, z.literal(true)]);

const OAuthScopesSchema = z.strictObject({
  read: ScopeRule.default("read").describe("Scope of the token that gives `read`; true if every valid token has it."),
  call: ScopeRule.default("call").describe("Scope of the token that gives `call`, and `read` with it; true as above."),
  approve: ScopeName.optional().describe("Scope of the token that gives `approve`; no token has it if absent."),
  admin: ScopeName.optional().describe("Scope of the token that gives `admin`; no token has it if absent."),
});

const ResourceServerSchema = z.strictObject({
  issuer: Text.describe(
    "Address of the authorization server, exactly as it stands in its tokens; https unless loopback.",
  ),
  audience: Text.optional().describe(
    "What has to stand in `aud` of a token; the address of this hub, with or without the path of the door, if absent.",
  ),
  jwksUri: Text.optional().describe("Address of its keys; from its metadata (OAuth or OpenID Connect) if absent."),
  scopes: OAuthScopesSchema.prefault({}).describe("Which scopes of a token (`scope` or `scp`) give which of ours."),
  userClaim: Text.default("sub").describe("Claim that names the user."),
  roleClaim: Text.optional().describe("Claim that names the role; a token without it is then refused."),
});

const HttpAuthSchema = z.strictObject({
  tokens: z.array(TokenSchema).min(1).optional().describe("Bearer tokens that are known beforehand."),
  oauth: ResourceServerSchema.optional().describe("Takes access tokens (JWT) of an OAuth authorization server."),
});

const HttpLimitsSchema = z.strictObject({
  bodyBytes: HttpCount.default(16 * 1024 * 1024).describe("Size of a request's body."),
  headerBytes: z
    .int()
    .min(1024)
    .default(16 * 1024)
    .describe("Size of a request's headers, all together."),
  requestsPerMinute: HttpCount.optional().describe(
    "Requests per minute of one caller, or of one address where the caller is not known; 60 times `limits.callsPerMinute` if absent.",
  ),
  sessions: HttpCount.default(5000).describe("Open sessions. Callers with `admin` get ten more."),
  sessionsPerToken: HttpCount.optional().describe(
    "Open sessions of one token, and as many event streams and WebSockets. A fifth of `sessions` (of `streams`) if absent; all of them where only one token without `admin` can come in, or no `auth` is set.",
  ),
  sessionsPerUser: HttpCount.optional().describe("The same for one user, whatever tokens they have."),
  streams: HttpCount.default(5000).describe("Open event streams. Callers with `admin` get ten more."),
  connections: HttpCount.default(10_000).describe("Open connections."),
  sessionIdleMs: Milliseconds.default(1_800_000).describe("Milliseconds after which an unused session ends."),
  requestTimeoutMs: Milliseconds.default(30_000).describe(
    "Milliseconds in which a request has to arrive; a client that takes nothing of its answer for as long is cut off.",
  ),
  shutdownMs: Milliseconds.default(10_000).describe("Milliseconds that calls under way get when the hub is stopped."),
});

export const HttpSchema = z.strictObject({
  host: Text.default("127.0.0.1").describe("Address to listen at. Any other than loopback needs `auth`."),
  port: z.int().min(0).max(65_535).default(4700).describe("Port to listen at; 0 takes any that is free."),
  publicUrl: z
    .string()
    .regex(/^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/, "an http or https address without query")
    .optional()
    .describe("Address under which clients reach it, behind a reverse proxy."),
  allowedHosts: z
    .array(z.string().regex(/^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)$/, "a host name without port"))
    .prefault([])
    .describe("Further host names that clients may use."),
  cors: z
    .array(Origin)
    .prefault([])
    .describe(
      "Origins whose web pages may use it besides its own page, each in full: `http://localhost:6274` is the MCP Inspector's. There is no `*`.",
    ),
  allowedOrigins: z.array(Origin).prefault([]).describe("The earlier name of `cors`; both are read."),
  auth: HttpAuthSchema.optional().describe(
    "Who may enter. Without it everybody on this machine may, except as `admin`.",
  ),
  limits: HttpLimitsSchema.prefault({}).describe("What clients may use up."),
});

export type HttpConfig = z.output<typeof HttpSchema>;
export type TokenSettings = z.output<typeof TokenSchema>;
export type ResourceServerSettings = z.output<typeof ResourceServerSchema>;

const Address = z
  .string()
  .regex(/^(?:nats|tls|ws|wss):\/\/.|\$\{|secret:\/\//, "the address of a NATS server, such as nats://127.0.0.1:4222");

const ClusterObjectSchema = z.strictObject({
  url: z
    .union([Address, z.array(Address).min(1)])
    .describe("Where NATS is; credentials in it by reference. Several for a NATS cluster."),
  name: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,32}$/, "up to 32 letters, digits, _ or -")
    .default("toolcrib")
    .describe("Hubs of one name are one cluster; others on the same NATS are no concern of theirs."),
  node: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,63}$/, "up to 63 letters, digits, _, . or -")
    .optional()
    .describe("Name of this node for people; the name of the machine if absent."),
  credentials: z.string().min(1).optional().describe("A NATS credentials file, its text or a reference to it."),
  leaseMs: z
    .int()
    .min(1000)
    .max(60_000)
    .default(4000)
    .describe("Milliseconds after which a node that says nothing counts as gone. The same on all nodes."),
  copies: z
    .int()
    .min(1)
    .max(5)
    .optional()
    .describe("On how many NATS servers JetStream keeps what nodes share; 1 if absent. The same on all nodes."),
});

const ClusterSchema = z.union([z.null(), Address, ClusterObjectSchema]);

export type ClusterConfig = z.output<typeof ClusterObjectSchema>;
type ClusterEntry = z.output<typeof ClusterSchema>;

/** The object that an entry stands for; undefined where there is no cluster. */
export function clusterOf(entry: ClusterEntry | undefined): ClusterConfig | undefined {
  if (entry === null || entry === undefined) return undefined;
  return typeof entry === "string" ? ClusterObjectSchema.parse({ url: entry }) : entry;
}

export const DEFAULT_NAMING = "{server}__{tool}";

const Count = z.int().positive();

const LimitsSchema = z.strictObject({
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
