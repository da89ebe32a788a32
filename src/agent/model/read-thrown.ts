/** What a provider's error says, whatever its shape: an error of `ai`, one of the network, or an object out of a stream. */
import { isJsonObject } from "../../model/json.ts";

export interface Thrown {
  readonly status: number | undefined;
  /** The provider's own words, short, without secrets. */
  readonly message: string;
  /** All that it said, to look for words in; never shown. */
  readonly text: string;
  /** Such as `ECONNREFUSED`. */
  readonly networkCode: string | undefined;
  readonly retryAfterMs: number | undefined;
  /** False where the provider says that asking again is of no use. */
  readonly mayRetry: boolean;
}

const LONGEST_MESSAGE = 300;

export function readThrown(thrown: unknown, secrets: readonly string[]): Thrown {
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
  // An answer that was good until its content made no sense has a status too.
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

/** Keys are at least this long; shorter values would blacken the text. */
const SHORTEST_SECRET = 6;

function mask(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret.length < SHORTEST_SECRET) continue;
    clean = clean.replaceAll(secret, "***");
    // `Bearer <token>` and the like: the word after the scheme is the secret.
    const bare = secret.replace(/^\S+\s+/, "");
    if (bare.length >= SHORTEST_SECRET) clean = clean.replaceAll(bare, "***");
  }
  return clean;
}

/** One line, not endless, without terminal codes. */
function shorten(text: string): string {
  const line = text
    .slice(0, LONGEST_MESSAGE * 4)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  return line.length > LONGEST_MESSAGE ? `${line.slice(0, LONGEST_MESSAGE).toWellFormed()}…` : line;
}
