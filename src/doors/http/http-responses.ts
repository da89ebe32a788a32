/** Responses that all routes share: JSON, errors in the one form of the table, and refusals of methods and paths. */
import { type ErrorObject, ERROR_TABLE, ToolcribError } from "../../model/errors.ts";
import type { HttpExchange, HttpResponse, HttpRoute } from "./http-exchange.ts";

type Headers = Readonly<Record<string, string | number>>;

const COMMON = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

export function sendJson(response: HttpResponse, status: number, body: unknown, headers: Headers = {}): void {
  sendJsonText(response, status, JSON.stringify(body), headers);
}

export function sendJsonText(response: HttpResponse, status: number, text: string, headers: Headers = {}): void {
  send(response, status, "application/json", text, headers);
}

export function sendText(response: HttpResponse, status: number, text: string): void {
  send(response, status, "text/plain; charset=utf-8", text, {});
}

export interface ErrorResponseOptions {
  /** A status other than the table's, such as 405. */
  readonly status?: number;
  readonly headers?: Headers;
}

/** Does nothing if the response has begun. */
export function sendError(response: HttpResponse, error: ToolcribError, answer: ErrorResponseOptions = {}): void {
  if (response.headersSent) return;
  const status = answer.status ?? ERROR_TABLE[error.code].http;
  sendJson(response, status, { error: error.toObject() }, answer.headers);
}

const READ_METHODS = ["GET", "HEAD"];

/** True if the method is none of these; that is answered then. */
export function refuseMethodUnless({ request, response }: HttpExchange, allowed: readonly string[]): boolean {
  if (allowed.includes(request.method ?? "")) return false;
  const error = new ToolcribError("invalid_arguments", `${request.method} is not allowed here.`, {
    hint: `Allowed: ${allowed.join(", ")}.`,
  });
  sendError(response, error, { status: 405, headers: { allow: allowed.join(", ") } });
  return true;
}

/** True if it is not a read; that is answered then. */
export function refuseUnlessRead(exchange: HttpExchange): boolean {
  return refuseMethodUnless(exchange, READ_METHODS);
}

export function notFoundAt(path: string, hint?: string): ToolcribError {
  return new ToolcribError("not_found", `There is nothing at ${path}.`, { hint });
}

/** A public route that is only read; with `below`, the paths under it too. */
export function readOnlyRoute(
  path: string,
  show: (exchange: HttpExchange) => void | Promise<void>,
  { below = false }: { readonly below?: boolean } = {},
): HttpRoute {
  return {
    path,
    access: "public",
    handle: (exchange) => {
      if (!below && exchange.path !== path) throw notFoundAt(exchange.path);
      return refuseUnlessRead(exchange) ? undefined : show(exchange);
    },
  };
}

/** A whole response as text, for a socket on which no request could be read. */
export function rawErrorResponse(status: number, reason: string, error: ErrorObject): string {
  const body = JSON.stringify({ error });
  return [
    `HTTP/1.1 ${status} ${reason}`,
    "content-type: application/json",
    "cache-control: no-store",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
    "",
    body,
  ].join("\r\n");
}

function send(response: HttpResponse, status: number, type: string, body: string, headers: Headers): void {
  if (response.headersSent) return;
  response.writeHead(status, {
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    ...COMMON,
    ...headers,
  });
  // Node leaves the body out of an answer to HEAD.
  response.end(body);
}
