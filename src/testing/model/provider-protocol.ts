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

type HistoryProblem =
  /** Calls without a result. `index`: of the message that made them. */
  | { readonly kind: "unanswered"; readonly ids: readonly string[]; readonly index: number }
  /** A result whose call is not in the message before it. */
  | { readonly kind: "unexpected"; readonly id: string; readonly index: number }
  | { readonly kind: "doubled"; readonly id: string; readonly index: number };

/**
 * The first problem of a history: each call must have its result and each result its call, as every provider demands. All
 * results of one message are merged in `messages`.
 */
export function checkHistory(messages: readonly ModelMessage[]): HistoryProblem | undefined {
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1];
    const asked = new Set(before?.calls.map((call) => call.id));
    const seen = new Set<string>();
    for (const { id } of message.results) {
      if (!asked.has(id)) return { kind: "unexpected", id, index };
      if (seen.has(id)) return { kind: "doubled", id, index };
      seen.add(id);
    }
    const answered = new Set(messages[index + 1]?.results.map((result) => result.id));
    const ids = message.calls.map((call) => call.id).filter((id) => !answered.has(id));
    if (ids.length > 0) return { kind: "unanswered", ids, index };
  }
  return undefined;
}

type ToolProblem =
  | { readonly kind: "name" | "doubled"; readonly index: number; readonly name: string }
  /** The root of the schema: `found` is its `type`. */
  | { readonly kind: "root"; readonly index: number; readonly name: string; readonly found: string };

/** The first problem of the tools that a provider is offered. */
export function checkTools(tools: readonly OfferedTool[], pattern: RegExp): ToolProblem | undefined {
  const seen = new Set<string>();
  for (const [index, { name, inputSchema }] of tools.entries()) {
    if (!pattern.test(name)) return { kind: "name", index, name };
    if (seen.has(name)) return { kind: "doubled", index, name };
    seen.add(name);
    if (inputSchema["type"] !== "object")
      return { kind: "root", index, name, found: JSON.stringify(inputSchema["type"] ?? null) };
  }
  return undefined;
}
