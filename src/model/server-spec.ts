/** ServerSpec: the one form in which the rest of Toolcrib sees an MCP server, whatever dialect it was written in. */
import { z } from "zod";

/**
 * A glob on names, a class (`readOnly`, `writes`, `destructive`, `openWorld`), `tag:<name>`, or exactly one name after `=`
 * (`=tool:<name>`, `=resource:<uri>`, `=prompt:<name>`); `!` in front takes out again.
 */
const Patterns = z.array(z.string().min(1));

export const ToolRulesSchema = z.strictObject({
  allow: Patterns.optional().describe("Patterns of tools that may be used; all if absent."),
  deny: Patterns.optional().describe("Patterns of what may not be used; beats ask and allow."),
  ask: Patterns.optional().describe("Patterns of what needs approval by a person; beats allow."),
});

export type ToolRules = z.output<typeof ToolRulesSchema>;

/** Rules that a session brings along. Not part of the config. */
export interface SessionRules extends ToolRules {
  /**
   * Only what these sources offer, whatever its kind; `local` is the in-process tools. An id also stands for the server that
   * a role has in its place.
   */
  readonly servers?: readonly string[] | undefined;
  /** Only what servers with at least one of these tags offer. In-process tools have no tags. */
  readonly tags?: readonly string[] | undefined;
  /** Whether patterns of this set also match what servers themselves call their tools. */
  readonly ownNames?: boolean | undefined;
  /** Patterns of what `allow` says nothing about. They match public names only, so no server can give itself one of them. */
  readonly exempt?: readonly string[] | undefined;
  /** Further sets of rules, each of which has to let something through as well. */
  readonly also?: readonly SessionRules[] | undefined;
}

const Size = z
  .union([z.int().positive(), z.string().regex(/^[1-9]\d{0,9}(?:[kmgt]i?b?)?$/i, 'such as "512m" or "2g"')])
  .describe('Bytes, or a text such as "512m".');

/** What goes to the system as it is: a NUL would end it there, and what follows would be read as something else. */
const SystemText = z.string().regex(/^[^\0]*$/, "a text without NUL characters");

const Paths = z.array(SystemText.min(1));

/** A timer for longer than that would ring at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const SANDBOX_KINDS = ["none", "bubblewrap", "container"] as const;

const SandboxKindSchema = z.enum(SANDBOX_KINDS);

const SandboxOptionsSchema = z.strictObject({
  kind: SandboxKindSchema.optional().describe("`container` if `image` is given, else `bubblewrap`, if absent."),
  read: Paths.optional().describe("Paths that the program may read besides the system; relative to the config file."),
  write: Paths.optional().describe("Paths that it may change; relative to the config file."),
  network: z.enum(["none", "host"]).default("none").describe("`host`: the network as this machine has it."),
  memory: Size.optional().describe("The most memory that it may have."),
  cpus: z.number().positive().optional().describe("How many processors it may keep busy."),
  pids: z.int().positive().optional().describe("How many processes and threads it may have."),
  timeout: z
    .int()
    .positive()
    .max(MAX_TIMER_MS)
    .optional()
    .describe("Milliseconds that one run of it may last; then it is ended."),
  image: SystemText.min(1).optional().describe("Image of a container; made on the spot for an npm package if absent."),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe("Of a container that serves MCP over HTTP: the port in it, which is published on loopback only."),
  path: z
    .string()
    .regex(/^\//, "a path that begins with /")
    .optional()
    .describe("Path of the MCP endpoint at `port`; `/mcp` if absent."),
});

export const SandboxSchema = z.union([SandboxKindSchema, SandboxOptionsSchema]);

export type SandboxKind = z.output<typeof SandboxKindSchema>;
export type SandboxEntry = z.output<typeof SandboxSchema>;
/** An entry that says more than its kind. */
export type SandboxOptions = z.output<typeof SandboxOptionsSchema>;

/** The kind that an entry means, whether it is a word or an object. */
export function sandboxKindOf(entry: SandboxEntry): SandboxKind {
  if (typeof entry === "string") return entry;
  return entry.kind ?? (entry.image === undefined ? "bubblewrap" : "container");
}

/** The image that an entry names, where it means a container. */
export function sandboxImageOf(entry: SandboxEntry | undefined): string | undefined {
  if (entry === undefined || typeof entry === "string" || sandboxKindOf(entry) !== "container") return undefined;
  return entry.image;
}

/** How containers are run. */
export const ContainersSchema = z.strictObject({
  program: z.string().min(1).optional().describe("`podman`, `docker` or a path; whichever is found first if absent."),
  flags: z.array(z.string()).optional().describe("More flags for every `run`, such as `--runtime`."),
  base: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Image with Node that images for npm packages are made from; `docker.io/library/node:24-slim` if absent.",
    ),
});

export type ContainersConfig = z.output<typeof ContainersSchema>;

const Milliseconds = z.int().positive();

const RestartSchema = z.strictObject({
  max: z.int().min(0).default(5).describe("How many restarts in a row before the server is given up."),
  initialDelay: Milliseconds.default(1000).describe("Milliseconds before the first restart; doubles with each one."),
  maxDelay: Milliseconds.default(30_000).describe("Longest wait between two restarts, in milliseconds."),
  onTimeout: z.boolean().default(false).describe("Reconnect after a call that timed out."),
});

const Scopes = z.array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, "scopes without spaces, one per entry"));
const Issuer = z
  .string()
  .min(1)
  .describe("The only authorization server that is used; any that the server names if absent.");

const OAuthSchema = z.strictObject({
  type: z.literal("oauth").describe("A person logs in once: `toolcrib auth login <server>`."),
  scopes: Scopes.optional().describe("What to ask for; what the server says it needs if absent."),
  clientId: z.string().min(1).optional().describe("A client registered by hand; registered by itself if absent."),
  clientSecret: z.string().min(1).optional().describe("Its secret, if it has one. Use a reference, not the text."),
  clientMetadataUrl: z
    .string()
    .min(1)
    .optional()
    .describe("https address of a client metadata document, used as client id where that is supported."),
  redirectPort: z.int().min(1).max(65_535).optional().describe("Port of the loopback redirect; a free one if absent."),
  issuer: Issuer.optional(),
});

const ClientCredentialsSchema = z.strictObject({
  type: z.literal("client-credentials").describe("The program itself logs in; no person is needed."),
  clientId: z.string().min(1).describe("Id of the client."),
  clientSecret: z.string().min(1).describe("Its secret. Use a reference, not the text."),
  scopes: Scopes.optional().describe("What to ask for; what the server says it needs if absent."),
  tokenUrl: z.string().min(1).optional().describe("Where tokens are got; found by discovery if absent."),
  issuer: Issuer.optional(),
});

const AuthSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("bearer"),
    token: z.string().describe("Sent as `Authorization: Bearer …`. Use a reference, not the text."),
  }),
  z.strictObject({
    type: z.literal("api-key"),
    key: z.string().describe("The key. Use a reference, not the text."),
    header: z.string().default("X-API-Key").describe("The header that carries it."),
  }),
  OAuthSchema,
  ClientCredentialsSchema,
]);

const RootSchema = SystemText.min(1).regex(/^(?!.*(?:\$\{|secret:\/\/))/s, "a folder or a URI, without references");

const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._@ -]{0,63}$/;

export const ServerIdSchema = z
  .string()
  .regex(ID_PATTERN, "a letter or digit, then up to 63 letters, digits, spaces or any of . _ @ -")
  .refine((id) => id !== "local", 'any other than "local", which is the source id of in-process tools');

/** One entry under `mcpServers`. */
export const ServerEntrySchema = z.strictObject({
  name: z.string().min(1).optional().describe("Name for people; the id if absent."),
  command: SystemText.min(1).optional().describe("Program of a stdio server."),
  args: z
    .array(SystemText)
    .optional()
    .describe("Its arguments. Visible to other users of the machine: no secrets here."),
  env: z
    .record(SystemText, SystemText)
    .optional()
    .describe("Environment variables for the program, added to a minimal environment. Values may hold references."),
  cwd: SystemText.optional().describe(
    "Working directory of the program, relative to the config file. The folder of the config file if absent; your own folder for the config in Toolcrib's home.",
  ),
  url: z.string().min(1).optional().describe("Address of a remote server; https unless it is on loopback."),
  headers: z.record(z.string(), z.string()).optional().describe("HTTP headers. Values may hold references."),
  allowHttp: z
    .boolean()
    .optional()
    .describe("true reaches it over plain http elsewhere than on loopback: for a network that is all your own."),
  transport: z
    .enum(["stdio", "http", "sse"])
    .optional()
    .describe("Inferred if absent: stdio for a command; a url tries Streamable HTTP, then SSE."),
  enabled: z.boolean().default(true).describe("false keeps the entry and never connects it."),
  autoConnect: z.boolean().default(true).describe("false connects it only when asked to."),
  timeout: Milliseconds.default(30_000).describe("Milliseconds that connecting may take."),
  toolTimeout: Milliseconds.default(60_000).describe(
    "Milliseconds that a call may take; each progress report restarts it, up to ten times this in all.",
  ),
  restart: z
    .union([z.literal(false), RestartSchema])
    .prefault({})
    .describe("How a lost server is brought back; false leaves it down."),
  roots: z
    .union([z.literal(false), z.literal("session"), z.array(RootSchema).max(100)])
    .optional()
    .describe(
      'Folders or URIs offered to the server as roots, relative to this file; `false` offers none, `"session"` those of whoever uses it. `workspaceDir` if absent.',
    ),
  toolPrefix: z
    .string()
    .regex(/^[A-Za-z0-9_-]*$/, "letters, digits, _ and -")
    .optional()
    .describe('Replaces the server part of public names, separator included; "" gives bare tool names.'),
  tools: ToolRulesSchema.optional().describe(
    "Rules for this server's tools, on the names the server gives them or on public names.",
  ),
  roles: z.array(z.string()).optional().describe("Roles that may see and use this server; all if absent."),
  tags: z.array(z.string()).optional().describe("Labels for filters and rules."),
  trust: z
    .enum(["trusted", "untrusted"])
    .default("untrusted")
    .describe("What an untrusted server returns is marked, scanned, and wrapped for agents."),
  pinResources: z
    .boolean()
    .optional()
    .describe("false leaves its resources out of `guard.pins`: for a server whose resources come and go."),
  isolation: z
    .enum(["shared", "user", "session"])
    .default("shared")
    .describe(
      "Who shares one connection: all sessions, those of one user with that user's own credentials, or nobody: each session has its own.",
    ),
  sandbox: SandboxSchema.optional().describe("The cage that the program runs in; the hub's `sandbox` if absent."),
  skill: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]{0,99}$/, "the id of a skill")
    .optional()
    .describe("The skill that brought it, as `skill install` writes it: `skills.sandbox` holds for it."),
  replicas: z
    .int()
    .min(1)
    .max(100)
    .optional()
    .describe("In a cluster: on how many nodes a stateless program runs at once; 1 if absent."),
  auth: AuthSchema.optional().describe("Credentials for a remote server."),
});

export type ServerEntry = z.output<typeof ServerEntrySchema>;
export type ServerEntryInput = z.input<typeof ServerEntrySchema>;
export type ServerAuth = z.output<typeof AuthSchema>;
export type OAuthSettings = z.output<typeof OAuthSchema>;
export type ClientCredentialsSettings = z.output<typeof ClientCredentialsSchema>;

/** Where a spec was written down, for messages and for `status`. */
export interface SpecOrigin {
  /** A file path, or a word such as `library` for specs made in code. */
  readonly file: string;
  /** The dialect it was read from: `toolcrib`, `claude`, `vscode`, `list`, `openclaw`, `acp`, a client, `skill`, or `store`. */
  readonly dialect: string;
}

/** Of servers that a session brought. */
export const SESSION_ORIGIN: SpecOrigin = Object.freeze({ file: "session", dialect: "acp" });

/** What people and models know a server by: the id of one that a session brought is the hub's own affair. */
export function serverDisplayName({ id, name, origin }: Pick<ServerSpec, "id" | "name" | "origin">): string {
  return origin.file === SESSION_ORIGIN.file ? (name ?? id) : id;
}

/** A validated entry with its id. Strings still hold their references: they are resolved when a connection opens. */
export interface ServerSpec extends ServerEntry {
  readonly id: string;
  readonly origin: SpecOrigin;
  /** The folder that relative paths of the entry start from. */
  readonly baseDir: string;
  /**
   * Of a server that somebody else than the operator describes: its own folder, null if it has none. Its cage lets no
   * other `cwd` in.
   */
  readonly ownFolder?: string | null;
  /** For a role's own server: the id of the hub's server that it takes the place of. */
  readonly replaces?: string;
  /** Set where `sandbox` is not the entry's own but a default: whose. It is written back nowhere. */
  readonly sandboxFrom?: "hub" | "skills";
  /** Of a server that a project config brings, which yields to the home's in everything. */
  readonly fromProject?: true;
}
