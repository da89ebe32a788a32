import type { ErrorCode, ErrorObject } from "../model/errors.ts";

/** An error from the hub. `status` is 0 if there was no HTTP response. */
export class ToolcribApiError extends Error {
  override readonly name = "ToolcribApiError";
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly details: ErrorObject["details"];
  readonly status: number;

  constructor({ code, message, hint, details }: ErrorObject, status = 0, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.hint = hint;
    this.details = details;
    this.status = status;
  }
}

/** The error in a response body. A proxy may have answered instead of the hub. */
export function errorFromResponse(status: number, body: unknown): ToolcribApiError {
  const error = isObject(body) ? body["error"] : undefined;
  if (isErrorObject(error)) return new ToolcribApiError(error, status);
  const code = CODES[status] ?? (status >= 500 ? "server_unavailable" : "internal");
  return new ToolcribApiError(
    { code, message: `The hub responded with status ${status} and no error message.` },
    status,
  );
}

export function cancelledError(cause?: unknown): ToolcribApiError {
  return new ToolcribApiError({ code: "cancelled", message: "The request was cancelled." }, 0, cause);
}

export function unreachableError(cause?: unknown): ToolcribApiError {
  const hint = "Check that `toolcrib serve` is running and that the URL is correct.";
  return new ToolcribApiError({ code: "server_unavailable", message: "The hub does not respond.", hint }, 0, cause);
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  400: "invalid_arguments",
  401: "unauthorized",
  403: "denied",
  404: "not_found",
  409: "conflict",
  412: "conflict",
  413: "too_large",
  429: "rate_limited",
  504: "timeout",
};

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isErrorObject(value: unknown): value is ErrorObject {
  return isObject(value) && typeof value["code"] === "string" && typeof value["message"] === "string";
}
