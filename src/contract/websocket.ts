/**
 * The WebSocket: commands are operations under the names that programs of this field use, and events report changes in the hub.
 * Server-sent events carry the same events. A client can also offer tools of its own to a session, and answer their calls.
 */
import { z } from "zod";
import type { ErrorObject } from "../model/errors.ts";
import { ApprovalSchema, QUESTION_ACTIONS, QuestionSchema, SessionNoticeSchema } from "./activity-schemas.ts";
import { ToolInfoSchema } from "./catalog-schemas.ts";
import type { EventName } from "./event-scopes.ts";
import type { InputOf, Operation, OperationName, OutputOf } from "./operations.ts";
import { ListedServerSchema, ServerInfoSchema } from "./server-schemas.ts";
import { ImportedSkillSchema, SkillFailureSchema, SkillInfoSchema } from "./skill-schemas.ts";

const CallId = z.string().min(1).max(200);
const Schema = z.record(z.string(), z.unknown());
/** The longest useful timeout of a call. */
const MAX_TIMEOUT_MS = 3_600_000;
/** The config's `limits.sessionTools` is what counts; this is about the size of a frame. */
const MAX_EXTRA_TOOLS = 1000;

const ExtraToolSchema = z
  .object({
    name: z.string(),
    title: z.string().optional().describe("Name for people."),
    description: z.string(),
    schema: Schema.optional().describe("JSON Schema of the arguments; any object if absent."),
    inputSchema: Schema.optional().describe("The same as `schema`, as MCP names it."),
    parameters: Schema.optional().describe("The same as `schema`, as agents name it."),
    annotations: z.record(z.string(), z.unknown()).optional().describe("MCP hints, such as `readOnlyHint`."),
    timeoutMs: z
      .int()
      .min(1)
      .max(MAX_TIMEOUT_MS)
      .default(60_000)
      .describe("Milliseconds that a call may take; each progress report restarts it, up to ten times this in all."),
  })
  .meta({ id: "ExtraTool" });

/** Commands of one connection. They are not operations: their effect ends with the connection. */
export const EXTRA_TOOL_COMMANDS = {
  "sessions.setExtraTools": {
    scope: "call",
    summary: "Gives a session tools that this connection runs, in place of the earlier ones.",
    input: z.strictObject({
      session: z
        .string()
        .max(512)
        .optional()
        .describe("The connection's own if absent. One of the same caller, or with `admin` any that is open."),
      sessionId: z.string().max(512).optional().describe("The same as `session`."),
      tools: z.array(ExtraToolSchema).max(MAX_EXTRA_TOOLS).describe("An empty list removes them."),
    }),
    output: z.object({
      session: z.string(),
      tools: z
        .array(z.string())
        .describe("The names that the session has them under, without those that were left out."),
      notices: z
        .array(SessionNoticeSchema)
        .describe("For example, which tools were left out because their names are taken or the session has too many."),
    }),
  },
  "extraTool.result": {
    scope: "call",
    summary: "Answers a call.",
    input: z.strictObject({
      callId: CallId,
      result: z
        .unknown()
        .optional()
        .describe("An MCP result (`content`, `structuredContent`, `isError`), a text, or any value."),
    }),
    output: z.object({ callId: z.string() }),
  },
  "extraTool.progress": {
    scope: "call",
    summary: "Reports the progress of a call and restarts its timeout.",
    input: z.strictObject({
      callId: CallId,
      progress: z.number(),
      total: z.number().optional(),
      message: z.string().max(10_000).optional(),
    }),
    output: z.object({ callId: z.string() }),
  },
} as const satisfies Readonly<Record<string, Operation>>;

const ExtraToolCallSchema = z.object({
  callId: z.string().describe("The same as in the audit log."),
  name: z.string(),
  args: z.record(z.string(), z.unknown()).describe("They match the tool's schema."),
  session: z.string(),
});

const ExtraToolCancelSchema = z.object({
  callId: z.string(),
  reason: z.enum(["cancelled", "timeout"]),
});

export type ExtraToolCommand = keyof typeof EXTRA_TOOL_COMMANDS;
export type ExtraToolDefinition = z.input<typeof ExtraToolSchema>;

export interface SocketCommand {
  readonly operation: OperationName;
  /** Fields of the command that are inputs of another name. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Inputs that apply if the command does not set them. */
  readonly preset?: Readonly<Record<string, string | number>>;
  /** The list event that goes to the asker as well. */
  readonly event?: string;
}

/** Every operation is also a command under its own name, such as `overview` or `listAudit`. */
export const COMMANDS = {
  "mcp.addServer": { operation: "addServer" },
  "mcp.removeServer": { operation: "removeServer" },
  "mcp.updateServer": { operation: "updateServer" },
  "mcp.connect": { operation: "connectServer" },
  "mcp.disconnect": { operation: "disconnectServer" },
  "mcp.listServers": { operation: "listServers", event: "mcp.servers.list", preset: { limit: 1000 } },
  "mcp.listTools": { operation: "listTools", event: "mcp.tools.list", preset: { limit: 1000 } },
  "mcp.callTool": { operation: "callTool" },
  "skills.scan": { operation: "scanSkills" },
  "skills.import": { operation: "importSkills" },
  "skills.importDirectory": { operation: "importSkills", fields: { dirPath: "path" } },
  "skills.list": { operation: "listSkills", event: "skills.import.list", preset: { limit: 1000 } },
  "skills.remove": { operation: "removeSkill" },
  "skills.getInstructions": { operation: "getInstructions" },
  "openclaw.importSkill": { operation: "importSkills", preset: { as: "openclaw" } },
  "openclaw.importDirectory": { operation: "importSkills", fields: { dirPath: "path" }, preset: { as: "openclaw" } },
  "openclaw.listImported": {
    operation: "listSkills",
    event: "openclaw.import.list",
    preset: { limit: 1000, kind: "imported", source: "openclaw" },
  },
  "openclaw.removeImport": { operation: "removeSkill" },
  "openclaw.getInstructions": { operation: "getInstructions" },
  "approvals.answer": { operation: "answerApproval" },
  "sessions.open": { operation: "openSession" },
  "sessions.close": { operation: "closeSession" },
  "taint.list": { operation: "listTaint" },
  "taint.clear": { operation: "clearTaint" },
  "guard.passages": { operation: "listPassages" },
} as const satisfies Readonly<Record<string, SocketCommand>>;

const CallStarted = z.object({
  callId: z.string(),
  time: z.string(),
  session: z.string(),
  door: z.string(),
  role: z.string().nullable(),
  user: z.string().nullable(),
  client: z.string().optional().describe("Name of the program that called, in its own words."),
  kind: z.string(),
  name: z.string(),
  serverId: z.string().nullable(),
});

const ServerChange = z.object({ serverId: z.string(), server: ServerInfoSchema });
const SessionOfDoor = z.object({ id: z.string(), door: z.string() });
const SkillImported = ImportedSkillSchema.omit({ path: true, manifest: true, instructions: true });
const BatchImported = z.object({
  imported: z.int().describe("How many are new or updated."),
  failed: z.int(),
  totalScanned: z.int(),
  skills: z
    .array(ImportedSkillSchema.omit({ manifest: true, instructions: true }))
    .describe("Those that were imported."),
  failures: z.array(SkillFailureSchema),
});
/** A list event is one page, like the reply that it comes with. */
const Page = { total: z.int().optional(), nextCursor: z.string().optional() };
const ListedSkill = SkillInfoSchema.extend({ skillId: z.string().describe("The same as `id`.") }).meta({
  id: "ListedSkill",
});
const ImportList = z.object({ imports: z.array(ListedSkill), ...Page });
const ImportRemoved = z.object({ skillId: z.string(), name: z.string() });

interface EventKind<Fields extends z.ZodType = z.ZodType> {
  readonly summary: string;
  readonly fields: Fields;
}

function event<Fields extends z.ZodType>(summary: string, fields: Fields): EventKind<Fields> {
  return { summary, fields };
}

export const EVENTS = {
  "mcp.server.added": event("A server was added.", z.object({ server: ServerInfoSchema })),
  "mcp.server.removed": event("A server was removed.", z.object({ serverId: z.string() })),
  "mcp.server.changed": event(
    "A server's entry or state has changed.",
    ServerChange.extend({ state: ServerInfoSchema.shape.state }),
  ),
  "mcp.server.connected": event("A server is connected.", ServerChange),
  "mcp.server.disconnected": event(
    "A server is no longer connected.",
    z.object({ serverId: z.string(), reason: z.string().nullable() }),
  ),
  "mcp.server.error": event(
    "A server could not be connected.",
    z.object({ serverId: z.string(), error: z.string(), hint: z.string().optional() }),
  ),
  "mcp.tools.discovered": event(
    "The tools of a server are known, or changed.",
    z.object({
      serverId: z.string(),
      tools: z.array(ToolInfoSchema),
      truncated: z.boolean().optional().describe("There are more tools, or more schemas: `listTools` has them all."),
    }),
  ),
  "mcp.catalog.changed": event(
    "Tools, resources or prompts have changed, or their visibility has.",
    z.object({ kinds: z.array(z.string()).describe("Empty if rules or pins changed and not the catalog.") }),
  ),
  "mcp.servers.list": event(
    "The servers, sent to the client that asked.",
    z.object({ servers: z.array(ListedServerSchema), ...Page }),
  ),
  "mcp.tools.list": event(
    "The tools, sent to the client that asked.",
    z.object({ tools: z.array(ToolInfoSchema), ...Page }),
  ),
  "openclaw.skill.imported": event("A skill was imported as one of OpenClaw.", SkillImported),
  "openclaw.batch.imported": event(
    "Skills of a folder were imported. An event for each comes before it.",
    BatchImported,
  ),
  "openclaw.import.list": event("The skills, sent to the client that asked.", ImportList),
  "openclaw.import.removed": event("An imported skill was removed.", ImportRemoved),
  "skills.skill.imported": event("A skill was imported.", SkillImported),
  "skills.batch.imported": event("Skills of a folder were imported. An event for each comes before it.", BatchImported),
  "skills.import.list": event("The skills, sent to the client that asked.", ImportList),
  "skills.import.removed": event("An imported skill was removed.", ImportRemoved),
  "skills.changed": event("The offered skills have changed.", z.object({})),
  "approval.requested": event("A call waits for approval.", z.object({ approval: ApprovalSchema })),
  "approval.answered": event(
    "A waiting call was answered, timed out, or was withdrawn by its caller.",
    z.object({ id: z.string(), callId: z.string(), answer: z.string() }),
  ),
  "call.started": event("A call began.", CallStarted),
  "call.finished": event(
    "A call ended.",
    CallStarted.extend({
      decision: z.string(),
      outcome: z.string(),
      durationMs: z.number(),
      resultBytes: z.number(),
      findings: z.array(z.string()),
    }),
  ),
  "recording.changed": event("Recording of arguments and results was switched on or off, or has ended.", z.object({})),
  "guard.suspicious": event(
    "The result of a call has suspicious content, or forged boundary markers that were replaced.",
    z.object({
      callId: z.string(),
      session: z.string(),
      name: z.string(),
      serverId: z.string(),
      mcpName: z.string(),
      kinds: z.array(z.string()),
      places: z.array(z.string()).describe("Where the server put the texts: `result`, `error`, `progress` …"),
      score: z.number().describe("The highest, of 10; 0 without findings."),
      forgedMarkers: z.int(),
      blocked: z.boolean(),
    }),
  ),
  "session.opened": event("A session was opened.", SessionOfDoor),
  "session.closed": event("A session was closed.", SessionOfDoor),
  "session.notice": event(
    "A notice about a session that this connection opened, such as a failed server.",
    z.object({ session: z.string(), notice: SessionNoticeSchema }),
  ),
  "session.server": event(
    "A session's own server changed its state; this connection opened the session.",
    z.object({ session: z.string(), server: ServerInfoSchema }),
  ),
  "resource.updated": event(
    "A resource that a session of this connection follows has changed.",
    z.object({ uri: z.string(), session: z.string() }),
  ),
  "question.asked": event(
    "A server asks something in a call of this connection with `questions`: answer with `answerQuestion`.",
    z.object({ question: QuestionSchema }),
  ),
  "question.closed": event(
    "A question was answered, or its call ended.",
    z.object({ id: z.string(), action: z.enum(QUESTION_ACTIONS).nullable() }),
  ),
  "extraTool.call": event(
    "A tool that this connection gave a session is called: answer with `extraTool.result`.",
    ExtraToolCallSchema,
  ),
  "extraTool.cancel": event("The call was cancelled or timed out.", ExtraToolCancelSchema),
  "pins.changed": event("Pins or definitions have changed.", z.object({})),
  "config.reloaded": event("The config was reloaded.", z.object({})),
  warning: event("A problem that did no harm.", z.object({ server: z.string().optional(), message: z.string() })),
  "events.lost": event(
    "Events between the asked-for number and this one are no longer kept: read the lists again.",
    z.object({ from: z.int(), to: z.int() }),
  ),
} as const satisfies Readonly<Record<EventName, EventKind>>;

export type { EventName } from "./event-scopes.ts";
export type CommandName = keyof typeof COMMANDS;
export type FieldsOf<Name extends EventName> = z.output<(typeof EVENTS)[Name]["fields"]>;
/** Events that belong to no asker have a number; what is for one connection alone has none. */
export type HubEvent<Name extends EventName = EventName> = {
  [Each in Name]: { readonly seq?: number; readonly type: Each } & FieldsOf<Each>;
}[Name];

/**
 * The first frame of every connection. Numbers belong to an epoch: another epoch means another run of the hub, whose numbers
 * began again. They only grow, and have gaps where an event is not for this client.
 */
export interface Hello {
  readonly type: "hello";
  readonly epoch: string;
  /** Of the last event before this connection. */
  readonly seq: number;
  readonly version: string;
}

/** `{id, ok}` and either the operation's output or an error. The command's `id` replaces an `id` of the output. */
export type Reply<Name extends OperationName = OperationName> =
  | ({ readonly id: string | number; readonly ok: true } & Without<OutputOf<Name>, "id" | "ok">)
  | { readonly id: string | number | null; readonly ok: false; readonly error: ErrorObject };

/** Sent while a command runs, before its reply. */
export interface ProgressFrame {
  readonly id: string | number;
  readonly progress: { readonly progress: number; readonly total?: number; readonly message?: string };
}

const CommandId = z.union([z.string().min(1).max(200), z.number()]);

/** Frames of the client that are not operations. */
export const CONTROLS = {
  /**
   * Events after this number (of this epoch, if one is named) once more or for the first time, then live ones. Without a
   * number nothing is repeated.
   */
  subscribe: z.strictObject({
    id: CommandId.optional(),
    type: z.literal("subscribe"),
    after: z.int().min(0).optional(),
    epoch: z.string().max(100).optional(),
    events: z
      .array(z.string().max(100))
      .max(100)
      .optional()
      .describe("Only these, `mcp.*` for a group; all if absent."),
  }),
  /** Gives up a command that runs. What changes the hub is finished once it has begun. */
  cancel: z.strictObject({ id: CommandId.optional(), type: z.literal("cancel"), command: CommandId }),
  ping: z.strictObject({ id: CommandId.optional(), type: z.literal("ping") }),
} as const;

type OperationOf<Name extends CommandName | OperationName> = Name extends CommandName
  ? (typeof COMMANDS)[Name]["operation"]
  : Extract<Name, OperationName>;

/** Maps the names of fields to inputs; never if the command has none. */
type Renames<Name> = Name extends CommandName
  ? (typeof COMMANDS)[Name] extends { readonly fields: infer Fields }
    ? Fields
    : never
  : never;

type Renamed<Input, Fields> = {
  [Key in keyof Fields as Fields[Key] extends keyof Input ? Key : never]: Fields[Key] extends keyof Input
    ? Input[Fields[Key]]
    : never;
} & Without<Input, Fields[keyof Fields]>;

/** Unlike `Omit` it keeps the known keys of an object that may have others. */
type Without<Type, Keys> = { [Key in keyof Type as Key extends Keys ? never : Key]: Type[Key] };

/** Any type of a command. */
export type AnyCommand = CommandName | OperationName | ExtraToolCommand;

/** The fields of a command, under the names that it has for them. */
export type CommandInput<Name extends AnyCommand> = Name extends ExtraToolCommand
  ? z.input<(typeof EXTRA_TOOL_COMMANDS)[Name]["input"]>
  : Name extends CommandName | OperationName
    ? [Renames<Name>] extends [never]
      ? InputOf<OperationOf<Name>>
      : Renamed<InputOf<OperationOf<Name>>, Renames<Name>>
    : never;
export type CommandOutput<Name extends AnyCommand> = Name extends ExtraToolCommand
  ? z.output<(typeof EXTRA_TOOL_COMMANDS)[Name]["output"]>
  : Name extends CommandName | OperationName
    ? Without<OutputOf<OperationOf<Name>>, "id" | "ok">
    : never;
