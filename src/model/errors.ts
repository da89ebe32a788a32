import { isJsonObject } from "./json.ts";
import type { Result } from "./protocol.ts";

/** The one table of error codes: what each means at every door. */
export const ERROR_TABLE = {
  not_found: { http: 404, rpc: -32602, exit: 1, meaning: "No such tool, resource, prompt, server or file." },
  denied: { http: 403, rpc: -32010, exit: 3, meaning: "Policy does not allow it." },
  blocked: { http: 403, rpc: -32011, exit: 3, meaning: "The guard refused what the tool returned." },
  invalid_arguments: { http: 400, rpc: -32602, exit: 2, meaning: "The arguments do not fit." },
  invalid_config: { http: 400, rpc: -32603, exit: 1, meaning: "The configuration is wrong." },
  rate_limited: { http: 429, rpc: -32012, exit: 1, meaning: "A limit has been reached for now." },
  server_unavailable: { http: 503, rpc: -32013, exit: 4, meaning: "The server is not connected." },
  timeout: { http: 504, rpc: -32014, exit: 5, meaning: "No response within the time limit." },
  cancelled: { http: 499, rpc: -32015, exit: 1, meaning: "The caller cancelled it." },
  tool_error: { http: 502, rpc: -32603, exit: 1, meaning: "The tool itself reported an error." },
  too_large: { http: 413, rpc: -32016, exit: 1, meaning: "The result exceeds the size limit." },
  unauthorized: { http: 401, rpc: -32017, exit: 1, meaning: "Credentials are missing or wrong." },
  conflict: { http: 409, rpc: -32018, exit: 1, meaning: "It already exists, or was changed in the meantime." },
  internal: { http: 500, rpc: -32603, exit: 1, meaning: "A fault in Toolcrib." },
} as const satisfies Record<string, { http: number; rpc: number; exit: number; meaning: string }>;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** An error as every door reports it. */
export interface ErrorObject {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint?: string;
  readonly details?: { readonly [key: string]: unknown };
}

interface ToolcribErrorOptions {
  readonly hint?: string;
  readonly details?: { readonly [key: string]: unknown };
  readonly cause?: unknown;
}

/** The only error that parts of Toolcrib throw at each other on purpose. Its message must never contain a secret. */
export class ToolcribError extends Error {
  override readonly name = "ToolcribError";
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly details: { readonly [key: string]: unknown } | undefined;

  constructor(code: ErrorCode, message: string, options: ToolcribErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.details = options.details;
  }

  toObject(): ErrorObject {
    return {
      code: this.code,
      message: this.message,
      hint: this.hint,
      details: this.details,
    };
  }
}

/** The sentence for every caller of a call that may have run while its answer was lost. */
export const OUTCOME_UNKNOWN = "Whether the call ran is not known.";
export const CHECK_BEFORE_RETRY = "See what it did before you call again.";

export function isErrorObject(value: unknown): value is ErrorObject {
  if (!isJsonObject(value)) return false;
  const { code, message } = value;
  return typeof code === "string" && Object.hasOwn(ERROR_TABLE, code) && typeof message === "string";
}

/** The code of an error of Node, such as `ENOENT`; undefined for any other. */
export function systemErrorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}

/** Any thrown value as a ToolcribError; an unexpected one becomes `internal` without its stack. */
export function asToolcribError(thrown: unknown): ToolcribError {
  if (thrown instanceof ToolcribError) return thrown;
  if (thrown instanceof RangeError && thrown.message.includes("call stack")) return tooDeep(thrown);
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new ToolcribError("internal", message, { cause: thrown });
}

/** V8's own words would say nothing to whoever sent the value; where it has no bound of its own, the stack is the bound. */
function tooDeep(cause: RangeError): ToolcribError {
  const hint = "Use fewer objects and lists inside each other.";
  return new ToolcribError("too_large", "The arguments or the result are nested too deeply.", { hint, cause });
}

/** With its period, for a message that another sentence follows. */
export function asSentence(text: string): string {
  const trimmed = text.trimEnd();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

/** An error in one line, with its hint. */
export function errorText({ code, message, hint }: ErrorObject): string {
  return hint === undefined ? `${code}: ${message}` : `${code}: ${message} ${hint}`;
}

/**
 * Without hints that are only for people: a model that learns how to lift a refusal may try to lift it, and one that
 * learns of commands may try to run them.
 */
export function errorTextForModel(error: ErrorObject): string {
  const { code, message, hint, details } = error;
  if (code !== "denied" && code !== "blocked") {
    return hint !== undefined && COMMAND_MENTION.test(hint) ? `${code}: ${message}` : errorText(error);
  }
  const rule = details?.["rule"];
  const where = isJsonObject(rule) ? rule["where"] : undefined;
  return `${code}: ${typeof where === "string" && where !== "" ? message.replaceAll(where, "the rules") : message}`;
}

const COMMAND_MENTION = /\btoolcrib [a-z]/;

/** How every Call ends: exactly one of these, never an exception across the hub's edge. */
export type Outcome<R extends Result = Result> =
  | { readonly ok: true; readonly callId: string; readonly result: R }
  /** `result` is there when the tool itself answered with `isError` (code `tool_error`). */
  | { readonly ok: false; readonly callId: string; readonly error: ErrorObject; readonly result?: R };
