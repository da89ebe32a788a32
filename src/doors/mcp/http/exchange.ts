/** One HTTP exchange as the listener hands it over, and the plain answers to it. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Caller, Scope } from "../../../model/caller.ts";
import { ERROR_TABLE, type ErrorObject } from "../../../model/errors.ts";
import type { RequestId, RpcError } from "../../../model/rpc.ts";
import { encodeError, encodeToolcribError } from "../encode.ts";
import type { Encoded } from "../encoded.ts";

export interface McpExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Decoded, and without a slash at its end. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly caller: Caller;
  /** Rejects with ToolcribError if the body is too large or does not come to its end. */
  readBody(): Promise<Buffer>;
  /** Answers that the caller's credentials do not reach that far. */
  refuseScope(scope: Scope): void;
  /**
   * Lets another node of the cluster answer. `gone`: that node is no more; `away`: it cannot be reached now. Absent without a
   * cluster, and where a node has handed it on already.
   */
  readonly handOn?: ((node: string) => Promise<"answered" | "gone" | "away">) | undefined;
}

/** One write with its length wherever it can be, so that a plain answer is one packet. */
export function answerJson(
  response: ServerResponse,
  status: number,
  body: Encoded,
  headers?: Readonly<OutgoingHttpHeaders>,
): void {
  if (response.headersSent || response.destroyed) return;
  const text = textOf(body);
  if (text !== undefined) {
    response.writeHead(status, headersOf(Buffer.byteLength(text), headers));
    response.end(text);
    return;
  }
  let length = 0;
  for (const part of body) length += typeof part === "string" ? Buffer.byteLength(part) : part.length;
  response.writeHead(status, headersOf(length, headers));
  response.cork();
  for (const part of body) response.write(part);
  response.end();
  response.uncork();
}

function headersOf(length: number, headers: Readonly<OutgoingHttpHeaders> | undefined): OutgoingHttpHeaders {
  if (headers === undefined) return { "Content-Type": "application/json", "Content-Length": length };
  return { ...headers, "Content-Type": "application/json", "Content-Length": length };
}

/** The whole message as one string, if no part of it is bytes. */
export function textOf(message: Encoded): string | undefined {
  let text = "";
  for (const part of message) {
    if (typeof part !== "string") return undefined;
    text += part;
  }
  return text;
}

export function bytesOf(message: Encoded): number {
  let bytes = 0;
  for (const part of message) bytes += part.length;
  return bytes;
}

export function answerNothing(response: ServerResponse, status: 202 | 204): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, status === 202 ? { "Content-Length": 0 } : {});
  response.end();
}

export function refuse(
  response: ServerResponse,
  status: number,
  id: RequestId | null,
  error: RpcError,
  headers?: Readonly<OutgoingHttpHeaders>,
): void {
  answerJson(response, status, encodeError(id, error), headers);
}

/** @param status The table's own if it is left out. */
export function refuseToolcrib(
  response: ServerResponse,
  id: RequestId | null,
  error: ErrorObject,
  status: number = ERROR_TABLE[error.code].http,
): void {
  const headers = status === 503 ? { "Retry-After": RETRY_AFTER_S } : undefined;
  answerJson(response, status, encodeToolcribError(id, error), headers);
}

const RETRY_AFTER_S = 10;
