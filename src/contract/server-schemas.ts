/** Servers as the HTTP contract shows and takes them. */
import { z } from "zod";
import { ServerIdSchema, StartSchema } from "../model/server-spec.ts";

export const SERVER_STATES = [
  "disabled",
  "idle",
  "connecting",
  "ready",
  "degraded",
  "restarting",
  "failed",
  "closed",
] as const;

const JsonObjectSchema = z.record(z.string(), z.unknown());

export const ServerInfoSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    transport: z.enum(["stdio", "http", "sse"]),
    state: z.enum(SERVER_STATES),
    status: z.enum(["connecting", "connected", "disconnected", "error"]),
    capabilities: JsonObjectSchema,
    toolCount: z.int().min(0),
    serverName: z.string().nullable().describe("What the server calls itself."),
    serverVersion: z.string().nullable(),
    lastError: z.string().nullable(),
    hint: z.string().optional(),
    problem: z
      .string()
      .optional()
      .describe(
        "The cause of `lastError` as a code, if it is a known one: `registry_unreachable`, `registry_certificate`, `registry_refused`, `package_not_found` or `install_timeout`.",
      ),
    progress: z
      .string()
      .optional()
      .describe("In state `connecting`: what the start waits for, such as `installing @scope/name …`."),
    sleeping: z
      .literal(true)
      .optional()
      .describe("In state `idle`: its lists are shown, and the next use, or `connect`, starts it."),
    connectedAt: z.string().nullable(),
    origin: z.object({ file: z.string(), dialect: z.string() }),
    tags: z.array(z.string()),
    era: z.enum(["legacy", "modern"]).nullable(),
    protocolVersion: z.string().nullable(),
    warnings: z.array(z.string()),
    auth: z
      .object({
        type: z.enum(["oauth", "client-credentials"]),
        expiresAt: z.string().optional(),
        state: z.enum(["ok", "expires_soon", "login_needed"]),
      })
      .optional(),
    users: z.object({ connections: z.int(), connected: z.int() }).optional(),
    sessions: z.object({ connections: z.int(), connected: z.int() }).optional(),
    node: z.string().optional().describe("In a cluster: the node that runs its program, by name."),
    restart: z.object({ attempt: z.int(), nextAt: z.string(), delayMs: z.number() }).optional(),
    attempts: z.int().optional().describe("In state `failed`: after how many restarts in a row it was given up."),
  })
  .meta({ id: "Server" });

/** One of a list: with its entry, as far as the caller may see it. */
export const ListedServerSchema = ServerInfoSchema.extend({
  enabled: z.boolean(),
  autoConnect: z.boolean(),
  config: JsonObjectSchema.optional().describe(
    "Its entry with references as written, and plain secrets masked. For the owner and callers with `admin`; absent for a server that a session brought.",
  ),
}).meta({ id: "ListedServer" });

/** Where a server came from, in one word: the user's file, one of its imports, the store, a skill. */
const OriginKindSchema = z.enum(["file", "import", "store", "skill", "code"]);

const ServerEventSchema = z.object({
  at: z.string().describe("ISO time."),
  state: z.enum(SERVER_STATES),
  reason: z.string().optional(),
});

export const ServerDetailSchema = ServerInfoSchema.extend({
  from: OriginKindSchema.describe("Where its entry is."),
  editable: z.boolean().describe("Whether PATCH and DELETE work; a server of the user's file is changed there."),
  enabled: z.boolean(),
  autoConnect: z.boolean(),
  start: StartSchema.describe("When it is connected: with the hub, or when it is first used."),
  config: JsonObjectSchema.describe("Its entry with references as written, and plain secrets masked."),
  etag: z.string().describe("Changes with the entry. Send it as `If-Match`."),
  stderr: z.array(z.string()).describe("The last lines that its program wrote to stderr, masked."),
  history: z.array(ServerEventSchema).describe("Its last state changes, the newest last."),
  resourceCount: z.int().min(0),
  promptCount: z.int().min(0),
}).meta({ id: "ServerDetail" });

/** Any dialect's entry; the hub reads it as it would read a config file. */
export const ServerConfigSchema = z
  .looseObject({ id: ServerIdSchema.optional() })
  .describe("An entry as under `mcpServers`; keys of other dialects work too.")
  .meta({ id: "ServerEntry" });

/** The login of the caller, or of the hub, at a remote server. */
export const ServerLoginSchema = z
  .object({
    serverId: z.string(),
    name: z.string(),
    state: z.enum(["ok", "expires_soon", "login_needed"]),
    expiresAt: z.string().optional(),
    user: z.string().nullable().describe("Whose login it is; null for that of the hub."),
    perUser: z.boolean().describe("Whether each user has their own (`isolation: user`)."),
    own: z.boolean().describe("Whether the caller may log in and out: at a shared server that needs `admin`."),
  })
  .meta({ id: "ServerLogin" });

export const TestedServerSchema = z.object({
  ok: z.boolean(),
  tools: z.array(z.string()),
  serverVersion: z.string().nullable(),
  error: z.string().nullable(),
  hint: z.string().optional(),
  stderr: z.array(z.string()),
});

export type TestedServer = z.output<typeof TestedServerSchema>;
export type ServerDetail = z.output<typeof ServerDetailSchema>;
export type ServerLogin = z.output<typeof ServerLoginSchema>;
