/** HTTP as MCP uses it: plain responses, and the headers that clients send. */
import type { OutgoingHttpHeaders } from "node:http";
import type { HttpResponse } from "../../http/http-exchange.ts";
import { LARGE_JSON } from "../../../base/json-bytes.ts";
import { ERROR_TABLE, type ErrorObject } from "../../../model/errors.ts";
import type { RequestId, RpcError } from "../../../model/protocol.ts";
import { textOf } from "../../http/open-streams.ts";
import { type Encoded, encodeError, encodeToolcribError } from "../rpc-messages.ts";

/**
 * One write with its length where possible, so that a plain response is one packet. What is large goes in parts: to put the headers in
 * front of it, it would be copied.
 */
export function respondJson(
  response: HttpResponse,
  status: number,
  body: Encoded,
  headers?: Readonly<OutgoingHttpHeaders>,
): void {
  if (response.headersSent || response.destroyed) return;
  const text = bytesOf(body) > LARGE_JSON ? undefined : textOf(body);
  if (text !== undefined) {
    response.writeHead(status, headersOf(Buffer.byteLength(text), headers));
    response.end(text);
    return;
  }
  const lengths = body.map((part) => (typeof part === "string" ? Buffer.byteLength(part) : part.length));
  response.writeHead(
    status,
    headersOf(
      lengths.reduce((sum, length) => sum + length, 0),
      headers,
    ),
  );
  response.cork();
  // As UTF-8, Node would encode a part into three times its room.
  for (const [index, part] of body.entries()) response.write(part, part.length === lengths[index] ? "latin1" : "utf8");
  response.end();
  response.uncork();
}

function headersOf(length: number, headers: Readonly<OutgoingHttpHeaders> | undefined): OutgoingHttpHeaders {
  if (headers === undefined) return { "Content-Type": "application/json", "Content-Length": length };
  return { ...headers, "Content-Type": "application/json", "Content-Length": length };
}

export function bytesOf(message: Encoded): number {
  let bytes = 0;
  for (const part of message) bytes += part.length;
  return bytes;
}

export function respondEmpty(response: HttpResponse, status: 202 | 204): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, status === 202 ? { "Content-Length": 0 } : {});
  response.end();
}

export function refuseRpc(
  response: HttpResponse,
  status: number,
  id: RequestId | null,
  error: RpcError,
  headers?: Readonly<OutgoingHttpHeaders>,
): void {
  respondJson(response, status, encodeError(id, error), headers);
}

/** @param status The table's own if it is left out. */
export function refuseWithError(
  response: HttpResponse,
  id: RequestId | null,
  error: ErrorObject,
  status: number = ERROR_TABLE[error.code].http,
): void {
  const headers = status === 503 ? { "Retry-After": RETRY_AFTER_S } : undefined;
  respondJson(response, status, encodeToolcribError(id, error), headers);
}

const RETRY_AFTER_S = 10;

/** Which kinds of answer a client takes. */
export interface Accepts {
  readonly json: boolean;
  readonly stream: boolean;
}

const BOTH: Accepts = { json: true, stream: true };
const JSON_ONLY: Accepts = { json: true, stream: false };
const STREAM_ONLY: Accepts = { json: false, stream: true };

/** Undefined if the client takes neither. A client that says nothing takes everything. */
export function acceptsOf(accept: string | undefined): Accepts | undefined {
  // What nearly every client sends.
  if (accept === undefined || accept === "application/json, text/event-stream") return BOTH;
  let json = false;
  let stream = false;
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";");
    if (parameters.some((parameter) => /^\s*q\s*=\s*0(?:\.0*)?\s*$/i.test(parameter))) continue;
    const name = type.trim().toLowerCase();
    if (name === "*/*" || name === "application/*" || name === "application/json") json = true;
    if (name === "*/*" || name === "text/*" || name === "text/event-stream") stream = true;
  }
  if (json) return stream ? BOTH : JSON_ONLY;
  return stream ? STREAM_ONLY : undefined;
}

export function isJson(contentType: string | undefined): boolean {
  if (contentType === "application/json") return true;
  return contentType !== undefined && /^\s*application\/json\s*(?:;|$)/i.test(contentType);
}

/** Header values of MCP 2026-07-28 are plain, or UTF-8 in base64 between markers. */
const PLAIN = /^[\x20-\x7e\t]*$/;
const MARKED = /^=\?base64\?(.*)\?=$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Undefined if it has characters that are not allowed. */
export function decodeHeaderValue(value: string): string | undefined {
  const encoded = MARKED.exec(value)?.[1];
  if (encoded === undefined) return PLAIN.test(value) ? value : undefined;
  if (!BASE64.test(encoded)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(encoded, "base64"));
  } catch {
    return undefined;
  }
}

/** A header that was sent twice is joined with a comma, which is not a known value. */
export function headerOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}
