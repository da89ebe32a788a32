/** The protocol of a provider, as the scripted model needs it. */
import type { z } from "zod";
import type { JsonObject } from "../../model/json.ts";
import type { ModelMessage, OfferedTool, ProtocolName, ReadRequest } from "./model-request.ts";
import type { ScriptedAnswer } from "./scenario.ts";

/** One event of a stream. */
export interface Frame {
  readonly event?: string;
  readonly data: JsonObject | string;
  /** Carries a piece of the answer; the others are what the protocol puts around them. */
  readonly piece?: true;
}

export interface ErrorFacts {
  readonly status: number;
  readonly message: string | undefined;
  readonly code?: string;
}

/** A request without its body. */
interface RequestFacts {
  readonly headers: Readonly<Record<string, string>>;
  readonly path: string;
}

export interface Protocol {
  readonly name: ProtocolName;
  /** The prefix of call ids. */
  readonly callPrefix: string;
  /** Throws RejectedRequest for what the provider would not take. */
  read(body: JsonObject, from: RequestFacts): ReadRequest;
  frames(answer: ScriptedAnswer): Iterable<Frame>;
  /** The answer to a request that asks for no stream. */
  whole(answer: ScriptedAnswer): JsonObject;
  error(facts: ErrorFacts): JsonObject;
  /** An error after the stream has begun. */
  failure(message: string): Frame;
}

/** A request that the provider would answer with an error. */
export class RejectedRequest extends Error {
  override readonly name = "RejectedRequest";
  readonly status: number;

  constructor(message: string, status = 400) {
    super(message);
    this.status = status;
  }
}

/** The body, or a rejection that names the first place that is wrong. */
export function readBody<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new RejectedRequest(`${issue?.path.join(".") || "body"}: ${issue?.message ?? "invalid"}`);
}

interface HistoryProblem {
  /** Of the call; several are separated by commas. */
  readonly id: string;
  /** Of the message. */
  readonly index: number;
}

/** Calls without a result, a result whose call is not in the message before it, and a second result of one call. */
type HistoryTexts = Readonly<Record<"unanswered" | "unexpected" | "doubled", (problem: HistoryProblem) => string>>;

/**
 * Each call must have its result and each result its call, as every provider demands. All results of one message are merged
 * in `messages`. The first problem is thrown in the provider's words.
 */
export function assertHistory(messages: readonly ModelMessage[], texts: HistoryTexts): void {
  const refuse = (kind: keyof HistoryTexts, id: string, index: number): never => {
    throw new RejectedRequest(texts[kind]({ id, index }));
  };
  for (const [index, message] of messages.entries()) {
    const asked = new Set(messages[index - 1]?.calls.map((call) => call.id));
    const seen = new Set<string>();
    for (const { id } of message.results) {
      if (!asked.has(id)) refuse("unexpected", id, index);
      if (seen.has(id)) refuse("doubled", id, index);
      seen.add(id);
    }
    const answered = new Set(messages[index + 1]?.results.map((result) => result.id));
    const ids = message.calls.map((call) => call.id).filter((id) => !answered.has(id));
    if (ids.length > 0) refuse("unanswered", ids.join(", "), index);
  }
}

interface ToolProblem {
  readonly index: number;
  readonly name: string;
  /** The `type` of the schema's root. */
  readonly found: string;
}

/** A name that does not match, a name that is taken, and a root that is not an object. */
type ToolTexts = Readonly<Record<"name" | "doubled" | "root", (problem: ToolProblem) => string>>;

/** Throws the first problem of the offered tools in the provider's words. */
export function assertTools(tools: readonly OfferedTool[], pattern: RegExp, texts: ToolTexts): void {
  const seen = new Set<string>();
  for (const [index, { name, inputSchema }] of tools.entries()) {
    const { type } = inputSchema;
    const isTaken = seen.has(name);
    seen.add(name);
    const kind = !pattern.test(name) ? "name" : isTaken ? "doubled" : type !== "object" ? "root" : undefined;
    if (kind !== undefined)
      throw new RejectedRequest(texts[kind]({ index, name, found: JSON.stringify(type ?? null) }));
  }
}
