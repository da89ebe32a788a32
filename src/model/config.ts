/** The config file as one zod schema: types, JSON Schema and docs/config.md all come from here. */
import { z } from "zod";
import { SCOPES } from "./caller.ts";
import {
  ContainersSchema,
  EnvSettingsSchema,
  OverridesSchema,
  SandboxSchema,
  ServerEntrySchema,
  ServerIdSchema,
  StartSchema,
} from "./server-spec.ts";
import { PLACES } from "./finding.ts";
import { ToolRulesSchema } from "./tool-rules.ts";

const Count = z.int().positive();
const Milliseconds = z.int().positive();
const Text = z.string().min(1);
const Texts = z.array(Text);

/** An endpoint that is not one of the known providers. */
const EndpointSchema = z.strictObject({
  model: Text.describe("The name of the model at the endpoint."),
  provider: z
    .enum(["openai-compatible", "openai", "anthropic", "google"])
    .default("openai-compatible")
    .describe("Its protocol. `openai-compatible` is for Ollama, vLLM, llama.cpp and LM Studio."),
  baseUrl: Text.optional().describe(
    "Its address, such as `http://localhost:11434/v1`; the provider's own if absent. `/v1` can be left out if there is no other path.",
  ),
  apiKey: Text.optional().describe(
    "Its key, by reference; the provider's usual variable if absent. It is not sent over plain http to another machine.",
  ),
  headers: z
    .record(z.string(), z.string())
    .optional()
    .describe("Additional HTTP headers. Values may contain references."),
  images: z.boolean().optional().describe("Whether the model accepts images; determined from its name if absent."),
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
    "The model: `anthropic/…`, `openai/…`, `google/…`, `ollama/…`, `lmstudio/…`, `llamacpp/…`, `vllm/…`, or your own endpoint.",
  ),
  models: z
    .array(ModelSettingSchema)
    .prefault([])
    .describe("Other models that a user can choose, in ACP clients and in `toolcrib run -i`."),
  instructions: z.string().optional().describe("Text at the start of the system prompt."),
  maxTools: Count.default(50).describe(
    "Maximum number of tools that the model is given: those that fit the prompt best, and search tools that reach the rest.",
  ),
  include: Texts.optional().describe("Patterns of tools that the agent uses; all that it may use if absent."),
  exclude: Texts.optional().describe("Patterns of tools that the agent does not use."),
  maxSteps: Count.default(50).describe("Maximum number of answers of the model in one run."),
  maxTokens: Count.optional().describe(
    "Maximum number of tokens of one run, input and output together; no limit if absent.",
  ),
  maxOutputTokens: Count.optional().describe(
    "Maximum number of tokens of one answer; the model's own limit if absent.",
  ),
  retries: z
    .int()
    .min(0)
    .default(3)
    .describe("How often the model is asked again if it is busy or its answer is interrupted."),
  resultBytes: Count.default(32 * 1024).describe(
    "Of a longer text from a tool the model gets the beginning and the end, and a resource with the whole text.",
  ),
  skillsBudget: Count.default(8000).describe(
    "Maximum length of the list of skills in the system prompt, in characters.",
  ),
  sampling: z
    .enum(["deny", "ask", "allow"])
    .default("deny")
    .describe("Whether servers may use the model (MCP sampling)."),
  samplingTokens: Count.default(4096).describe("Maximum number of tokens of one answer for a server."),
});

export type AgentConfig = z.output<typeof AgentSchema>;

const SessionsSchema = z.strictObject({
  wait: z
    .int()
    .min(0)
    .default(5000)
    .describe("Milliseconds that opening a session waits for the servers that it brings."),
  toolTimeout: Milliseconds.default(120_000).describe(
    "Milliseconds that a call of a server that a session brings may take, unless its entry says otherwise; progress restarts it.",
  ),
  idleMinutes: Count.default(60).describe(
    "Minutes without a use after which the servers that a session brought end; the next use starts them again.",
  ),
  allowHosts: Texts.prefault([]).describe(
    "Private hosts and addresses that a session's servers may use: names, `*.example.internal`, addresses, or networks such as `10.1.0.0/16`. A server on Toolcrib's own machine is named with its port: `127.0.0.1:8080`. Plain http is allowed to the names and private addresses in this list.",
  ),
  allowReferences: z
    .array(
      z
        .string()
        .regex(/^(?:\$\{[^{}]+\}|secret:\/\/[^\s"'{}]+)$/i, "one reference such as `secret://env/NAME` or `${NAME}`"),
    )
    .prefault([])
    .describe(
      "References that servers from stdio clients, and from tokens with the scope `admin`, may contain, each exactly as the client writes it. A server with any other reference is left out.",
    ),
});

export type SessionsConfig = z.output<typeof SessionsSchema>;

const Origin = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^\s/?#@*]+$/, "an origin such as https://app.example.com");

const TokenSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "letters, digits, . _ and -")
    .optional()
    .describe("By which it is listed and revoked."),
  token: Text.optional().describe(
    "The token. Use a reference such as `secret://env/TOOLCRIB_TOKEN`, not the text. Either this or `sha256`.",
  ),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, "64 hexadecimal digits")
    .optional()
    .describe("The SHA-256 digest of a token that is written nowhere, as `toolcrib token add` makes it."),
  created: Text.optional().describe("The day on which it was made, for people."),
  user: Text.optional().describe('The user that it belongs to; servers with `isolation: "user"` need it.'),
  role: Text.optional().describe("The role that it is bound to. It may choose any role if absent."),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .prefault(["read", "call"])
    .describe(
      "What it may do: `read` allows lists, resources and prompts; `call` also allows tools; `approve` only allows answering approval requests of others; `admin` allows everything.",
    ),
});

const ScopeName = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, "a scope without spaces");
const ScopeRule = z.union([ScopeName, z.literal(true)]);

const OAuthScopesSchema = z.strictObject({
  read: ScopeRule.default("read").describe("Token scope that grants `read`; true grants it to every valid token."),
  call: ScopeRule.default("call").describe(
    "Token scope that grants `call`, which includes `read`; true grants it to every valid token.",
  ),
  approve: ScopeName.optional().describe("Token scope that grants `approve`; no token has it if absent."),
  admin: ScopeName.optional().describe("Token scope that grants `admin`; no token has it if absent."),
});

const ResourceServerSchema = z.strictObject({
  issuer: Text.describe("Address of the authorization server, exactly as in its tokens; https unless loopback."),
  audience: Text.optional().describe(
    "The required `aud` of a token; the address of this hub, with or without the path of the endpoint, if absent.",
  ),
  jwksUri: Text.optional().describe("Address of its keys; from its metadata (OAuth or OpenID Connect) if absent."),
  scopes: OAuthScopesSchema.prefault({}).describe(
    "Which scopes of a token (`scope` or `scp`) grant which scopes here.",
  ),
  userClaim: Text.default("sub").describe("Claim that names the user."),
  roleClaim: Text.optional().describe("Claim that names the role; if set, a token without it is refused."),
});

const HttpAuthSchema = z.strictObject({
  tokens: z
    .array(TokenSchema)
    .optional()
    .describe("Static bearer tokens. An empty list admits no one but the user who runs the hub."),
  oauth: ResourceServerSchema.optional().describe("Accepts access tokens (JWT) of an OAuth authorization server."),
});

const HttpLimitsSchema = z.strictObject({
  bodyBytes: Count.default(16 * 1024 * 1024).describe("Maximum size of a request body."),
  headerBytes: z
    .int()
    .min(1024)
    .default(16 * 1024)
    .describe("Maximum size of all headers of a request."),
  requestsPerMinute: Count.optional().describe(
    "Requests per minute of one caller, or of one address if the caller is unknown; 60 times `limits.callsPerMinute` (100 if that is not set) if absent; without that and without `auth` there is no limit.",
  ),
  sessions: Count.default(5000).describe("Open sessions. Callers with `admin` get ten more."),
  sessionsPerToken: Count.optional().describe(
    "Open sessions of one token, and the same number of event streams and WebSockets. A fifth of `sessions` (or `streams`) if absent; all of them if there is only one token without `admin`, or no `auth`.",
  ),
  sessionsPerUser: Count.optional().describe("The same limit for one user, across all of the user's tokens."),
  streams: Count.default(5000).describe("Open event streams. Callers with `admin` get ten more."),
  connections: Count.default(10_000).describe("Open connections."),
  sessionIdleMs: Milliseconds.default(1_800_000).describe("Milliseconds after which an unused session ends."),
  requestTimeoutMs: Milliseconds.default(30_000).describe(
    "Milliseconds in which a request must arrive. A client that reads nothing of its response for this long is disconnected.",
  ),
  shutdownMs: Milliseconds.default(10_000).describe(
    "Milliseconds that calls in progress get to finish when the hub stops.",
  ),
});

const Network = z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()]);

export const HttpSchema = z.strictObject({
  host: Text.default("127.0.0.1").describe("Address to listen on. Any address other than loopback needs `auth`."),
  port: z.int().min(0).max(65_535).default(4700).describe("Port to listen on; 0 takes any free port."),
  publicUrl: z
    .string()
    .regex(/^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/, "an http or https address without query")
    .optional()
    .describe(
      "Address at which clients reach it, behind a reverse proxy. It may have a path, such as `https://example.com/toolcrib`, which the proxy takes off; if it does not, set `basePath` too.",
    ),
  basePath: z
    .string()
    .regex(/^(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/, "a path such as /toolcrib, without a slash at its end")
    .optional()
    .describe("The path before all others in requests, where the reverse proxy does not take it off."),
  trustedProxies: z
    // The formats of zod for networks are unknown to editors that read the JSON Schema.
    .array(
      z.string().refine((text) => Network.safeParse(text).success, "an IP address, or a network such as 10.0.0.0/8"),
    )
    .prefault([])
    .describe(
      "Addresses or networks of reverse proxies, such as `127.0.0.1` or `10.0.0.0/8`, whose `X-Forwarded-For` says where a request comes from. Without it all who come through a proxy share one limit of requests without a token.",
    ),
  allowedHosts: z
    .array(z.string().regex(/^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)$/, "a host name without port"))
    .prefault([])
    .describe("Additional host names that clients may use."),
  cors: z
    .array(Origin)
    .prefault([])
    .describe(
      "Origins of other web pages that may use it, each in full: `http://localhost:6274` is the MCP Inspector. `*` is not supported.",
    ),
  allowedOrigins: z.array(Origin).prefault([]).describe("The former name of `cors`; both are read."),
  auth: HttpAuthSchema.optional().describe(
    "Who has access. Without it everyone on this machine has, except as `admin`.",
  ),
  limits: HttpLimitsSchema.prefault({}).describe("Limits for clients."),
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
    .describe("Address of NATS, with credentials by reference. Several addresses for a NATS cluster."),
  name: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,32}$/, "up to 32 letters, digits, _ or -")
    .default("toolcrib")
    .describe("Hubs with the same name form one cluster; other clusters can use the same NATS."),
  node: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,63}$/, "up to 63 letters, digits, _, . or -")
    .optional()
    .describe("Display name of this node; the name of the machine if absent."),
  credentials: Text.optional().describe("A NATS credentials file, its text or a reference to it."),
  leaseMs: z
    .int()
    .min(1000)
    .max(60_000)
    .default(4000)
    .describe("Milliseconds after which a silent node is considered gone. Must be the same on all nodes."),
  copies: z
    .int()
    .min(1)
    .max(5)
    .optional()
    .describe(
      "Number of NATS servers on which JetStream stores the shared state; 1 if absent. Must be the same on all nodes.",
    ),
});

const ClusterSchema = z.union([z.null(), Address, ClusterObjectSchema]);

export type ClusterConfig = z.output<typeof ClusterObjectSchema>;
type ClusterEntry = z.output<typeof ClusterSchema>;

/** The full form of an entry; undefined if there is no cluster. */
export function clusterOf(entry: ClusterEntry | undefined): ClusterConfig | undefined {
  if (entry === null || entry === undefined) return undefined;
  return typeof entry === "string" ? ClusterObjectSchema.parse({ url: entry }) : entry;
}

export const DEFAULT_NAMING = "{server}__{tool}";

const LimitsSchema = z.strictObject({
  callsPerMinute: Count.optional().describe(
    "Calls per minute of one session, or of one caller with a token. If absent: none for the owner of a hub on one machine, 100 for others.",
  ),
  concurrency: Count.default(16).describe("Calls in progress at the same time, for each server."),
  servers: Count.default(50).describe("Maximum number of servers."),
  sessionServers: Count.default(10).describe("Servers that one session may bring."),
  sessionTools: Count.default(100).describe("Tools that one session may bring."),
  sessionConnections: Count.default(100).describe(
    'Sessions that can have their own connection, and with it their own process, at one server with `isolation: "session"`.',
  ),
  resultBytes: Count.default(10 * 1024 * 1024).describe("A larger result is refused with `too_large`."),
  inlineBytes: Count.default(256 * 1024).describe(
    "Of a larger text an agent gets the beginning and the end; the whole text can be read as `toolcrib://results/<id>`.",
  ),
  graceMs: z
    .int()
    .min(0)
    .default(30_000)
    .describe("Milliseconds for which the tools of a disconnected server stay listed."),
  listWaitMs: z
    .int()
    .min(0)
    .default(750)
    .describe(
      "Milliseconds that a client's handshake and first lists together wait for servers that are starting, if others are there. A client is notified of those that come later.",
    ),
});

export type Limits = z.output<typeof LimitsSchema>;

/**
 * How long a client's first lists wait for further servers once one is there, in milliseconds: servers that start together are
 * ready at about the same time, and many clients do not list again.
 */
export function stragglerMs({ listWaitMs }: Limits): number {
  return listWaitMs / 4;
}

/**
 * The same for a session with an agent of Toolcrib's. It is shorter than for clients, because a model cannot begin before, and is
 * notified of those that come later.
 */
export function lateMs(limits: Limits): number {
  return stragglerMs(limits) / 3;
}

const HubToolsSchema = ToolRulesSchema.extend({
  naming: z
    .string()
    .regex(/\{tool\}/, "a template that contains {tool}")
    .regex(
      /^(?:[A-Za-z0-9_-]|\{server\}|\{tool\})*$/,
      "a template of {server}, {tool}, letters, digits, _ and -: model providers accept no other character in a name",
    )
    .default(DEFAULT_NAMING)
    .describe("Template of public names, with `{server}` and `{tool}`."),
  askTimeout: Count.default(300_000).describe(
    "Milliseconds that an approval request stays open; then it counts as refused.",
  ),
  max: Count.optional().describe(
    "If there are more tools than this, a session is offered the best of them and three search tools that reach the rest; all tools if absent.",
  ),
});

const RoleSchema = z.strictObject({
  servers: Texts.optional().describe(
    "Ids of the servers that the role may see, `local` for in-process tools; all if absent.",
  ),
  mcpServers: z
    .record(ServerIdSchema, ServerEntrySchema)
    .optional()
    .describe("The role's own servers; one with the id of a hub server replaces it."),
  tools: ToolRulesSchema.optional().describe("Rules that narrow what the role may use."),
  overrides: OverridesSchema.optional().describe("Other definitions of tools for the role, by public name."),
  views: Texts.optional().describe(
    "Views that the role may use; without choosing one it has their tools together. All views, and all its tools, if absent.",
  ),
  skills: Texts.optional().describe(
    "Skills whose instructions agents of this role get from the start, by name. With `servers`, these are the only skills that the role sees.",
  ),
});

const ViewSchema = z.strictObject({
  tools: Texts.describe("Patterns of the tools that are in it, as in `allow`."),
  overrides: OverridesSchema.optional().describe("Other definitions for its tools, by public name."),
  instructions: z.string().min(1).optional().describe("What clients that use it are told first."),
});

const SkillsSchema = z.strictObject({
  dirs: Texts.prefault([]).describe(
    "Folders of skills that are offered without being imported; relative to this file.",
  ),
  imported: z
    .boolean()
    .optional()
    .describe(
      "Whether to offer the skills that were imported into the home: yes if absent, no for a config given in code.",
    ),
  autoStart: z
    .boolean()
    .default(false)
    .describe("Start the MCP servers that skills require, unless a server of the config provides the same."),
  sandbox: SandboxSchema.optional().describe(
    "The sandbox of servers that skills bring; the hub's `sandbox` if absent.",
  ),
  gates: z
    .enum(["warn", "hide"])
    .default("warn")
    .describe(
      "Whether a skill whose requirements this machine does not meet is offered with a warning, or not at all.",
    ),
});

/** The keys that each profile sets. `watch` is what applies without `guard`, apart from pins of a config given in code. */
export const GUARD_PROFILES = {
  off: { wrap: "none", onSuspicious: "ignore", definitions: "ignore", pins: "off", taint: "off" },
  watch: { wrap: "agents", onSuspicious: "warn", definitions: "warn", pins: "warn", taint: "off" },
  balanced: { wrap: "agents", onSuspicious: "warn", definitions: "warn", pins: "ask", taint: "ask" },
  strict: { wrap: "all", onSuspicious: "block", definitions: "quarantine", pins: "block", taint: "deny" },
} as const;

export const GuardProfileSchema = z.enum(["off", "watch", "balanced", "strict"]);

/** Without conditions: a class is one of the tool, whatever it is called with. */
const NamePatterns = z.array(
  z
    .string()
    .min(1)
    .regex(/^[^()]*$|[:/]/, "a pattern without conditions on arguments"),
);

const KeyReference = z
  .string()
  .regex(/\$\{|secret:\/\//, "a reference such as secret://env/AUDIT_KEY, not the key itself");

export const MAX_DETECTORS = 8;

const detectorKeys = {
  name: Text.max(60)
    .optional()
    .describe("Named in findings, events and logs; its type and place in the list if absent."),
  places: z
    .array(z.enum(PLACES))
    .optional()
    .describe("The places whose texts it reads; all but `progress` and `log` if absent."),
  threshold: z
    .number()
    .gt(0)
    .lte(1)
    .default(0.8)
    .describe("From this score on, of 1, a text is suspicious; from halfway between it and 1, surely hostile."),
  timeoutMs: Count.default(2000).describe(
    "How long it may take for the texts of one result. Those that it fails on together are read again one by one, each with its share of this time.",
  ),
  maxCharacters: Count.default(50_000).describe("The longest text it reads. It fails on a longer one."),
  onFailure: z
    .enum(["open", "closed"])
    .default("open")
    .describe("What a failure means: `open` relies on the other detectors, `closed` makes the texts suspicious."),
  cacheEntries: z.int().min(0).default(2000).describe("Verdicts that are kept, by a hash of the text."),
};

const attackLabels = z
  .array(z.string().min(1))
  .optional()
  .describe("The labels that mean an attack; those with injection, jailbreak, attack, malicious, unsafe or LABEL_1.");

const DetectorSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("http").describe("A classifier service."),
    url: Text.describe("Where texts are posted: https, or http on this machine."),
    format: z
      .enum(["toolcrib", "huggingface"])
      .default("toolcrib")
      .describe("The form of request and answer: see docs/detectors.md."),
    token: KeyReference.optional().describe("Sent as bearer token; a reference such as secret://env/CLASSIFIER_TOKEN."),
    allowHttp: z.boolean().default(false).describe("Allows plain http to another machine, for a network you trust."),
    attackLabels,
    ...detectorKeys,
  }),
  z.strictObject({
    type: z.literal("onnx").describe("A text classifier that runs here, in the ONNX format."),
    model: Text.describe("Path of the model, relative to the config file."),
    tokenizer: Text.describe("Path of its tokenizer.json."),
    runtime: z
      .string()
      .min(1)
      .default("onnxruntime-node")
      .describe("The package that runs it, or the path of one; it has to be installed beside Toolcrib."),
    labels: z
      .array(z.string().min(1))
      .min(2)
      .optional()
      .describe("The names of its outputs in their order; without them all but the first mean an attack."),
    maxTokens: z.int().min(64).max(8192).default(512).describe("The most tokens that it reads at once."),
    attackLabels,
    ...detectorKeys,
  }),
  z.strictObject({
    type: z.literal("module").describe("A function."),
    path: Text.describe("Path of a module whose default export is the function, relative to the config file."),
    ...detectorKeys,
  }),
]);

export type DetectorEntry = z.output<typeof DetectorSchema>;

const GuardObjectSchema = z.strictObject({
  profile: GuardProfileSchema.optional().describe(
    "The profile that the keys below change; what applies without `guard` if absent.",
  ),
  wrap: z
    .enum(["all", "agents", "none"])
    .optional()
    .describe("Who gets untrusted text between boundary markers: `agents` without a profile."),
  onSuspicious: z
    .enum(["ignore", "warn", "redact", "block"])
    .optional()
    .describe("How to handle a result that looks like an attack: `warn` without a profile."),
  sensitivity: z
    .enum(["low", "normal", "high"])
    .default("normal")
    .describe("How much it takes for a text to look like an attack: `high` finds more and has more false alarms."),
  detectors: z
    .array(DetectorSchema)
    .max(MAX_DETECTORS)
    .prefault([])
    .describe("Detectors of your own, which read what the built-in rules read: see docs/detectors.md."),
  definitions: z
    .enum(["ignore", "warn", "quarantine"])
    .optional()
    .describe("How to handle a tool whose description looks like an attack: `warn` without a profile."),
  pins: z
    .enum(["off", "warn", "ask", "block"])
    .optional()
    .describe(
      "How to handle tools, prompts, resources, templates and instructions that changed or are new since their server was first seen. Without a profile `warn`, and `off` for a config given in code.",
    ),
  taint: z
    .enum(["off", "ask", "deny"])
    .optional()
    .describe(
      "How to handle tools that destroy or send out data after a session has read untrusted open-world content: `off` without a profile.",
    ),
  classes: z
    .strictObject({
      openWorld: NamePatterns.optional().describe("Tools that bring in content from anywhere."),
      destructive: NamePatterns.optional().describe("Tools that can destroy data."),
      sendsOut: NamePatterns.optional().describe("Tools that can send data out."),
      memory: NamePatterns.optional().describe(
        "Tools that keep notes for later sessions: what a tainted session writes there taints who reads it.",
      ),
    })
    .prefault({})
    .describe(
      "Corrects the classes of tools, which come from their hints and from the list of well-known servers: patterns to add, with `!` in front to remove.",
    ),
});

const GuardSchema = z.union([GuardProfileSchema, GuardObjectSchema]).transform(guardOf);

/** The full form of a guard: what its profile sets, changed by its own keys. */
function guardOf(entry: GuardEntry): GuardRules {
  const given = typeof entry === "string" ? GuardObjectSchema.parse({ profile: entry }) : entry;
  const set = GUARD_PROFILES[given.profile ?? "watch"];
  return {
    ...given,
    wrap: given.wrap ?? set.wrap,
    onSuspicious: given.onSuspicious ?? set.onSuspicious,
    definitions: given.definitions ?? set.definitions,
    // Without a profile, whether there are pins depends on where the config comes from.
    pins: given.pins ?? (given.profile && set.pins),
    taint: given.taint ?? set.taint,
  };
}

type GuardObject = z.output<typeof GuardObjectSchema>;
type GuardEntry = GuardObject | z.output<typeof GuardProfileSchema>;
type GuardMode = "wrap" | "onSuspicious" | "definitions" | "taint";
/** With everything that its profile sets. */
export type GuardRules = Omit<GuardObject, GuardMode> & Required<Pick<GuardObject, GuardMode>>;

const AuditSchema = z.strictObject({
  arguments: z
    .boolean()
    .default(false)
    .describe(
      "Whether to record arguments, redacted; otherwise only their hash is recorded, and arguments while recording is switched on.",
    ),
  results: z
    .boolean()
    .default(false)
    .describe(
      "Whether to record results, redacted and at most 16 KiB of each; otherwise only their size is recorded, and results while recording is switched on.",
    ),
  maxBytes: Count.default(100 * 1024 * 1024).describe(
    "Maximum size of the whole log; the oldest files are deleted first.",
  ),
  maxDays: z
    .int()
    .min(1)
    .optional()
    .describe("Days to keep a file of the log after it was last written to; as long as there is room if absent."),
  key: KeyReference.optional().describe(
    "A reference to a key of 16 characters or more, such as `secret://env/AUDIT_KEY`: lines are authenticated with it (HMAC-SHA256), so that only a holder of the key can write lines that verify. Read at start.",
  ),
  oldKeys: z
    .array(KeyReference)
    .default([])
    .describe("References to former keys, so that `toolcrib audit verify` can check older chains."),
});

const NoticeSchema = z
  .strictObject({
    type: z
      .enum(["webhook", "slack", "discord", "ntfy"])
      .describe("The form of the message. `webhook` is JSON, signed with `secret`."),
    url: z
      .string()
      .regex(/^https?:\/\/.|\$\{|secret:\/\//, "an https address, or a reference to it")
      .describe(
        "Where it is sent: https, or http on this machine. Addresses of Slack and Discord are secrets themselves and are given by reference.",
      ),
    secret: KeyReference.optional().describe("The key that signs a `webhook`, by reference."),
    token: KeyReference.optional().describe("A bearer token to send, by reference, such as that of ntfy."),
    answers: z
      .boolean()
      .default(false)
      .describe(
        "Whether the notice has links that allow the call once or deny it; otherwise only one to the page. Whoever can read the notice can answer, its caller too.",
      ),
    arguments: z
      .boolean()
      .default(false)
      .describe("Whether the notice has the arguments, masked and shortened. The page behind its links shows them."),
  })
  .superRefine(({ type, url, secret, token, answers }, context) => {
    const add = (path: string, message: string): void => context.addIssue({ code: "custom", path: [path], message });
    if (type === "webhook" && secret === undefined) add("secret", "a webhook needs a secret that signs it");
    if (type !== "webhook" && secret !== undefined) add("secret", "only a webhook is signed");
    if (type === "ntfy" && answers && token === undefined)
      add("answers", "everyone who knows the topic could answer: give a token, or leave answers out");
    if (token !== undefined && type !== "ntfy" && type !== "webhook") add("token", `${type} takes no token`);
    const isReference = /\$\{|secret:\/\//.test(url);
    if ((type === "slack" || type === "discord") && !isReference)
      add("url", "this address is a secret itself: write a reference such as secret://env/HOOK_URL");
  });

const ApprovalsSchema = z.strictObject({
  notify: z
    .record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "letters, digits, . _ and -"), NoticeSchema)
    .prefault({})
    .describe(
      "Who is notified of calls that wait for approval, by a name that the audit log shows for answers. Links lead to `http.publicUrl`.",
    ),
});

export type NoticeSettings = z.output<typeof NoticeSchema>;

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
    .describe("How long a value may be cached in memory; a server that reconnects always reads it again."),
  maskResults: z
    .boolean()
    .default(true)
    .describe(
      "Whether to mask values of secrets in results of tools, so that a server cannot pass its own token to a model.",
    ),
  keep: z
    .enum(["keychain", "encrypted"])
    .optional()
    .describe(
      "Where to put a plain secret of a server that is added while the hub runs: into the keychain, or encrypted into the store. The entry gets a reference. Plain secrets are refused if absent.",
    ),
  key: Text.optional().describe(
    "The key of `encrypted`, by reference: 32 bytes as base64 or hex, or any passphrase. The file `store.key` of the home if absent.",
  ),
});

const HubSchema = z.strictObject({
  idleMinutes: z
    .number()
    .min(0)
    .max(100_000)
    .default(30)
    .describe("A hub that a client started in the background ends after this time without clients; 0 for never."),
  clientEnv: z
    .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/))
    .max(100)
    .default([])
    .describe(
      'Environment variables that stdio clients pass on: in a server with isolation "session", references use them before those of the hub.',
    ),
});

export const ConfigSchema = z.strictObject({
  $schema: z.string().optional().describe("Address of the JSON Schema, for editors."),
  mcpServers: z
    .record(ServerIdSchema, ServerEntrySchema)
    .prefault({})
    .describe("The MCP servers, by id. The format of Claude Desktop and Cursor is valid unchanged."),
  import: Texts.prefault([]).describe(
    "Other sources of servers: config files, relative to this one, and ids of clients such as `cursor`.",
  ),
  plugins: Texts.prefault([]).describe(
    "Modules whose default export `register(api)` registers in-process tools; relative to this file.",
  ),
  tools: HubToolsSchema.prefault({}).describe("Names and rules for all tools."),
  limits: LimitsSchema.prefault({}).describe("Limits. `TOOLCRIB_LIMITS_<KEY>` in the environment overrides each."),
  workspaceDir: z
    .string()
    .optional()
    .describe("Folder offered to servers as a root; relative to this file. None is offered if absent."),
  skills: SkillsSchema.prefault({}).describe("Skills, in addition to those imported into the home."),
  roles: z
    .record(z.string().min(1), RoleSchema)
    .prefault({})
    .describe("Subsets of servers and tools, by name of the role."),
  views: z
    .record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "letters, digits, . _ and -"), ViewSchema)
    .prefault({})
    .describe("Named selections of tools, each served at `/mcp/<name>`."),
  guard: GuardSchema.prefault({}).describe(
    "How to handle untrusted content: a profile (`off`, `watch`, `balanced` or `strict`), or an object.",
  ),
  audit: AuditSchema.prefault({}).describe("The audit log."),
  approvals: ApprovalsSchema.prefault({}).describe("Calls that wait for approval."),
  secrets: SecretsSchema.prefault({}).describe("How `secret://` references are resolved."),
  hub: HubSchema.prefault({}).describe("The hub that clients share in the background."),
  http: HttpSchema.prefault({}).describe("Address, tokens and limits of the HTTP endpoints."),
  agent: AgentSchema.prefault({}).describe("The built-in agent."),
  sessions: SessionsSchema.prefault({}).describe("What clients may bring to their sessions."),
  store: z
    .string()
    .regex(/^sqlite$|^postgres(?:ql)?:\/\/.|\$\{|secret:\/\//, '"sqlite" or the address of a PostgreSQL database')
    .optional()
    .describe(
      "Where to store state: `sqlite` (in the home), or the address of a PostgreSQL database, which may contain references. `sqlite` if absent; nothing is stored for a config given in code that does not set it.",
    ),
  env: EnvSettingsSchema.prefault({}).describe("The environment that programs of servers get."),
  sandbox: SandboxSchema.optional().describe("The sandbox of servers that do not set their own; `none` if absent."),
  start: StartSchema.optional().describe(
    "When servers that do not say so themselves are connected: with the hub (`eager`) or when they are first used (`lazy`); `eager` if absent.",
  ),
  containers: ContainersSchema.prefault({}).describe("How containers are run."),
  cluster: ClusterSchema.optional().describe(
    "Runs several hubs as one: the address of a NATS server with JetStream. `store` must be a PostgreSQL database.",
  ),
});

export type Config = z.output<typeof ConfigSchema>;
export type ConfigInput = z.input<typeof ConfigSchema>;
