/** Failures of a model: the message for people, and whether a retry can help. */
import { isLoopback } from "../../base/network-address.ts";
import { type ErrorCode, ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { ModelAccess } from "./providers.ts";

interface Failure {
  readonly error: ToolcribError;
  readonly retry: boolean;
  /** The wait that the provider asks for. */
  readonly retryAfterMs?: number;
}

/** The answer ended before the model said that it was done. */
export class StreamInterrupted extends Error {}

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
    const nobody = code === "ECONNREFUSED" && isLoopback(reach.url.hostname);
    const hint = reach.startHint ?? "Check the address, and that the server is running.";
    return give("server_unavailable", `The connection to ${id} at ${reach.url.host} failed (${code}).`, !nobody, hint);
  }
  if (isBadStream(thrown)) return give("server_unavailable", `The answer of ${id} was interrupted${said}`, true);
  return give("internal", `${id} could not be asked${said}`, false);
}

const BAD_STREAMS = new Set([
  "AI_APICallError",
  "AI_InvalidResponseDataError",
  "AI_TypeValidationError",
  "AI_JSONParseError",
  "AI_EmptyResponseBodyError",
]);

/** An error inside the stream, or a malformed stream: a retry may succeed. */
function isBadStream(thrown: unknown): boolean {
  return thrown instanceof Error ? BAD_STREAMS.has(thrown.name) : isJsonObject(thrown);
}

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
