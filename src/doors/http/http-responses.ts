/** Answers that the listener and its own routes give: JSON, and errors in the one form of the table. */
import type { ServerResponse } from "node:http";
import { type ErrorObject, ERROR_TABLE, type ToolcribError } from "../../model/errors.ts";

type Headers = Readonly<Record<string, string | number>>;

const COMMON = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

export function sendJson(response: ServerResponse, status: number, body: unknown, headers: Headers = {}): void {
  sendJsonText(response, status, JSON.stringify(body), headers);
}

export function sendJsonText(response: ServerResponse, status: number, text: string, headers: Headers = {}): void {
  send(response, status, "application/json", text, headers);
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  send(response, status, "text/plain; charset=utf-8", text, {});
}

export interface ErrorResponseOptions {
  /** Where HTTP has a status of its own for it, such as 405. */
  readonly status?: number;
  readonly headers?: Headers;
}

/** Does nothing if the answer has begun: then nothing true can be said any more. */
export function sendError(response: ServerResponse, error: ToolcribError, answer: ErrorResponseOptions = {}): void {
  if (response.headersSent) return;
  const status = answer.status ?? ERROR_TABLE[error.code].http;
  sendJson(response, status, { error: error.toObject() }, answer.headers);
}

/** A whole answer as text, for a socket on which no request could be read. */
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

function send(response: ServerResponse, status: number, type: string, body: string, headers: Headers): void {
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
