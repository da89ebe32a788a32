/** Sessions, approvals, audit entries and the overview as the HTTP contract shows them. */
import { z } from "zod";
import { ASK_ANSWERS } from "../model/decision.ts";
import { DefinitionChangeSchema } from "./catalog-schemas.ts";
import { ServerInfoSchema } from "./server-schemas.ts";

const Origin = z.object({ source: z.string(), name: z.string() });
const RuleSchema = z.looseObject({}).describe("Level, list, pattern and location of the rule.");

export const ClientInfoSchema = z
  .object({
    name: z.string(),
    version: z.string().optional(),
    title: z.string().optional(),
    transport: z.string().optional(),
    pid: z.int().optional(),
    program: z.string().optional(),
    cwd: z.string().optional(),
    entryOf: z.string().optional().describe("The id of the client that its entry was written for."),
  })
  .describe("The program, in its own words; transport, process and program as the hub sees them.")
  .meta({ id: "ClientInfo" });

export const TaintOriginSchema = z
  .object({
    server: z.string(),
    name: z.string().describe("The tool, prompt or resource that brought it in first."),
    read: z.array(z.string()).describe("The latest things that were read, the newest first."),
    callId: z.string(),
    at: z.string(),
    via: z.string().optional().describe("The memory-like server that it was read back from."),
  })
  .describe("A server whose content was read, and which anyone may have written.")
  .meta({ id: "TaintOrigin" });

export const TaintSchema = TaintOriginSchema.extend({ origins: z.array(TaintOriginSchema) })
  .describe("The first origin, and all of them.")
  .meta({ id: "Taint" });

export const SessionInfoSchema = z
  .object({
    id: z.string(),
    door: z.string(),
    role: z.string().nullable(),
    user: z.string().nullable(),
    client: ClientInfoSchema.nullable(),
    conversation: z
      .string()
      .optional()
      .describe(
        "Of an open session of an editor (`toolcrib acp`): the id that the editor has for it, by which it can be named as well.",
      ),
    owner: z.boolean(),
    openedAt: z.string(),
    closedAt: z.string().nullable(),
    lastCallAt: z.string().nullable(),
    calls: z.int().min(0),
    running: z.int().min(0).describe("Calls in progress."),
    toolCount: z.int().min(0).nullable().describe("Tools that it sees; null if another hub or node has the session."),
    taint: TaintSchema.nullable(),
  })
  .meta({ id: "Session" });

export const SessionNoticeSchema = z
  .object({
    level: z.enum(["info", "warning"]),
    message: z.string(),
    hint: z.string().optional(),
    server: z.string().optional().describe("The name that the client gave it."),
  })
  .meta({ id: "SessionNotice" });

export const SessionDetailSchema = SessionInfoSchema.extend({
  tools: z.array(z.string()).describe("Public names of the tools that it sees."),
  activeSkills: z.array(z.string()),
  servers: z.array(ServerInfoSchema).optional().describe("Its own servers; absent once it is closed."),
  notices: z.array(SessionNoticeSchema).optional().describe("Notices about them."),
}).meta({ id: "SessionDetail" });

const RiskSchema = z
  .object({
    risk: z
      .enum(["outside", "host", "shell", "rule"])
      .describe(
        "`outside`: a path outside the folders of the session; `host`: an address on another host than the server's; `shell`: characters that a shell acts on; `rule`: a value that the rule looks at.",
      ),
    at: z.array(z.union([z.string(), z.int()])).describe("Keys and indexes that lead to the value."),
    from: z.int().optional().describe("The part of a text, in UTF-16 units; the whole value if absent."),
    to: z.int().optional(),
  })
  .meta({ id: "ArgumentRisk" });

export const ApprovalSchema = z
  .object({
    id: z.string(),
    status: z.enum(["pending", "answered", "expired"]),
    held: z.boolean(),
    callId: z.string(),
    session: z.object({
      id: z.string(),
      door: z.string(),
      role: z.string().optional(),
      user: z.string().optional(),
      client: ClientInfoSchema.optional(),
      conversation: z.string().optional(),
      roots: z.array(z.string()).optional().describe("The folders that it works in."),
    }),
    kind: z.string(),
    name: z.string(),
    origin: Origin,
    arguments: z
      .record(z.string(), z.unknown())
      .describe(
        "Masked; shortened in lists. Values are kept while the call waits, and afterwards only with `audit.arguments`.",
      ),
    shortened: z.boolean().optional(),
    risks: z
      .array(RiskSchema)
      .optional()
      .describe("The parts of `arguments` to look at before answering; absent for calls that no longer wait."),
    group: z
      .string()
      .optional()
      .describe("The same for waiting calls of one caller that are alike in everything: one answer fits them all."),
    changed: z.boolean().optional().describe("The definition is not the one that was approved."),
    definition: DefinitionChangeSchema.optional().describe("What changed in the definition. Only in `getApproval`."),
    rule: RuleSchema,
    rules: z.array(RuleSchema),
    reason: z.string(),
    lasting: z
      .object({ always: z.string(), "always-values": z.string(), "always-call": z.string() })
      .partial()
      .optional()
      .describe("The answers that last and are possible, each with the exception that it adds to the list that asks."),
    askedAt: z.string(),
    expiresAt: z.string(),
    answer: z
      .enum([...ASK_ANSWERS, "timeout", "withdrawn"])
      .nullable()
      .describe("`withdrawn`: the caller gave up or disconnected before anyone decided."),
    answeredAt: z.string().nullable(),
    answeredBy: z.string().nullable().describe("The user who answered, if known."),
  })
  .meta({ id: "Approval" });

export const AuditEntrySchema = z
  .looseObject({
    type: z.enum(["start", "call", "decision", "event"]),
    time: z.string(),
    chain: z.string(),
    seq: z.int(),
    hash: z.string(),
    callId: z.string().optional(),
    session: z.string().nullable().optional(),
    role: z.string().nullable().optional(),
    user: z.string().nullable().optional(),
    client: z.object({ name: z.string(), version: z.string().optional() }).optional(),
    door: z.string().optional(),
    kind: z.string().optional(),
    name: z.string().optional(),
    origin: Origin.nullable().optional(),
    decision: z.string().optional(),
    outcome: z.string().optional(),
    durationMs: z.number().optional(),
    arguments: z.string().optional().describe("JSON, masked, at most 4 KiB; only where they were recorded."),
    resultBytes: z.number().optional(),
    result: z.string().optional().describe("JSON of the result or the error, likewise, at most 16 KiB."),
    event: z.string().optional(),
  })
  .describe("One record of the audit log.")
  .meta({ id: "AuditRecord" });

export const RecordingSchema = z
  .object({
    arguments: z.boolean().describe("The config's `audit.arguments`: those of all calls are recorded."),
    results: z.boolean().describe("The same of `audit.results`."),
    recordings: z
      .array(
        z.object({
          server: z.string().nullable().describe("Null for all servers."),
          since: z.string(),
          until: z.string(),
          by: z.string().nullable().describe("The user who switched it on, if known."),
        }),
      )
      .describe("What is recorded for a time, arguments and results."),
  })
  .meta({ id: "Recording" });

export const AuditVerdictSchema = z
  .object({
    ok: z.boolean(),
    records: z.int(),
    chains: z.int(),
    problems: z.array(z.string()),
  })
  .meta({ id: "AuditVerdict" });

export const PassageSchema = z
  .object({
    code: z.string(),
    severity: z.string(),
    place: z.string(),
    score: z.number().describe("Of 10."),
    rules: z.array(z.string()),
    before: z.string(),
    text: z.string().describe("Hidden characters are written as `\\u{…}`."),
    after: z.string(),
  })
  .meta({ id: "Passage" });

export const OverviewSchema = z
  .object({
    version: z.string(),
    node: z
      .string()
      .optional()
      .describe("In a cluster: the node that answered. Sessions, findings and warnings are those of this node."),
    startedAt: z.string(),
    store: z.enum(["sqlite", "postgres", "none"]),
    servers: z.record(z.string(), z.int()).describe("How many are in each state."),
    tools: z.int(),
    skills: z.int(),
    sessions: z.int(),
    pendingApprovals: z.int(),
    findings: z
      .array(
        z.object({
          server: z.string(),
          kind: z.string().describe("`tool`, `prompt`, `resource`, `template` or `instructions`."),
          name: z.string().describe("Public name."),
          code: z.string(),
          severity: z.string(),
          text: z.string().describe("Where it is, and the words."),
        }),
      )
      .describe("What the scan of definitions finds in what servers list now."),
    warnings: z.array(z.object({ server: z.string().optional(), message: z.string() })),
  })
  .meta({ id: "Overview" });

export type SessionInfo = z.output<typeof SessionInfoSchema>;
export type SessionDetail = z.output<typeof SessionDetailSchema>;
export type Approval = z.output<typeof ApprovalSchema>;
export type AuditEntry = z.output<typeof AuditEntrySchema>;
export type RecordingState = z.output<typeof RecordingSchema>;
export type AuditVerdict = z.output<typeof AuditVerdictSchema>;
export type Overview = z.output<typeof OverviewSchema>;

/** A question of a server while a call runs. */
export const QUESTION_ACTIONS = ["accept", "decline", "cancel"] as const;

export const QuestionSchema = z
  .object({
    id: z.string(),
    kind: z
      .enum(["form", "url", "sampling"])
      .describe("A form to fill in, an address to open, or a request to a model."),
    server: z.string().describe("The server that asks, as people call it."),
    session: z.string().describe("The session of the call."),
    name: z.string().describe("The tool, prompt or resource that is in use."),
    askedAt: z.string(),
    message: z.string().describe("Empty for `sampling`."),
    schema: z.record(z.string(), z.unknown()).optional().describe("Of a form: JSON Schema of a flat object."),
    url: z.string().optional().describe("Of `url`: open it only if the person agrees."),
    sampling: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("Of `sampling`: the params of MCP, such as `messages`, `systemPrompt` and `maxTokens`."),
  })
  .meta({ id: "Question" });

export type Question = z.output<typeof QuestionSchema>;
