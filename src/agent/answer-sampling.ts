/** MCP sampling: servers get answers from the agent's model, if the operator allows it. */
import { type Clock, systemClock } from "../base/clock.ts";
import { isContentBlock } from "../model/content.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { ContentBlock } from "../model/protocol.ts";
import type { SamplingCallback } from "../model/source.ts";
import { CallWindow } from "../policy/call-windows.ts";
import { rpcRefusal } from "../upstream/rpc-error.ts";
import { abortable } from "./abortable.ts";
import type { AgentOptions, SamplingQuestion } from "./agent-options.ts";
import type { AgentMessage, AssistantPart, ChatModel, ModelStep, StepPart } from "./model/chat-model.ts";

export interface AnswerSamplingOptions {
  /** Only asked for once a request is allowed. */
  readonly model: () => Promise<ChatModel>;
  readonly mode: "deny" | "ask" | "allow";
  /** Of one answer; a server may ask for less. */
  readonly maxTokens: number;
  readonly ask?: AgentOptions["onSampling"];
  readonly clock?: Clock;
}

/** One for each session: the usage of all its servers is added up. */
export function answerSampling(options: AnswerSamplingOptions): SamplingCallback {
  const budget = new SamplingBudget(options.clock ?? systemClock, options.maxTokens);
  return async (params, { server, signal }) => {
    if (options.mode === "deny")
      throw samplingDenied(
        "The operator does not let servers use the model.",
        'Set agent.sampling to "ask" or "allow".',
      );
    // Checked first: the user is not asked about a request that cannot be answered anyway.
    const step = samplingStep(params, { maxTokens: options.maxTokens, signal });
    const tokens = estimateSamplingTokens(step);
    if (options.mode === "allow") budget.take(tokens);
    if (options.mode === "ask") await requireConsent(options.ask, { server, params }, signal);
    const model = await options.model();
    let text = "";
    let reason: Extract<StepPart, { type: "finish" }>["reason"] = "other";
    for await (const part of model.step(step)) {
      if (part.type === "text") text += part.text;
      if (part.type === "again") text = "";
      if (part.type === "finish") reason = part.reason;
    }
    if (reason === "refusal" && text === "") throw samplingDenied("The model refused to answer.");
    const stopReason = reason === "length" ? "maxTokens" : "endTurn";
    return { role: "assistant", content: { type: "text", text }, model: model.id, stopReason };
  };
}

async function requireConsent(
  ask: AgentOptions["onSampling"],
  question: SamplingQuestion,
  signal: AbortSignal,
): Promise<void> {
  if (ask === undefined) {
    throw samplingDenied(
      "No client can be asked whether this server may use the model.",
      'Use a client that can be asked, or set agent.sampling to "allow".',
    );
  }
  const allowed = await abortable(ask(question, signal), signal);
  if (!allowed) throw samplingDenied("The user did not let this server use the model.");
}

/** MCP's own code for a sampling request that is turned down. */
const SAMPLING_REJECTED = -1;

function samplingDenied(message: string, hint?: string): ToolcribError {
  return rpcRefusal(SAMPLING_REJECTED, message, hint);
}

/**
 * `modelPreferences` and `includeContext` are hints that a client may ignore, and they are ignored: the server gets the model of the
 * agent and nothing of any conversation. Throws `invalid_arguments` for a request that cannot be answered.
 */
function samplingStep(params: JsonObject, options: { maxTokens: number; signal: AbortSignal }): ModelStep {
  const { tools, toolChoice, temperature, stopSequences, systemPrompt, maxTokens } = params;
  const needsTools = isJsonObject(toolChoice) && toolChoice["mode"] === "required";
  if (needsTools || (Array.isArray(tools) && tools.length > 0)) {
    throw new ToolcribError("invalid_arguments", "Sampling requests with tools are not supported.", {
      hint: "Ask without `tools` and `toolChoice`.",
    });
  }
  return {
    system: typeof systemPrompt === "string" ? systemPrompt : "",
    messages: readMessages(params["messages"]),
    tools: [],
    signal: options.signal,
    maxOutputTokens: Math.min(options.maxTokens, isCount(maxTokens) ? maxTokens : options.maxTokens),
    ...(typeof temperature === "number" && temperature >= 0 ? { temperature } : {}),
    ...(isStringList(stopSequences) && stopSequences.length > 0 ? { stopSequences } : {}),
  };
}

function readMessages(messages: unknown): AgentMessage[] {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new ToolcribError("invalid_arguments", "A sampling request needs at least one message.");
  }
  return messages.map((message: unknown, at) => {
    if (!isJsonObject(message)) throw badMessage(at);
    const blocks = (Array.isArray(message["content"]) ? message["content"] : [message["content"]]).filter(isBlock);
    if (blocks.length === 0) throw badMessage(at);
    if (message["role"] === "assistant")
      return { role: "assistant", parts: blocks.map((block) => assistantPart(block, at)) };
    if (message["role"] !== "user") throw badMessage(at);
    return { role: "user", content: blocks };
  });
}

/** A model only says text; any other block belongs to a request with tools. */
function assistantPart(block: ContentBlock, at: number): AssistantPart {
  if (block.type === "text" && typeof block["text"] === "string") return { type: "text", text: block["text"] };
  throw badMessage(at);
}

function badMessage(at: number): ToolcribError {
  return new ToolcribError("invalid_arguments", `Message ${at + 1} of the sampling request cannot be answered.`, {
    hint: "A message has the role user or assistant, and content of the types text, image or audio.",
  });
}

function isBlock(value: unknown): value is ContentBlock {
  return isContentBlock(value) && !value.type.startsWith("tool_");
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}

function isStringList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string" && text !== "");
}

const MAX_TEXT_BYTES = 200_000;
/** Of images and the like, in base64. */
const MAX_MEDIA_BYTES = 4_000_000;
/** Counting as models do would need their tables. */
const BYTES_PER_TOKEN = 4;
/** About what providers count for an image of middle size. */
const TOKENS_PER_MEDIUM = 1500;

/** Estimates the tokens of a request and its answer; throws `too_large` for one that is not answered. */
function estimateSamplingTokens({ system, messages, maxOutputTokens = 0 }: ModelStep): number {
  let text = Buffer.byteLength(system);
  let mediaBytes = 0;
  let media = 0;
  for (const block of messages.flatMap((message) => blocksOf(message))) {
    const bytes = Buffer.byteLength(JSON.stringify(block));
    if (block.type === "image" || block.type === "audio") {
      media += 1;
      mediaBytes += bytes;
    } else {
      text += bytes;
    }
  }
  if (text > MAX_TEXT_BYTES) throw tooLarge(`${text} bytes of text`, MAX_TEXT_BYTES);
  if (mediaBytes > MAX_MEDIA_BYTES) throw tooLarge(`${mediaBytes} bytes of media`, MAX_MEDIA_BYTES);
  return Math.ceil(text / BYTES_PER_TOKEN) + media * TOKENS_PER_MEDIUM + maxOutputTokens;
}

function blocksOf(message: AgentMessage): readonly { readonly type: string }[] {
  if (message.role === "user") return message.content;
  return message.role === "assistant" ? message.parts : [];
}

function tooLarge(what: string, most: number): ToolcribError {
  return new ToolcribError("too_large", `A sampling request with ${what} is not answered.`, {
    hint: `Send at most ${most} bytes.`,
  });
}

const REQUESTS_PER_MINUTE = 60;
/** Multiplied by the tokens of one answer; requests and answers count together. */
const ANSWERS_PER_HOUR = 100;
const HOUR_MS = 60 * 60_000;

/** Limits how much servers may use a model without asking: a server that never stops would spend the user's money. */
class SamplingBudget {
  readonly #clock: Clock;
  readonly #requests = new CallWindow(REQUESTS_PER_MINUTE);
  readonly #tokensPerHour: number;
  /** Oldest first; those of the last hour. */
  #spent: { readonly at: number; readonly tokens: number }[] = [];

  /** @param maxTokens Of one answer. */
  constructor(clock: Clock, maxTokens: number) {
    this.#clock = clock;
    this.#tokensPerHour = maxTokens * ANSWERS_PER_HOUR;
  }

  /** Counts a request, or throws `rate_limited`; a refused request does not count. */
  take(tokens: number): void {
    const now = this.#clock.now();
    if (this.#requests.wait(now) > 0) {
      throw limited(`At most ${REQUESTS_PER_MINUTE} sampling requests are answered per minute.`);
    }
    this.#spent = this.#spent.filter(({ at }) => at > now - HOUR_MS);
    const spent = this.#spent.reduce((sum, each) => sum + each.tokens, 0);
    if (spent + tokens > this.#tokensPerHour) {
      throw limited(`Servers may use about ${this.#tokensPerHour} tokens of the model per hour.`);
    }
    this.#requests.record(now);
    this.#spent.push({ at: now, tokens });
  }
}

function limited(message: string): ToolcribError {
  return new ToolcribError("rate_limited", message, {
    hint: `Try again later, or ask for less. agent.samplingTokens sets the limit; with agent.sampling "ask" the user decides each time.`,
  });
}
