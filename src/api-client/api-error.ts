import type { ErrorCode, ErrorObject } from "../model/errors.ts";

/** An error of the hub as its client sees it. `status` is 0 where no answer came over HTTP. */
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

/** What a body that should hold an error says; a proxy in between may have answered instead of the hub. */
export function errorFromResponse(status: number, body: unknown): ToolcribApiError {
  const error = isObject(body) ? body["error"] : undefined;
  if (isErrorObject(error)) return new ToolcribApiError(error, status);
  const code = CODES[status] ?? (status >= 500 ? "server_unavailable" : "internal");
  return new ToolcribApiError({ code, message: `The hub answered with status ${status} and no reason.` }, status);
}

export function cancelledError(cause?: unknown): ToolcribApiError {
  return new ToolcribApiError({ code: "cancelled", message: "It was given up." }, 0, cause);
}

export function unreachableError(cause?: unknown): ToolcribApiError {
  const hint = "See whether `toolcrib serve` runs, and whether the address is right.";
  return new ToolcribApiError({ code: "server_unavailable", message: "The hub does not answer.", hint }, 0, cause);
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
