/** ServerSpec: the one form in which the rest of Toolcrib sees an MCP server, whatever dialect it was written in. */
import { z } from "zod";
import { ToolRulesSchema } from "./tool-rules.ts";

const ParameterOverrideSchema = z
  .strictObject({
    fixed: z
      .unknown()
      .optional()
      .describe(
        "The value that the server always gets. The parameter is not in the definition that callers see, and they cannot set it. Texts may contain references.",
      ),
    default: z
      .unknown()
      .optional()
      .describe("The value that the server gets if the caller gives none. The parameter is no longer required."),
    description: z.string().optional().describe("Replaces its description."),
  })
  .refine(
    (entry) => entry.fixed === undefined || (entry.default === undefined && entry.description === undefined),
    "`fixed` alone: callers do not see a fixed parameter, so it has no `default` and no `description`",
  );

/** The names that model providers accept. */
const ToolName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, "a letter, then up to 63 letters, digits, _ or -")
  .regex(/^(?!skill__|toolcrib_)/, "a name that does not begin with skill__ or toolcrib_");

export const ToolOverrideSchema = z.strictObject({
  name: ToolName.optional().describe(
    "Another name: below a server in place of the server's own, below a role or a view the whole public name.",
  ),
  title: z.string().min(1).optional().describe("Replaces its title."),
  description: z.string().min(1).optional().describe("Replaces its description."),
  annotations: z
    .strictObject({
      title: z.string().min(1).optional().describe("Its title for people."),
      readOnlyHint: z.boolean().optional().describe("Whether it changes nothing."),
      destructiveHint: z.boolean().optional().describe("Whether what it changes can be lost."),
      idempotentHint: z.boolean().optional().describe("Whether a second call with the same arguments changes nothing."),
      openWorldHint: z.boolean().optional().describe("Whether it reaches beyond a closed set of things."),
    })
    .optional()
    .describe("Corrects its annotations, and with them the classes that rules and the guard use."),
  hidden: z.boolean().optional().describe("true: it is not listed and cannot be called."),
  parameters: z
    .record(z.string().min(1), ParameterOverrideSchema)
    .optional()
    .describe("Its parameters, by name: fixed, with a default, or described in other words."),
  output: z
    .strictObject({
      drop: z
        .array(
          z
            .string()
            .max(500)
            .regex(/^(?:\[\*\]|[^.[\]]+)(?:\.[^.[\]]+|\[\*\])*$/, "a path such as `debug` or `items[*].body`"),
        )
        .min(1)
        .max(100)
        .describe("Paths of fields that are left out of results: `debug`, `user.email`, `items[*].body`."),
    })
    .optional()
    .describe("What callers get of its results."),
});

export type ToolOverride = z.output<typeof ToolOverrideSchema>;

export const OverridesSchema = z.record(z.string().min(1), ToolOverrideSchema).refine((overrides) => {
  const names = Object.values(overrides).flatMap(({ name }) => name ?? []);
  return new Set(names).size === names.length;
}, "names that differ: two tools are given the same one");

/** By the name of the tool. */
export type Overrides = Readonly<Record<string, ToolOverride>>;

/** The values that overrides fix, and where they are: `<tool>.parameters.<name>.fixed`. */
export function fixedValues(
  overrides: Overrides = {},
): { readonly path: readonly string[]; readonly value: unknown }[] {
  return Object.entries(overrides).flatMap(([tool, { parameters = {} }]) =>
    Object.entries(parameters).flatMap(([name, { fixed }]) =>
      fixed === undefined ? [] : [{ path: [tool, "parameters", name, "fixed"], value: fixed }],
    ),
  );
}

const Size = z
  .union([z.int().positive(), z.string().regex(/^[1-9]\d{0,9}(?:[kmgt]i?b?)?$/i, 'such as "512m" or "2g"')])
  .describe('Bytes, or a text such as "512m".');

/** Text that is passed to the system: a NUL would end it there, and the rest would be read as something else. */
const SystemText = z.string().regex(/^[^\0]*$/, "a text without NUL characters");

const Paths = z.array(SystemText.min(1));

/** A longer timer would fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const SANDBOX_KINDS = ["none", "bubblewrap", "container"] as const;

const SandboxKindSchema = z.enum(SANDBOX_KINDS);

const SandboxOptionsSchema = z.strictObject({
  kind: SandboxKindSchema.optional().describe("`container` if `image` is given, else `bubblewrap`, if absent."),
  read: Paths.optional().describe(
    "Paths that the program may read in addition to the system; relative to the config file.",
  ),
  write: Paths.optional().describe("Paths that it may change; relative to the config file."),
  network: z.enum(["none", "host"]).default("none").describe("`host`: the network as this machine has it."),
  memory: Size.optional().describe("Maximum memory."),
  cpus: z.number().positive().optional().describe("Maximum number of processors that it may use."),
  pids: z.int().positive().optional().describe("Maximum number of processes and threads."),
  timeout: z
    .int()
    .positive()
    .max(MAX_TIMER_MS)
    .optional()
    .describe("Milliseconds after which a run of the program is ended."),
  image: SystemText.min(1).optional().describe("Image of a container; built on demand for an npm package if absent."),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe("The port inside a container that serves MCP over HTTP; it is published on loopback only."),
  path: z
    .string()
    .regex(/^\//, "a path that begins with /")
    .optional()
    .describe("Path of the MCP endpoint at `port`; `/mcp` if absent."),
});

export const SandboxSchema = z.union([SandboxKindSchema, SandboxOptionsSchema]);

export type SandboxKind = z.output<typeof SandboxKindSchema>;
export type SandboxEntry = z.output<typeof SandboxSchema>;
/** The full form of an entry. */
export type SandboxOptions = z.output<typeof SandboxOptionsSchema>;

/** The kind of an entry, in either form. */
export function sandboxKindOf(entry: SandboxEntry): SandboxKind {
  if (typeof entry === "string") return entry;
  return entry.kind ?? (entry.image === undefined ? "bubblewrap" : "container");
}

/** The image of an entry, if it is a container. */
export function sandboxImageOf(entry: SandboxEntry | undefined): string | undefined {
  if (entry === undefined || typeof entry === "string" || sandboxKindOf(entry) !== "container") return undefined;
  return entry.image;
}

/** How containers are run. */
export const ContainersSchema = z.strictObject({
  program: z.string().min(1).optional().describe("`podman`, `docker` or a path; whichever is found first if absent."),
  flags: z.array(z.string()).optional().describe("Additional flags for every `run`, such as `--runtime`."),
  base: z
    .string()
    .min(1)
    .optional()
    .describe("Base image with Node for images of npm packages; `docker.io/library/node:24-slim` if absent."),
});

export type ContainersConfig = z.output<typeof ContainersSchema>;

const Milliseconds = z.int().positive();

const RestartSchema = z.strictObject({
  max: z
    .int()
    .min(0)
    .default(5)
    .describe("Maximum number of consecutive restarts before the server is marked as failed."),
  initialDelay: Milliseconds.default(1000).describe("Milliseconds before the first restart; doubles with each one."),
  maxDelay: Milliseconds.default(30_000).describe("Maximum wait between two restarts, in milliseconds."),
  onTimeout: z.boolean().default(false).describe("Reconnect after a call that timed out."),
});

const Scopes = z.array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, "scopes without spaces, one per entry"));
const Issuer = z.string().min(1).describe("The only authorization server to use; any that the server names if absent.");

const OAuthSchema = z.strictObject({
  type: z.literal("oauth").describe("A person logs in once: `toolcrib auth login <server>`."),
  scopes: Scopes.optional().describe("What to ask for; what the server says it needs if absent."),
  clientId: z
    .string()
    .min(1)
    .optional()
    .describe("A client that was registered manually; registered automatically if absent."),
  clientSecret: z.string().min(1).optional().describe("Its secret, if it has one. Use a reference, not the text."),
  clientMetadataUrl: z
    .string()
    .min(1)
    .optional()
    .describe("https address of a client metadata document, used as the client id where that is supported."),
  redirectPort: z.int().min(1).max(65_535).optional().describe("Port of the loopback redirect; a free one if absent."),
  ownRedirect: z
    .boolean()
    .optional()
    .describe(
      "Whether the redirect address of a manually registered client ends in the server's id: `/oauth/callback/<id>` on the page, `/callback/<id>` at a terminal. Needed where several such clients are at authorization servers that do not send `iss`.",
    ),
  issuer: Issuer.optional(),
});

const ClientCredentialsSchema = z.strictObject({
  type: z.literal("client-credentials").describe("The program itself logs in, without a person."),
  clientId: z.string().min(1).describe("Id of the client."),
  clientSecret: z.string().min(1).describe("Its secret. Use a reference, not the text."),
  scopes: Scopes.optional().describe("What to ask for; what the server says it needs if absent."),
  tokenUrl: z.string().min(1).optional().describe("Address of the token endpoint; found by discovery if absent."),
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
    header: z.string().default("X-API-Key").describe("The header for it."),
  }),
  OAuthSchema,
  ClientCredentialsSchema,
]);

const RootSchema = SystemText.min(1).regex(/^(?!.*(?:\$\{|secret:\/\/))/s, "a folder or a URI, without references");

const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._@ -]{0,63}$/;

/** Names of environment variables. */
const InheritSchema = z.array(SystemText.regex(/^[^=]+$/, "the name of an environment variable").max(256));

export const EnvSettingsSchema = z.strictObject({
  inherit: InheritSchema.optional().describe(
    "Names of variables of Toolcrib's own environment that programs of servers get in addition to the minimal environment. Replaces the default list: proxies, certificate authorities and package registries, see [servers.md](servers.md#what-a-child-process-gets). `[]` passes none on.",
  ),
});

/** The variables of an entry. In a file it may also contain `inherit`, as a list, which becomes a key of the entry. */
export const ServerEnvSchema = z.record(SystemText, SystemText);

export const ServerIdSchema = z
  .string()
  .regex(ID_PATTERN, "a letter or digit, then up to 63 letters, digits, spaces or any of . _ @ -")
  .refine((id) => id !== "local", 'an id other than "local", which is the source id of in-process tools');

export const StartSchema = z.enum(["eager", "lazy"]);

const DURATION = /^[1-9]\d{0,3}[smh]$/;

/** One entry under `mcpServers`. */
export const ServerEntrySchema = z.strictObject({
  name: z.string().min(1).optional().describe("Display name; the id if absent."),
  command: SystemText.min(1).optional().describe("Program of a stdio server."),
  args: z
    .array(SystemText)
    .optional()
    .describe("Its arguments. Other users of the machine can see them: do not put secrets here."),
  env: ServerEnvSchema.optional().describe(
    "Environment variables for the program, added to a minimal environment. Values may contain references. A list under `inherit` is read as the key `inherit`.",
  ),
  inherit: InheritSchema.optional().describe(
    "Names of variables of Toolcrib's own environment that the program gets as well; `env.inherit` of the file if absent. `[]` passes none on.",
  ),
  cwd: SystemText.optional().describe(
    "Working directory of the program, relative to the config file. The folder of the config file if absent; your home folder for the config in Toolcrib's home.",
  ),
  url: z.string().min(1).optional().describe("Address of a remote server; https unless it is on loopback."),
  headers: z.record(z.string(), z.string()).optional().describe("HTTP headers. Values may contain references."),
  allowHttp: z
    .boolean()
    .optional()
    .describe("true allows plain http beyond loopback: only for a network that is entirely your own."),
  transport: z
    .enum(["stdio", "http", "sse"])
    .optional()
    .describe("Inferred if absent: stdio for a command; a url tries Streamable HTTP, then SSE."),
  enabled: z.boolean().default(true).describe("false keeps the entry but never connects it."),
  autoConnect: z.boolean().default(true).describe("false connects it only on request."),
  start: StartSchema.optional().describe(
    "When it is connected: with the hub (`eager`), or when it is first used (`lazy`), until when the lists that it last gave are shown. The hub's `start` if absent.",
  ),
  idle: z
    .string()
    .regex(DURATION, "a time such as 90s, 15m or 2h")
    .optional()
    .describe(
      "Stops it after this time without use, such as `15m`; the next use starts it again. Never if absent: a server may keep state.",
    ),
  timeout: Milliseconds.default(30_000).describe("Milliseconds that connecting may take."),
  installTimeout: Milliseconds.max(MAX_TIMER_MS)
    .default(300_000)
    .describe(
      "Milliseconds that `npx`, `uvx` and the like may take to fetch the program before it starts; not part of `timeout`.",
    ),
  toolTimeout: Milliseconds.default(300_000).describe(
    "Milliseconds that a call may take; each progress report restarts it, up to ten times this in all. Waiting for a person's answer to the server does not count.",
  ),
  restart: z
    .union([z.literal(false), RestartSchema])
    .prefault({})
    .describe("How a disconnected server is restarted; false leaves it down."),
  roots: z
    .union([z.literal(false), z.literal("session"), z.array(RootSchema).max(100)])
    .optional()
    .describe(
      'Folders or URIs offered to the server as roots, relative to this file; `false` offers none, `"session"` those of the session that uses it. `workspaceDir` if absent.',
    ),
  toolPrefix: z
    .string()
    .regex(/^[A-Za-z0-9_-]*$/, "letters, digits, _ and -")
    .optional()
    .describe('Replaces the server part of public names, separator included; "" gives bare tool names.'),
  tools: ToolRulesSchema.optional().describe(
    "Rules for this server's tools, by the server's own names or by public names.",
  ),
  overrides: OverridesSchema.optional().describe(
    "Other definitions for its tools, by the server's own names: see [overrides.md](overrides.md).",
  ),
  roles: z.array(z.string()).optional().describe("Roles that may see and use this server; all if absent."),
  tags: z.array(z.string()).optional().describe("Labels for filters and rules."),
  trust: z
    .enum(["trusted", "untrusted"])
    .default("untrusted")
    .describe("Results of an untrusted server are marked, scanned, and wrapped for agents."),
  pinResources: z
    .boolean()
    .optional()
    .describe("false excludes its resources from `guard.pins`: for a server whose resources come and go."),
  isolation: z
    .enum(["shared", "user", "session"])
    .default("shared")
    .describe(
      "Who shares one connection: all sessions (`shared`), the sessions of one user with that user's credentials (`user`), or no one (`session`).",
    ),
  sandbox: SandboxSchema.optional().describe("The sandbox that the program runs in; the hub's `sandbox` if absent."),
  skill: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]{0,99}$/, "the id of a skill")
    .optional()
    .describe("The skill that brought it, as `skill install` writes it: `skills.sandbox` applies to it."),
  replicas: z
    .int()
    .min(1)
    .max(100)
    .optional()
    .describe("In a cluster: the number of nodes that run a stateless program at the same time; 1 if absent."),
  auth: AuthSchema.optional().describe("Credentials for a remote server."),
});

export type ServerEntry = z.output<typeof ServerEntrySchema>;
export type ServerEntryInput = z.input<typeof ServerEntrySchema>;
export type ServerAuth = z.output<typeof AuthSchema>;
export type OAuthSettings = z.output<typeof OAuthSchema>;
export type ClientCredentialsSettings = z.output<typeof ClientCredentialsSchema>;

/** Where a spec comes from, for messages and for `status`. */
export interface SpecOrigin {
  /** A file path, or a word such as `library` for specs made in code. */
  readonly file: string;
  /** The dialect it was read from: `toolcrib`, `claude`, `vscode`, `list`, `openclaw`, `acp`, a client, `skill`, or `store`. */
  readonly dialect: string;
}

/** Of servers that a session brought. */
export const SESSION_ORIGIN: SpecOrigin = Object.freeze({ file: "session", dialect: "acp" });

/** The name of a server for people and models. The id of a server that a session brought is internal to the hub. */
export function serverDisplayName({ id, name, origin }: Pick<ServerSpec, "id" | "name" | "origin">): string {
  return origin.file === SESSION_ORIGIN.file ? (name ?? id) : id;
}

/** A validated entry with its id. Its strings still contain references, which are resolved when a connection opens. */
export interface ServerSpec extends ServerEntry {
  readonly id: string;
  readonly origin: SpecOrigin;
  /** The folder that relative paths of the entry are resolved against. */
  readonly baseDir: string;
  /**
   * Set for a server that is not described by the operator: its own folder, null if it has none. Its sandbox allows no
   * other `cwd`.
   */
  readonly ownFolder?: string | null;
  /** Set for a role's own server: the id of the hub server that it replaces. */
  readonly replaces?: string;
  /** Set if `sandbox` is a default and not the entry's own: whose. It is never written back. */
  readonly sandboxFrom?: "hub" | "skills";
  /** `env.inherit` of the config, if it is set. The entry's own `inherit` takes precedence. It is never written back. */
  readonly hubInherit?: readonly string[];
  /** `start` of the config, if it is set. The entry's own takes precedence. It is never written back. */
  readonly hubStart?: ServerEntry["start"];
  /** Set if the entry says something that cannot be done: what and where. The server is not started. Never written back. */
  readonly problem?: string;
  /** Set for a server of a project config: servers of the home take precedence over it in everything. */
  readonly fromProject?: true;
}

/** Whether it waits for its first use, once its lists are known. One that cannot be started says so at once. */
export function isLazy({ start, hubStart, problem }: Pick<ServerSpec, "start" | "hubStart" | "problem">): boolean {
  return problem === undefined && (start ?? hubStart) === "lazy";
}

/** Milliseconds without use after which it is stopped; undefined for never. */
export function idleMsOf({ idle }: Pick<ServerSpec, "idle">): number | undefined {
  if (idle === undefined || !DURATION.test(idle)) return undefined;
  const unitMs = idle.endsWith("s") ? 1000 : idle.endsWith("m") ? 60_000 : 3_600_000;
  return Math.min(Number.parseInt(idle, 10) * unitMs, MAX_TIMER_MS);
}
