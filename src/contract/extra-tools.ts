/** Tools of a process behind a WebSocket, for one session: how it says what they are, gets their calls and answers them. */
import { z } from "zod";
import { SessionNoticeSchema } from "./activity.ts";
import type { Operation } from "./operations.ts";

const CallId = z.string().min(1).max(200);
const Schema = z.record(z.string(), z.unknown());
/** A longer call is one that nobody waits for. */
const MOST_MS = 3_600_000;
/** The config's `limits.sessionTools` is what counts; this is about the size of a frame. */
const MOST_TOOLS = 1000;

const ExtraToolSchema = z
  .object({
    name: z.string(),
    title: z.string().optional().describe("Name for people."),
    description: z.string(),
    schema: Schema.optional().describe("JSON Schema of the arguments; any object if absent."),
    inputSchema: Schema.optional().describe("The same as `schema`, as MCP names it."),
    parameters: Schema.optional().describe("The same as `schema`, as agents name it."),
    annotations: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("Hints as MCP has them, such as `readOnlyHint`."),
    timeoutMs: z
      .int()
      .min(1)
      .max(MOST_MS)
      .default(60_000)
      .describe("Milliseconds that a call may take; each progress report restarts it, up to ten times this in all."),
  })
  .meta({ id: "ExtraTool" });

/** Commands of one connection. They are no operations: what they set ends with it, and its calls go nowhere else. */
export const EXTRA_TOOL_COMMANDS = {
  "sessions.setExtraTools": {
    scope: "call",
    summary: "Gives a session tools that this connection answers for, in place of those it gave before.",
    input: z.strictObject({
      session: z
        .string()
        .max(512)
        .optional()
        .describe("The connection's own if absent. One of the same caller, or with `admin` any that is open."),
      sessionId: z.string().max(512).optional().describe("The same as `session`."),
      tools: z.array(ExtraToolSchema).max(MOST_TOOLS).describe("An empty list takes them away."),
    }),
    output: z.object({
      session: z.string(),
      tools: z.array(z.string()).describe("Their names."),
      notices: z
        .array(SessionNoticeSchema)
        .describe("Such as which were left out, because their names were taken or the session has too many."),
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
        .describe("A result as MCP has it (`content`, `structuredContent`, `isError`), a text, or any value."),
    }),
    output: z.object({ callId: z.string() }),
  },
  "extraTool.progress": {
    scope: "call",
    summary: "Says how far a call is, and restarts its timeout.",
    input: z.strictObject({
      callId: CallId,
      progress: z.number(),
      total: z.number().optional(),
      message: z.string().max(10_000).optional(),
    }),
    output: z.object({ callId: z.string() }),
  },
} as const satisfies Readonly<Record<string, Operation>>;

export const ExtraToolCallSchema = z.object({
  callId: z.string().describe("The same as in the audit log."),
  name: z.string(),
  args: z.record(z.string(), z.unknown()).describe("They fit the tool's schema."),
  session: z.string(),
});

export const ExtraToolCancelSchema = z.object({
  callId: z.string(),
  reason: z.enum(["cancelled", "timeout"]),
});

export type ExtraToolCommand = keyof typeof EXTRA_TOOL_COMMANDS;
export type ExtraToolDefinition = z.input<typeof ExtraToolSchema>;
