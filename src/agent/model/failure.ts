/** What went wrong when a model was asked: what a person is told, and whether asking again can help. */
import { type ErrorCode, ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { isLoopback } from "../../model/loopback.ts";
import type { Reach } from "./open-provider.ts";
import { readThrown, type Thrown } from "./read-thrown.ts";

export interface Failure {
  readonly error: ToolcribError;
  readonly retry: boolean;
  /** What the provider asks to wait. */
  readonly retryAfterMs?: number | undefined;
}

/** The answer ended before the model said that it was done. */
export class BrokenOff extends Error {}

/** The words by which providers and local servers say that the conversation is too long for the model. */
const TOO_LONG =
  /context.{0,20}(length|window|size)|prompt is too long|(input|prompt).{0,30}(token|length).{0,40}exceed|too many (input )?tokens|request_too_large|maximum.{0,20}(context|tokens allowed)/i;

/** Used up for good, as opposed to for the next minute. */
const NO_QUOTA = /insufficient_quota|credit balance is too low/i;

export function readFailure(thrown: unknown, id: string, reach: Reach): Failure {
  if (thrown instanceof ToolcribError) return { error: thrown, retry: false };
  const read = readThrown(thrown, reach.secrets);
  const { status } = read;
  const said = read.message === "" ? "" : `: ${read.message}`;
  const where = reach.url.host;

  const give = (code: ErrorCode, message: string, retry: boolean, hint?: string): Failure => ({
    error: new ToolcribError(code, message, { hint, ...(status === undefined ? {} : { details: { status } }) }),
    retry: retry && read.mayRetry,
    retryAfterMs: read.retryAfterMs,
  });

  if (status === undefined) return unanswered(thrown, read, id, reach, give);
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
      return give("rate_limited", `${where} wants to be paid for ${id}${said}`, false, "See the account's billing.");
    case 404:
      return give("not_found", `${where} does not know ${id}${said}`, false, notFoundHint(reach));
    case 429:
      return give("rate_limited", `${id} is limited for now${said}`, true, "Wait a while, or use another model.");
    default:
      if (status >= 300 && status < 400) {
        return give("invalid_config", `${where} redirects elsewhere, which is not followed.`, false, "Check baseUrl.");
      }
      if (status === 408 || status === 409 || status >= 500) {
        return give("server_unavailable", `${id} cannot answer for now (${status})${said}`, true);
      }
      return give("invalid_arguments", `${id} refused the request (${status})${said}`, false);
  }
}

const TOO_LONG_HINT =
  "Start a new conversation, offer fewer tools (agent.maxTools), shorten results (agent.resultBytes), or use a model with a larger context.";

type Give = (code: ErrorCode, message: string, retry: boolean, hint?: string) => Failure;

/** No status: the network failed, the stream broke, or an error came inside it. */
function unanswered(thrown: unknown, read: Thrown, id: string, reach: Reach, give: Give): Failure {
  const said = read.message === "" ? "" : `: ${read.message}`;
  if (TOO_LONG.test(read.text))
    return give("too_large", `The conversation is too long for ${id}${said}`, false, TOO_LONG_HINT);
  if (thrown instanceof BrokenOff) return give("server_unavailable", `The answer of ${id} broke off.`, true);
  const code = read.networkCode;
  if (code !== undefined) {
    // Nobody listens there, and nobody will in a few seconds: better said at once.
    const nobody = code === "ECONNREFUSED" && isLoopback(reach.url.hostname);
    const hint = reach.startHint ?? "Check the address and whether the server runs.";
    return give("server_unavailable", `The connection to ${id} at ${reach.url.host} failed (${code}).`, !nobody, hint);
  }
  if (isBadStream(thrown)) return give("server_unavailable", `The answer of ${id} broke off${said}`, true);
  return give("internal", `${id} could not be asked${said}`, false);
}

const BAD_STREAMS = new Set([
  "AI_APICallError",
  "AI_InvalidResponseDataError",
  "AI_TypeValidationError",
  "AI_JSONParseError",
  "AI_EmptyResponseBodyError",
]);

/** An error that a server put into the stream, or a stream that makes no sense: the next one may. */
function isBadStream(thrown: unknown): boolean {
  return thrown instanceof Error ? BAD_STREAMS.has(thrown.name) : isJsonObject(thrown);
}

function notFoundHint(reach: Reach): string {
  if (reach.startHint !== undefined) return `Check the model's name. ${reach.startHint}`;
  return reach.own ? "Check the model's name." : "Check the model's name and baseUrl, which mostly ends in /v1.";
}
