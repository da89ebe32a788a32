/** A model behind a provider of `ai`: requests, streaming and retries. */
import type { Clock } from "../../base/clock.ts";
import { ToolcribError, type ErrorCode } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { sleep } from "../abortable.ts";
import type { ChatModel, ModelStep, StepPart } from "./chat-model.ts";
import { toPrompt } from "./model-prompt.ts";
import {
  META_KEY,
  type ModelAccess,
  type Protocol,
  type SdkCall,
  type SdkModel,
  type SdkPart,
  type SdkTool,
  usesResponsesApi,
} from "./providers.ts";
import { isLoopback } from "../../base/network-address.ts";

/** If a provider asks for a longer wait, the request fails instead. */
const MAX_RETRY_AFTER_MS = 60_000;
const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 30_000;

const SCHEMA_RULES: Readonly<Record<Protocol, ChatModel["provider"]>> = {
  anthropic: "anthropic",
  openai: "openai",
  google: "gemini",
  "openai-compatible": "openai",
};

/** Each provider looks at its own. */
const PROVIDER_OPTIONS: NonNullable<SdkCall["providerOptions"]> = {
  // Calls are taken whole, and what else speaks this protocol does not know the field that asks for pieces.
  anthropic: { toolStreaming: false },
  // The conversation is ours: nothing of it is to be kept there.
  openai: { store: false },
};

interface StreamedModelOptions {
  readonly id: string;
  readonly reach: ModelAccess;
  readonly images: boolean;
  readonly sdk: SdkModel;
  readonly retries: number;
  readonly clock: Clock;
}

export class StreamedModel implements ChatModel {
  readonly id: string;
  readonly provider: ChatModel["provider"];
  readonly images: boolean;
  readonly #options: StreamedModelOptions;
  /** Some servers send thoughts and refuse to accept them back, others require them: only a request shows it. */
  #thoughts = true;

  constructor(options: StreamedModelOptions) {
    this.id = options.id;
    this.provider = SCHEMA_RULES[options.reach.protocol];
    this.images = options.images;
    this.#options = options;
  }

  async *step(step: ModelStep): AsyncGenerator<StepPart> {
    const { id, reach, retries, clock } = this.#options;
    for (let attempt = 1; ; attempt++) {
      if (step.signal.aborted) throw cancelledError(id);
      try {
        yield* this.#ask(step);
        return;
      } catch (thrown) {
        if (step.signal.aborted) throw cancelledError(id);
        const { error, retry, retryAfterMs } = readFailure(thrown, id, reach);
        if (this.#thoughts && error.code === "invalid_arguments" && error.message.includes("reasoning_content")) {
          this.#thoughts = false;
          continue;
        }
        if (!retry || attempt > retries) throw error;
        if (retryAfterMs !== undefined && retryAfterMs > MAX_RETRY_AFTER_MS)
          throw retryTooLateError(error, retryAfterMs);
        const delayMs = Math.round(Math.max(retryAfterMs ?? 0, backoff(attempt)));
        yield { type: "again", attempt, delayMs, reason: error.message };
        await sleep(delayMs, clock, step.signal);
      }
    }
  }

  async *#ask(step: ModelStep): AsyncGenerator<StepPart> {
    const { stream, response } = await this.#options.sdk.doStream(this.#call(step));
    if (/^text\/html/i.test(response?.headers?.["content-type"] ?? "")) {
      await stream.cancel();
      throw notAModelError(this.#options.reach);
    }
    // Whoever stops reading ends the stream, and with it the model's work.
    yield* readStream(stream, this.#options.reach);
  }

  #call(step: ModelStep): SdkCall {
    const { reach } = this.#options;
    return {
      prompt: toPrompt(step.system, step.messages, {
        protocol: reach.protocol,
        model: reach.model,
        images: this.images,
        thoughts: this.#thoughts,
        imagesInResults:
          reach.protocol !== "openai-compatible" && (reach.protocol !== "openai" || usesResponsesApi(reach)),
      }),
      tools: step.tools.map(({ name, description, inputSchema }) => ({
        type: "function",
        name,
        description,
        // Whoever made the tool has normalised its schema; the type of the package knows only an older draft.
        inputSchema: inputSchema as SdkTool["inputSchema"],
      })),
      abortSignal: step.signal,
      providerOptions: PROVIDER_OPTIONS,
      maxOutputTokens: step.maxOutputTokens,
      temperature: step.temperature,
      ...(step.stopSequences === undefined ? {} : { stopSequences: [...step.stopSequences] }),
    };
  }
}

/** Doubles each time, with jitter. */
function backoff(attempt: number): number {
  const most = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
  return most * (0.75 + Math.random() / 2);
}

/** A web page, such as a login page: the address is wrong. */
function notAModelError({ url }: ModelAccess): ToolcribError {
  return new ToolcribError("invalid_config", `${url.host} responded with a web page instead of a model's answer.`, {
    hint: "Check baseUrl; most endpoints want it to end in /v1.",
  });
}

function cancelledError(id: string): ToolcribError {
  return new ToolcribError("cancelled", `The answer of ${id} was cancelled.`);
}

function retryTooLateError(error: ToolcribError, retryAfterMs: number): ToolcribError {
  return new ToolcribError(error.code, error.message, {
    hint: `The provider asks to wait ${Math.ceil(retryAfterMs / 1000)} seconds.`,
    details: { ...error.details, retryAfterMs },
  });
}

/**
 * Reads one streamed answer of a provider as parts of a step. Throws the error that the provider reports inside the
 * stream, and StreamInterrupted for an answer without an end.
 */
async function* readStream(
  stream: AsyncIterable<SdkPart>,
  reach: Pick<ModelAccess, "protocol" | "model">,
): AsyncGenerator<StepPart> {
  const thoughts = new ThoughtMetadata(reach);
  const ids = new Set<string>();
  for await (const part of stream) {
    switch (part.type) {
      case "text-delta":
        if (part.delta !== "") yield { type: "text", text: part.delta };
        break;
      case "reasoning-start":
        thoughts.note(part.id, part.providerMetadata);
        break;
      case "reasoning-delta":
        thoughts.note(part.id, part.providerMetadata);
        if (part.delta !== "") yield { type: "thought", text: part.delta };
        break;
      case "reasoning-end": {
        thoughts.note(part.id, part.providerMetadata);
        const meta = thoughts.end(part.id);
        if (meta !== undefined) yield { type: "thought", text: "", meta };
        break;
      }
      case "tool-call": {
        // A call that the provider ran itself is not ours to run.
        if (part.providerExecuted === true) break;
        const id = uniqueCallId(part.toolCallId, ids);
        const meta = part.providerMetadata === undefined ? {} : { meta: { ...part.providerMetadata } };
        yield { type: "call", id, name: part.toolName, ...readArguments(part.input), ...meta };
        break;
      }
      case "error":
        throw part.error;
      case "finish": {
        const { unified } = part.finishReason;
        if (unified === "interrupted" || unified === "error") throw new StreamInterrupted();
        const usage = readUsage(part.usage);
        if (usage !== undefined) yield usage;
        yield { type: "finish", reason: finishReason(unified, ids.size > 0) };
        return;
      }
      default:
        break;
    }
  }
  throw new StreamInterrupted();
}

type Finish = Extract<SdkPart, { type: "finish" }>;

function finishReason(
  unified: Finish["finishReason"]["unified"],
  calls: boolean,
): Extract<StepPart, { type: "finish" }>["reason"] {
  switch (unified) {
    case "content-filter":
      return "refusal";
    case "length":
      return "length";
    default:
      // Local servers say `stop` also where they gave calls, and the other way round.
      if (calls) return "calls";
      return unified === "other" ? "other" : "stop";
  }
}

function readUsage({ inputTokens, outputTokens }: Finish["usage"]): StepPart | undefined {
  // Not every server reports usage; none is better than a zero that looks like a count.
  if (inputTokens.total === undefined && outputTokens.total === undefined) return undefined;
  const cached = inputTokens.cacheRead;
  return {
    type: "usage",
    input: inputTokens.total ?? 0,
    output: outputTokens.total ?? 0,
    ...(cached === undefined || cached === 0 ? {} : { cached }),
  };
}

/** Some servers send the same id for all calls of an answer, or no id. */
function uniqueCallId(id: string, taken: Set<string>): string {
  const base = id === "" ? "call" : id;
  let free = base;
  for (let next = 2; taken.has(free); next++) free = `${base}_${next}`;
  taken.add(free);
  return free;
}

/** The metadata that the provider wants back with each thought; it arrives in pieces. */
class ThoughtMetadata {
  readonly #reach: Pick<ModelAccess, "protocol" | "model">;
  readonly #open = new Map<string, JsonObject>();

  constructor(reach: Pick<ModelAccess, "protocol" | "model">) {
    this.#reach = reach;
  }

  note(id: string, metadata: Readonly<Record<string, JsonObject>> | undefined): void {
    const key = META_KEY[this.#reach.protocol];
    this.#open.set(id, { ...this.#open.get(id), ...metadata?.[key] });
  }

  end(id: string): JsonObject | undefined {
    const { protocol, model } = this.#reach;
    const found = this.#open.get(id) ?? {};
    this.#open.delete(id);
    // This protocol has no signatures; the name of the model identifies the owner of the thought.
    if (protocol === "openai-compatible") return { [META_KEY[protocol]]: { ...found, model } };
    return Object.keys(found).length === 0 ? undefined : { [META_KEY[protocol]]: found };
  }
}

type ReadArguments = { readonly input: JsonObject } | { readonly problem: string };

/** Parses the arguments of a call as a model wrote them. Empty text and `null` mean no arguments; an object inside a string is unwrapped, because some models write that. */
export function readArguments(text: string): ReadArguments {
  if (text.trim() === "") return { input: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
    if (typeof value === "string") value = JSON.parse(value);
  } catch (error) {
    const why = error instanceof Error ? ` (${error.message.slice(0, 200)})` : "";
    return { problem: `The arguments are not valid JSON${why}. Call again with one JSON object.` };
  }
  if (value === null) return { input: {} };
  if (isJsonObject(value)) return { input: value };
  return { problem: `The arguments are ${Array.isArray(value) ? "a list" : `a ${typeof value}`}, not a JSON object.` };
}

// Failures of a model: the message for people, and whether a retry can help.

interface Failure {
  readonly error: ToolcribError;
  readonly retry: boolean;
  /** The wait that the provider asks for. */
  readonly retryAfterMs?: number;
}

/** The answer ended before the model said that it was done. */
class StreamInterrupted extends Error {}

/** How providers and local servers say that the conversation is too long for the model. */
const TOO_LONG =
  /context.{0,20}(length|window|size)|prompt is too long|(input|prompt).{0,30}(token|length).{0,40}exceed|too many (input )?tokens|request_too_large|maximum.{0,20}(context|tokens allowed)/i;

/** Used up for good, as opposed to for the next minute. */
const NO_QUOTA = /insufficient_quota|credit balance is too low/i;

export function readFailure(thrown: unknown, id: string, reach: ModelAccess): Failure {
  if (thrown instanceof ToolcribError) return { error: thrown, retry: false };
  const read = parseProviderError(thrown, reach.secrets);
  const { status } = read;
  const said = read.message === "" ? "" : `: ${read.message}`;
  const where = reach.url.host;

  const give = (code: ErrorCode, message: string, retry: boolean, hint?: string): Failure => ({
    error: new ToolcribError(code, message, { hint, ...(status === undefined ? {} : { details: { status } }) }),
    retry: retry && read.mayRetry,
    retryAfterMs: read.retryAfterMs,
  });

  if (status === undefined) return connectionFailure(thrown, read, id, reach, give);
  if (NO_QUOTA.test(read.text)) {
    return give("rate_limited", `The quota for ${id} is used up${said}`, false, "See the account's plan and billing.");
  }
  if (status === 413 || (status < 500 && status !== 429 && TOO_LONG.test(read.text))) {
    return give("too_large", `The conversation is too long for ${id}${said}`, false, TOO_LONG_HINT);
  }
  switch (status) {
    case 401:
    case 403:
      return give("unauthorized", `${where} does not accept the credentials for ${id}${said}`, false, reach.keyHint);
    case 402:
      return give("rate_limited", `${where} requires payment for ${id}${said}`, false, "See the account's billing.");
    case 404:
      return give("not_found", `${where} does not know ${id}${said}`, false, notFoundHint(reach));
    case 429:
      return give("rate_limited", `${id} is rate limited${said}`, true, "Wait a while, or use another model.");
    default:
      if (status >= 300 && status < 400) {
        return give(
          "invalid_config",
          `${where} redirects to another address. Redirects are not followed.`,
          false,
          "Check baseUrl.",
        );
      }
      if (status === 408 || status === 409 || status >= 500) {
        return give("server_unavailable", `${id} is temporarily unavailable (${status})${said}`, true);
      }
      return give("invalid_arguments", `${id} refused the request (${status})${said}`, false);
  }
}

const TOO_LONG_HINT =
  "Start a new conversation, offer fewer tools (agent.maxTools), shorten results (agent.resultBytes), or use a model with a larger context.";

type MakeFailure = (code: ErrorCode, message: string, retry: boolean, hint?: string) => Failure;

/** No status: the network failed, the stream broke, or an error came inside it. */
function connectionFailure(
  thrown: unknown,
  read: ProviderError,
  id: string,
  reach: ModelAccess,
  give: MakeFailure,
): Failure {
  const said = read.message === "" ? "" : `: ${read.message}`;
  if (TOO_LONG.test(read.text))
    return give("too_large", `The conversation is too long for ${id}${said}`, false, TOO_LONG_HINT);
  if (thrown instanceof StreamInterrupted)
    return give("server_unavailable", `The answer of ${id} was interrupted.`, true);
  const code = read.networkCode;
  if (code !== undefined) {
    // Nothing is listening there, and a retry in a few seconds will not help.
    const isNotRunning = code === "ECONNREFUSED" && isLoopback(reach.url.hostname);
    const hint = reach.startHint ?? "Check the address, and that the server is running.";
    return give(
      "server_unavailable",
      `The connection to ${id} at ${reach.url.host} failed (${code}).`,
      !isNotRunning,
      hint,
    );
  }
  // An error inside the stream, or a malformed stream: a retry may succeed.
  const isBadStream = thrown instanceof Error ? BAD_STREAMS.has(thrown.name) : isJsonObject(thrown);
  if (isBadStream) return give("server_unavailable", `The answer of ${id} was interrupted${said}`, true);
  return give("internal", `${id} could not be asked${said}`, false);
}

const BAD_STREAMS = new Set([
  "AI_APICallError",
  "AI_InvalidResponseDataError",
  "AI_TypeValidationError",
  "AI_JSONParseError",
  "AI_EmptyResponseBodyError",
]);

function notFoundHint(reach: ModelAccess): string {
  if (reach.startHint !== undefined) return `Check the model's name. ${reach.startHint}`;
  return reach.own ? "Check the model's name." : "Check the model's name and baseUrl, which usually ends in /v1.";
}

/** The error of a provider in one form, whether it came from `ai`, from the network or inside a stream. */
interface ProviderError {
  readonly status: number | undefined;
  /** The provider's own words, short, without secrets. */
  readonly message: string;
  /** The whole error, to search in; never shown. */
  readonly text: string;
  /** Such as `ECONNREFUSED`. */
  readonly networkCode: string | undefined;
  readonly retryAfterMs: number | undefined;
  /** False if the provider says that a retry is useless. */
  readonly mayRetry: boolean;
}

const MAX_MESSAGE_LENGTH = 300;

function parseProviderError(thrown: unknown, secrets: readonly string[]): ProviderError {
  const fields = isJsonObject(thrown) ? thrown : {};
  const headers = isJsonObject(fields["responseHeaders"]) ? fields["responseHeaders"] : {};
  const message = typeof fields["message"] === "string" ? fields["message"] : "";
  const body = typeof fields["responseBody"] === "string" ? fields["responseBody"] : "";
  const kinds = [fields["type"], fields["code"]].filter((kind) => typeof kind === "string").join(" ");
  return {
    status: statusOf(fields),
    message: shorten(mask(message, secrets)),
    text: `${message}\n${kinds}\n${body.slice(0, 10_000)}`,
    networkCode: networkCode(thrown),
    retryAfterMs: retryAfter(headers) ?? retryDelay(body),
    mayRetry:
      headers["x-should-retry"] !== "false" && (fields["isRetryable"] !== false || statusOf(fields) !== undefined),
  };
}

function statusOf(fields: Readonly<Record<string, unknown>>): number | undefined {
  const { statusCode } = fields;
  // A response with malformed content has a status too.
  if (typeof statusCode === "number") return statusCode >= 300 ? statusCode : undefined;
  // Errors inside a stream: some servers put the status into `code`.
  const { code } = fields;
  return typeof code === "number" && code >= 400 && code < 600 ? code : undefined;
}

function retryAfter(headers: Readonly<Record<string, unknown>>): number | undefined {
  const ms = Number(headers["retry-after-ms"] ?? Number.NaN);
  if (Number.isFinite(ms) && ms >= 0) return ms;
  const text = headers["retry-after"];
  if (typeof text !== "string" || text.trim() === "") return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Google says it in the body. */
function retryDelay(body: string): number | undefined {
  const seconds = /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(body)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

/** The errors of `fetch` hide the cause some levels down. */
function networkCode(thrown: unknown): string | undefined {
  let at = thrown;
  for (let depth = 0; depth < 6 && isJsonObject(at); depth++) {
    const { code } = at;
    if (typeof code === "string" && /^(E[A-Z]{3,}|UND_ERR_\w+|CERT_\w+|ERR_TLS_\w+|DEPTH_ZERO_\w+)/.test(code))
      return code;
    at = at["cause"];
  }
  return undefined;
}

/** Keys are at least this long; masking shorter values would garble the text. */
const MIN_SECRET_LENGTH = 6;

function mask(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret.length < MIN_SECRET_LENGTH) continue;
    clean = clean.replaceAll(secret, "***");
    // `Bearer <token>` and the like: the word after the scheme is the secret.
    const bare = secret.replace(/^\S+\s+/, "");
    if (bare.length >= MIN_SECRET_LENGTH) clean = clean.replaceAll(bare, "***");
  }
  return clean;
}

/** One line, not endless, without terminal codes. */
function shorten(text: string): string {
  const line = text
    .slice(0, MAX_MESSAGE_LENGTH * 4)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  return line.length > MAX_MESSAGE_LENGTH ? `${line.slice(0, MAX_MESSAGE_LENGTH).toWellFormed()}…` : line;
}
