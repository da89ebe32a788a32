/**
 * The operations of a running hub, as one table: REST, the commands of the WebSocket, input checks, the OpenAPI document and the
 * typed client all come from it.
 */
import { z } from "zod";
import type { Scope } from "../model/caller.ts";
import { ASK_ANSWERS } from "../model/decision.ts";
import { ERROR_TABLE, type ErrorCode } from "../model/errors.ts";
import { ServerIdSchema } from "../model/server-spec.ts";
import { SKILL_SOURCES } from "../model/skill.ts";
import {
  ApprovalSchema,
  AuditEntrySchema,
  AuditVerdictSchema,
  PassageSchema,
  RecordingSchema,
  OverviewSchema,
  SessionDetailSchema,
  SessionInfoSchema,
  SessionNoticeSchema,
  TaintOriginSchema,
  TaintSchema,
  QUESTION_ACTIONS,
  QuestionSchema,
} from "./activity-schemas.ts";
import {
  PinKindSchema,
  PinNameSchema,
  OverriddenToolSchema,
  PinSchema,
  PromptInfoSchema,
  ResourceInfoSchema,
  ResultSchema,
  ToolInfoSchema,
} from "./catalog-schemas.ts";
import { ConfigChangeSchema, PlannedChangeSchema, RoleInfoSchema, TokenInfoSchema } from "./change-schemas.ts";
import {
  SERVER_STATES,
  ServerConfigSchema,
  ServerDetailSchema,
  ListedServerSchema,
  ServerInfoSchema,
  ServerLoginSchema,
  TestedServerSchema,
} from "./server-schemas.ts";
import {
  LOG_LEVELS,
  ServerLogSchema,
  ServerProcessSchema,
  StatsInput,
  StatsSchema,
  TokenCostsSchema,
} from "./stats-schemas.ts";
import {
  ChangedClientSchema,
  ClientSnippetSchema,
  ConfigViewSchema,
  ExplanationSchema,
  MeSchema,
} from "./settings-schemas.ts";
import {
  SkillDetailSchema,
  SkillImportReportSchema,
  SkillInfoSchema,
  SkillPlaceSchema,
  SkillScanSchema,
  SkillManifestSchema,
} from "./skill-schemas.ts";

export interface Operation<Input extends z.ZodType = z.ZodType, Output extends z.ZodType = z.ZodType> {
  readonly scope: Scope;
  readonly summary: string;
  readonly input: Input;
  readonly output: Output;
}

function operation<Input extends z.ZodType, Output extends z.ZodType>(
  given: Operation<Input, Output>,
): Operation<Input, Output> {
  return given;
}

const Id = z.string().min(1).max(512);
/** In a query numbers and truth values come as text. */
const Limit = z.coerce.number().int().min(1).max(1000).default(100).describe("Entries per page.");
const Flag = z.union([z.boolean(), z.enum(["true", "false"]).transform((text) => text === "true")]);
const Cursor = z.string().max(2000).optional().describe("`nextCursor` of the page before.");
const Paged = { limit: Limit, cursor: Cursor };
const Query = z.string().max(200).optional();
const NextCursor = z.string().optional().describe("The cursor of the next page; absent on the last page.");
const InSession = {
  session: Id.optional().describe(
    "Run in this session, with its servers. It must be one of the caller's own or, with `admin`, that of an editor (`toolcrib acp`).",
  ),
};
const Answers = {
  questions: z
    .boolean()
    .default(false)
    .describe(
      "The caller answers what servers ask meanwhile (elicitation and sampling): `question.asked` or `listQuestions` has it, `answerQuestion` answers it. Otherwise such questions are refused.",
    ),
};
const Args = z.record(z.string(), z.unknown());
const Path = z.string().min(1).max(4096).describe("A folder on the hub's machine; `~` is the home directory.");

export const OPERATIONS = {
  me: operation({ scope: "read", summary: "Who the caller is.", input: z.strictObject({}), output: MeSchema }),
  overview: operation({
    scope: "admin",
    summary: "The hub at a glance.",
    input: z.strictObject({}),
    output: OverviewSchema,
  }),
  getStats: operation({
    scope: "admin",
    summary: "Calls, errors and latency over time, from the audit log.",
    input: StatsInput,
    output: StatsSchema,
  }),
  getTokenCosts: operation({
    scope: "admin",
    summary: "What the definitions of tools cost a model, estimated.",
    input: z.strictObject({}),
    output: TokenCostsSchema,
  }),

  listServers: operation({
    scope: "read",
    summary: "Servers, with their entry and state.",
    input: z.strictObject({
      ...Paged,
      q: Query.describe("Part of an id or name."),
      state: z.enum(SERVER_STATES).optional(),
      tag: z.string().optional(),
      ...InSession,
    }),
    output: z.object({ servers: z.array(ListedServerSchema), total: z.int(), nextCursor: NextCursor }),
  }),
  getServer: operation({
    scope: "admin",
    summary: "One server, with its entry, its last output and its history.",
    input: z.strictObject({ serverId: Id }),
    output: z.object({ server: ServerDetailSchema }),
  }),
  getServerProcess: operation({
    scope: "admin",
    summary: "Memory, CPU and restarts of a server's program.",
    input: z.strictObject({ serverId: Id }),
    output: ServerProcessSchema,
  }),
  getServerLog: operation({
    scope: "admin",
    summary: "The last lines that a server's program wrote, and its log messages.",
    input: z.strictObject({
      serverId: Id,
      after: z.coerce
        .number()
        .int()
        .min(0)
        .optional()
        .describe("Only lines after this one: `last` of the answer before."),
      level: z.enum(LOG_LEVELS).optional(),
      q: Query.describe("Part of the text."),
      limit: z.coerce.number().int().min(1).max(1000).default(1000).describe("The last lines."),
    }),
    output: ServerLogSchema,
  }),
  addServer: operation({
    scope: "admin",
    summary: "Adds a server and saves it in the store.",
    input: z.strictObject({
      serverId: ServerIdSchema.optional().describe("Or `id` in `config`."),
      config: ServerConfigSchema,
    }),
    output: z.object({ server: ServerDetailSchema }),
  }),
  updateServer: operation({
    scope: "admin",
    summary: "Changes parts of a server's entry; null removes a key.",
    input: z.strictObject({
      serverId: Id,
      updates: z.record(z.string(), z.unknown()),
      ifMatch: z.string().optional().describe("Only if the entry still has this etag."),
    }),
    output: z.object({ server: ServerDetailSchema }),
  }),
  removeServer: operation({
    scope: "admin",
    summary: "Removes a server from the store.",
    input: z.strictObject({ serverId: Id, ifMatch: z.string().optional() }),
    output: z.object({ serverId: z.string() }),
  }),
  connectServer: operation({
    scope: "admin",
    summary: "Connects a server; does nothing if it is connected.",
    input: z.strictObject({ serverId: Id }),
    output: z.object({ server: ServerInfoSchema }),
  }),
  disconnectServer: operation({
    scope: "admin",
    summary: "Disconnects a server; does nothing if it is not connected.",
    input: z.strictObject({
      serverId: Id,
      ifIdle: Flag.default(false).describe(
        "Refuse with `conflict` while calls of it are in progress; `details.calls` says how many.",
      ),
    }),
    output: z.object({ server: ServerInfoSchema }),
  }),
  listLogins: operation({
    scope: "read",
    summary: "Remote servers that the caller sees and that need a login, with that of the caller or of the hub.",
    input: z.strictObject({}),
    output: z.object({ logins: z.array(ServerLoginSchema) }),
  }),
  beginLogin: operation({
    scope: "call",
    summary:
      "Begins a login at a remote server: its address is opened in the caller's browser, which comes back to the page.",
    input: z.strictObject({ serverId: Id }),
    output: z.object({ url: z.string(), expiresAt: z.string() }),
  }),
  finishLogin: operation({
    scope: "call",
    summary: "Ends a login that the same caller began, with what came back to `/oauth/callback`. Works once.",
    input: z.strictObject({
      path: z.string().max(200).describe("The path that the browser came back to."),
      query: z.string().max(20_000).describe("Its query, with `state` and `code` or `error`."),
    }),
    output: z.object({ serverId: z.string(), connected: z.boolean(), error: z.string().nullable() }),
  }),
  endLogin: operation({
    scope: "call",
    summary: "Logs out of a remote server: tokens are revoked where that is possible, and deleted.",
    input: z.strictObject({ serverId: Id }),
    output: z.object({ serverId: z.string(), removed: z.boolean() }),
  }),
  parseServers: operation({
    scope: "admin",
    summary: "Parses a command line, a URL or a snippet of any dialect into entries.",
    input: z.strictObject({ text: z.string().min(1).max(100_000) }),
    output: z.object({
      servers: z.array(
        z.object({ serverId: z.string(), config: z.record(z.string(), z.unknown()), warnings: z.array(z.string()) }),
      ),
    }),
  }),
  testServer: operation({
    scope: "admin",
    summary: "Connects once with an entry that is not saved, and reports the result.",
    input: z.strictObject({ serverId: ServerIdSchema.optional(), config: ServerConfigSchema }),
    output: TestedServerSchema,
  }),

  listTools: operation({
    scope: "read",
    summary: "Tools that the caller sees.",
    input: z.strictObject({
      ...Paged,
      serverId: Id.optional(),
      name: z.string().optional().describe("Exactly this public name."),
      q: Query.describe("Words; the best matches first."),
      pin: z.enum(["same", "changed", "new"]).optional().describe("How it compares with its pin."),
      fields: z.enum(["all", "summary"]).default("all").describe("`summary` leaves the schemas out."),
      access: Flag.default(false).describe(
        "With what the rules decide about each as `access`, and with those that they deny. Needs `admin`.",
      ),
      role: z.string().optional().describe("With `access`: as sessions of this role see them."),
      ...InSession,
    }),
    output: z.object({ tools: z.array(ToolInfoSchema), total: z.int(), nextCursor: NextCursor }),
  }),
  callTool: operation({
    scope: "call",
    summary: "Calls a tool. An error that the tool itself reports is a result with `isError`.",
    input: z.strictObject({
      toolName: Id.describe("Its public name; with `serverId`, the server's own name works too."),
      serverId: Id.optional().describe("The server that has the tool."),
      args: Args.default({}).describe("Arguments of the tool."),
      timeoutMs: z.int().min(1).max(3_600_000).optional().describe("Milliseconds after which the call is cancelled."),
      ...Answers,
      ...InSession,
    }),
    output: ResultSchema,
  }),
  overrideTool: operation({
    scope: "admin",
    summary: "Shows what an override makes of a server's tool, or saves it.",
    input: z.strictObject({
      name: Id.describe("The public name of the tool, with or without its override."),
      override: z
        .record(z.string(), z.unknown())
        .optional()
        .describe("Instead of the present one, as in `overrides` of the config; `{}` for none."),
      save: z.boolean().default(false).describe("Writes it where the server is written, and applies it."),
    }),
    output: OverriddenToolSchema,
  }),
  listResources: operation({
    scope: "read",
    summary: "Resources and templates that the caller sees.",
    input: z.strictObject({
      ...Paged,
      serverId: Id.optional(),
      uri: z.string().optional().describe("Exactly this URI or template."),
      q: Query,
      ...InSession,
    }),
    output: z.object({ resources: z.array(ResourceInfoSchema), total: z.int(), nextCursor: NextCursor }),
  }),
  readResource: operation({
    scope: "read",
    summary: "Reads a resource.",
    input: z.strictObject({
      uri: z.string().min(1).describe("Of a resource, or a template with `variables`."),
      variables: z
        .record(z.string(), z.union([z.string(), z.array(z.string())]))
        .optional()
        .describe("Values for the variables of a template."),
      ...Answers,
      ...InSession,
    }),
    output: z.looseObject({ contents: z.array(z.looseObject({ uri: z.string() })) }),
  }),
  listPrompts: operation({
    scope: "read",
    summary: "Prompts that the caller sees.",
    input: z.strictObject({
      ...Paged,
      serverId: Id.optional(),
      name: z.string().optional().describe("Exactly this public name."),
      q: Query,
      ...InSession,
    }),
    output: z.object({ prompts: z.array(PromptInfoSchema), total: z.int(), nextCursor: NextCursor }),
  }),
  getPrompt: operation({
    scope: "read",
    summary: "Runs a prompt: its messages for these arguments.",
    input: z.strictObject({
      promptName: Id.describe("Its public name."),
      args: z.record(z.string(), z.string()).optional().describe("Arguments of the prompt."),
      ...Answers,
      ...InSession,
    }),
    output: z.looseObject({
      description: z.string().optional(),
      messages: z.array(z.looseObject({ role: z.string() })),
    }),
  }),
  completeArgument: operation({
    scope: "read",
    summary: "Suggests values for an argument of a prompt, or for a variable of a template.",
    input: z.strictObject({
      promptName: Id.optional().describe("The prompt. Either this or `uri`."),
      uri: z.string().min(1).optional().describe("The template."),
      argument: Id.describe("The argument or variable."),
      value: z.string().max(10_000).default("").describe("What is typed so far."),
      known: z.record(z.string(), z.string()).optional().describe("The others that are filled in already."),
      ...InSession,
    }),
    output: z.object({
      values: z.array(z.string()),
      total: z.number().optional(),
      hasMore: z.boolean().optional(),
    }),
  }),
  followResource: operation({
    scope: "read",
    summary: "Subscribes to a resource: `resource.updated` reports its changes until the session ends.",
    input: z.strictObject({ uri: z.string().min(1), ...InSession }),
    output: z.object({ uri: z.string() }),
  }),
  unfollowResource: operation({
    scope: "read",
    summary: "Ends the subscription to a resource.",
    input: z.strictObject({ uri: z.string().min(1), ...InSession }),
    output: z.object({ uri: z.string() }),
  }),
  listQuestions: operation({
    scope: "read",
    summary: "What servers ask in calls of the caller, and waits for an answer.",
    input: z.strictObject({}),
    output: z.object({ questions: z.array(QuestionSchema) }),
  }),
  answerQuestion: operation({
    scope: "read",
    summary: "Answers a question that a server asks in a call of the caller.",
    input: z.strictObject({
      questionId: Id,
      action: z.enum(QUESTION_ACTIONS).describe("`cancel`: closed without a choice."),
      content: z.record(z.string(), z.unknown()).optional().describe("Of a form that is accepted: its values."),
      text: z.string().max(1_000_000).optional().describe("Of `sampling` that is accepted: the answer of the model."),
      model: z.string().max(200).optional().describe("Of `sampling`: who wrote the answer; `human` if absent."),
    }),
    output: z.object({ questionId: z.string(), action: z.enum(QUESTION_ACTIONS) }),
  }),

  listSkills: operation({
    scope: "read",
    summary: "Skills that the caller sees.",
    input: z.strictObject({
      ...Paged,
      q: Query,
      kind: z.enum(["imported", "folder", "server"]).optional(),
      source: z.enum(SKILL_SOURCES).optional(),
    }),
    output: z.object({ skills: z.array(SkillInfoSchema), total: z.int(), nextCursor: NextCursor }),
  }),
  getSkill: operation({
    scope: "read",
    summary: "One skill.",
    input: z.strictObject({ skillId: Id }),
    output: z.object({ skill: SkillDetailSchema }),
  }),
  getInstructions: operation({
    scope: "read",
    summary: "The instructions that an agent reads when it uses the skill.",
    input: z.strictObject({ skillId: Id }),
    output: z.object({
      skillId: z.string(),
      name: z.string(),
      path: z.string().optional().describe("The skill's own folder, if it is on the hub's machine."),
      instructions: z.string(),
      manifest: SkillManifestSchema,
    }),
  }),
  skillPlaces: operation({
    scope: "admin",
    summary: "Folders where skills are usually found.",
    input: z.strictObject({}),
    output: z.object({ places: z.array(SkillPlaceSchema) }),
  }),
  scanSkills: operation({
    scope: "admin",
    summary: "Scans the skills below a folder without importing them.",
    input: z.strictObject({ path: Path }),
    output: SkillScanSchema,
  }),
  importSkills: operation({
    scope: "admin",
    summary: "Imports one skill, or those below a folder.",
    input: z.strictObject({
      path: Path,
      only: z.array(z.string()).max(10_000).optional().describe("Paths of the chosen ones, as the scan returns them."),
      force: Flag.default(false).describe("Import what the scan refuses, and replace a skill from another source."),
      dryRun: Flag.default(false),
      as: z
        .literal("openclaw")
        .optional()
        .describe("Import them as skills of OpenClaw, with ids that begin with `openclaw-skill-`, whatever they say."),
    }),
    output: SkillImportReportSchema,
  }),
  removeSkill: operation({
    scope: "admin",
    summary: "Removes an imported skill.",
    input: z.strictObject({ skillId: Id }),
    output: z.object({ skillId: z.string(), name: z.string() }),
  }),

  listSessions: operation({
    scope: "admin",
    summary: "Open sessions, and the door each came through.",
    input: z.strictObject({
      ...Paged,
      door: z.string().optional(),
      state: z.enum(["open", "closed", "all"]).default("open"),
    }),
    output: z.object({ sessions: z.array(SessionInfoSchema), total: z.int(), nextCursor: NextCursor }),
  }),
  openSession: operation({
    scope: "call",
    summary: "Opens a session, which may have servers of its own that no other session sees.",
    input: z.strictObject({
      servers: z
        .union([z.record(z.string(), z.unknown()), z.array(z.unknown())])
        .optional()
        .describe(
          "Entries by name, as under `mcpServers`, or a list of entries with names. Entries with a command need `admin`.",
        ),
      role: z.string().optional().describe("The caller's own; others need `admin` and a caller without a role."),
      conversation: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe(
          "An id of the caller's own: sessions with the same one share what they have read that anyone may have written.",
        ),
      parent: Id.optional().describe(
        "A session of the caller that this one belongs to, as a sub-agent's does; they share the same.",
      ),
      workspaceDir: z.string().min(1).max(4096).optional().describe("A folder on the hub's machine; needs `admin`."),
      waitMs: z
        .int()
        .min(0)
        .max(60_000)
        .optional()
        .describe(
          "Milliseconds to wait for the servers; `sessions.wait` of the config if absent. Late servers join afterwards.",
        ),
    }),
    output: z.object({
      id: z.string(),
      sessionId: z.string().describe("The same as `id`, which in a reply of the WebSocket is that of the command."),
      servers: z.array(ServerInfoSchema),
      notices: z.array(SessionNoticeSchema).describe("For example, why a server failed or was left out."),
    }),
  }),
  getSession: operation({
    scope: "read",
    summary: "One session and what it sees. Sessions of other callers need `admin`.",
    input: z.strictObject({ sessionId: Id }),
    output: z.object({ session: SessionDetailSchema }),
  }),
  closeSession: operation({
    scope: "call",
    summary: "Ends a session, its calls and its own servers. Sessions of other callers need `admin`.",
    input: z.strictObject({ sessionId: Id }),
    output: z.object({ sessionId: z.string() }),
  }),

  listTaint: operation({
    scope: "admin",
    summary: "Open sessions that have read what anyone may have written, and memory-like servers that hold some of it.",
    input: z.strictObject({}),
    output: z.object({
      sessions: z.array(
        z.object({ id: z.string(), door: z.string(), user: z.string().nullable(), taint: TaintSchema }),
      ),
      memories: z.array(z.object({ server: z.string(), origins: z.array(TaintOriginSchema) })),
    }),
  }),
  clearTaint: operation({
    scope: "admin",
    summary:
      '"I have read it": what a session and others of its conversation have read, or what is in a memory-like server, counts no more.',
    input: z.strictObject({
      sessionId: Id.optional().describe("An open session. Either this or `memory`."),
      memory: Id.optional().describe("The id of a memory-like server."),
    }),
    output: z.object({ sessionId: z.string().optional(), memory: z.string().optional() }),
  }),

  listApprovals: operation({
    scope: "approve",
    summary: "Calls that wait for approval, or calls that were answered.",
    input: z.strictObject({ ...Paged, status: z.enum(["pending", "answered", "expired", "all"]).default("pending") }),
    output: z.object({ approvals: z.array(ApprovalSchema), total: z.int(), nextCursor: NextCursor }),
  }),
  getApproval: operation({
    scope: "approve",
    summary: "One approval, with all its arguments.",
    input: z.strictObject({ approvalId: Id }),
    output: z.object({ approval: ApprovalSchema }),
  }),
  answerApproval: operation({
    scope: "approve",
    summary: "Answers a waiting call. The caller's own calls, and the answers that last, need `admin`.",
    input: z.strictObject({ approvalId: Id, answer: z.enum(ASK_ANSWERS) }),
    output: z.object({ id: z.string(), answer: z.enum(ASK_ANSWERS) }),
  }),

  listPins: operation({
    scope: "admin",
    summary: "Pinned definitions and their state.",
    input: z.strictObject({
      ...Paged,
      serverId: Id.optional(),
      kind: PinKindSchema.optional(),
      state: z.enum(["same", "changed", "new", "gone"]).optional(),
    }),
    output: z.object({ pins: z.array(PinSchema), total: z.int(), nextCursor: NextCursor }),
  }),
  changePins: operation({
    scope: "admin",
    summary: "Approves the current definitions of a server, or removes its pins.",
    input: z.strictObject({
      action: z.enum(["approve", "reset"]),
      serverId: Id,
      tool: z.string().min(1).max(8192).optional().describe("The name of one definition, as `listPins` returns it."),
      kind: PinKindSchema.optional().describe("What `tool` names; a tool if absent."),
    }),
    output: z.object({ changed: z.array(PinNameSchema) }),
  }),
  explainPolicy: operation({
    scope: "read",
    summary: "Why a tool, prompt or resource is allowed or not.",
    input: z.strictObject({
      name: Id,
      role: z.string().optional().describe("For this role; a role other than the caller's needs `admin`."),
      ...InSession,
    }),
    output: ExplanationSchema,
  }),
  explainCall: operation({
    scope: "read",
    summary: "Why a call with these arguments would be allowed or not. It is not made.",
    input: z.strictObject({
      name: Id,
      arguments: z.record(z.string(), z.unknown()).default({}),
      role: z.string().optional().describe("For this role; a role other than the caller's needs `admin`."),
      client: z.string().optional().describe("As if a client of this name called."),
      tainted: z.boolean().optional().describe("As if the session had read what anyone may have written, or not."),
      ...InSession,
    }),
    output: ExplanationSchema,
  }),
  getConfig: operation({
    scope: "admin",
    summary: "The config with the origin of each value, masked.",
    input: z.strictObject({}),
    output: ConfigViewSchema,
  }),
  changeConfig: operation({
    scope: "admin",
    summary: "Shows what changes of rules, roles, servers and tokens would do, as a diff, or writes them.",
    input: z.strictObject({
      changes: z.array(ConfigChangeSchema).min(1).max(1000),
      save: z.boolean().default(false).describe("Writes them and applies the new config. Needs `etag`."),
      etag: z.string().optional().describe("That of the diff that was looked at; refused if the file differs by now."),
    }),
    output: PlannedChangeSchema,
  }),
  listRoles: operation({
    scope: "admin",
    summary: "Roles and their settings.",
    input: z.strictObject({}),
    output: z.object({ roles: z.array(RoleInfoSchema) }),
  }),
  listTokens: operation({
    scope: "admin",
    summary: "Tokens of `http.auth` with their last use, never their text.",
    input: z.strictObject({}),
    output: z.object({ tokens: z.array(TokenInfoSchema) }),
  }),
  clientSnippets: operation({
    scope: "read",
    summary: "How to connect agent clients to this hub.",
    input: z.strictObject({}),
    output: z.object({ clients: z.array(ClientSnippetSchema) }),
  }),
  connectClient: operation({
    scope: "admin",
    summary: "Writes this hub into the config of an agent client on its machine. Needs the user who runs the hub.",
    input: z.strictObject({ clientId: Id.describe("As `clientSnippets` names it.") }),
    output: ChangedClientSchema,
  }),
  disconnectClient: operation({
    scope: "admin",
    summary: "Removes it from there again. Needs the user who runs the hub.",
    input: z.strictObject({ clientId: Id }),
    output: ChangedClientSchema,
  }),
  listAudit: operation({
    scope: "admin",
    summary: "Records of the audit log, the newest first.",
    input: z.strictObject({
      ...Paged,
      since: z.string().optional().describe("ISO time, or a span such as `1h`."),
      until: z.string().optional(),
      type: z.enum(["start", "call", "decision", "event"]).optional(),
      server: z.string().optional(),
      name: z.string().optional().describe("Public name; `*` matches anything, `?` one character."),
      session: z.string().optional(),
      user: z.string().optional(),
      client: z.string().optional().describe("Name of the program that called."),
      door: z.string().optional(),
      outcome: z.string().optional().describe("`ok`, an error code, or `failed` for all of them."),
      callId: z.string().optional(),
      q: Query.describe("Part of a name, event, user, client or call id."),
      order: z.enum(["newest", "oldest"]).default("newest"),
    }),
    output: z.object({ entries: z.array(AuditEntrySchema), nextCursor: NextCursor }),
  }),
  getRecording: operation({
    scope: "admin",
    summary: "Whether arguments and results of calls are recorded in the audit log.",
    input: z.strictObject({}),
    output: RecordingSchema,
  }),
  setRecording: operation({
    scope: "admin",
    summary: "Records arguments and results of calls, masked, for a time. It ends by itself, and with the process.",
    input: z.strictObject({
      server: Id.optional().describe("The id of a server, or `local` for in-process tools; all calls if absent."),
      minutes: z.int().min(0).max(1440).describe("From now on; 0 ends it."),
    }),
    output: RecordingSchema,
  }),
  listPassages: operation({
    scope: "admin",
    summary:
      "The texts that the guard's findings in a call are about. They are in no log, and kept in memory for the last 200 such calls of this process.",
    input: z.strictObject({ callId: Id }),
    output: z.object({ passages: z.array(PassageSchema) }),
  }),
  verifyAudit: operation({
    scope: "admin",
    summary: "Checks the hash chains of the audit log.",
    input: z.strictObject({}),
    output: AuditVerdictSchema,
  }),
} as const;

export type OperationName = keyof typeof OPERATIONS;
/** As a caller writes it. */
export type InputOf<Name extends OperationName> = z.input<(typeof OPERATIONS)[Name]["input"]>;
/** As a handler gets it. */
export type CheckedInput<Name extends OperationName> = z.output<(typeof OPERATIONS)[Name]["input"]>;
export type OutputOf<Name extends OperationName> = z.output<(typeof OPERATIONS)[Name]["output"]>;

// The table's keys are its codes, and there is at least one.
const CODES = Object.keys(ERROR_TABLE) as [ErrorCode, ...ErrorCode[]];

/** The one form of errors, at every operation. */
export const ErrorAnswerSchema = z
  .object({
    error: z.object({
      code: z.enum(CODES),
      message: z.string().describe("What is wrong and where."),
      hint: z.string().optional().describe("What to do about it."),
      details: z
        .record(z.string(), z.unknown())
        .optional()
        .describe("For programs. Of `invalid_arguments`: `issues`, with the path and message of each."),
    }),
  })
  .meta({ id: "Error" });
