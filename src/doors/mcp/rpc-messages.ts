/** JSON-RPC messages of MCP clients: classified and checked when they come, encoded when they go. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { ERROR_TABLE, type ErrorObject, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import {
  CLIENT_CAPABILITIES_KEY,
  CLIENT_INFO_KEY,
  type Era,
  INVALID_PARAMS,
  LOG_LEVEL_KEY,
  type RequestId,
  RESOURCE_NOT_FOUND,
  type RpcError,
  type RpcNotification,
  type RpcRequest,
  type RpcResponse,
  VERSION_KEY,
} from "../../model/protocol.ts";

export type ClientMessage =
  | { readonly kind: "request"; readonly message: RpcRequest }
  | { readonly kind: "notification"; readonly message: RpcNotification }
  | { readonly kind: "response"; readonly message: RpcResponse }
  | { readonly kind: "invalid"; readonly id: RequestId | null };

/** One JSON value as it was parsed: a message, or what one version of the protocol has as a batch. */
export type ParsedMessages =
  | { readonly isBatch: false; readonly message: ClientMessage }
  | { readonly isBatch: true; readonly batch: readonly ClientMessage[] };

export function parseMessages(value: unknown): ParsedMessages {
  return Array.isArray(value)
    ? { isBatch: true, batch: value.map(classify) }
    : { isBatch: false, message: classify(value) };
}

function classify(value: unknown): ClientMessage {
  if (!isJsonObject(value) || value["jsonrpc"] !== "2.0") return invalidMessage(value);
  const { id, method, params } = value;
  if (method === undefined) {
    const isAnswer = isJsonObject(value["result"]) ? isRequestId(id) : isError(value["error"]);
    // The fields that are read were looked at just now.
    return isAnswer ? { kind: "response", message: value as RpcResponse } : invalidMessage(value);
  }
  if (typeof method !== "string" || (params !== undefined && !isJsonObject(params))) return invalidMessage(value);
  // As above, for both.
  if (id === undefined) return { kind: "notification", message: value as unknown as RpcNotification };
  return isRequestId(id) ? { kind: "request", message: value as unknown as RpcRequest } : invalidMessage(value);
}

/** A modern message says so in its `_meta`; `server/discover` exists in that era only. */
export function claimsModern({ method, params }: RpcRequest | RpcNotification): boolean {
  return method === "server/discover" || VERSION_KEY in metaOf(params);
}

/** Batches went out of the protocol after this version. */
const LAST_WITH_BATCHES = "2025-03-26";
const MAX_BATCH = 100;

/**
 * Why a batch is not taken; undefined if it is.
 * @param version Of the session; undefined before `initialize` was answered.
 */
export function batchError(batch: readonly ClientMessage[], version: string | undefined): string | undefined {
  if (version === undefined || version > LAST_WITH_BATCHES) return "This protocol version has no batches.";
  if (batch.length === 0) return "A batch must not be empty.";
  if (batch.length > MAX_BATCH) return `A batch has at most ${MAX_BATCH} messages.`;
  if (batch.some(({ kind }) => kind === "invalid")) return "The batch has an entry that is not a JSON-RPC 2.0 message.";
  const initializes = batch.some((one) => one.kind === "request" && one.message.method === "initialize");
  return initializes ? "initialize must not be part of a batch." : undefined;
}

function isRequestId(id: unknown): id is RequestId {
  return typeof id === "string" || (typeof id === "number" && Number.isFinite(id));
}

function isError(error: unknown): boolean {
  return isJsonObject(error) && typeof error["code"] === "number" && typeof error["message"] === "string";
}

function invalidMessage(value: unknown): ClientMessage {
  const id = isJsonObject(value) ? value["id"] : undefined;
  return { kind: "invalid", id: isRequestId(id) ? id : null };
}

/** A request whose params do not fit; its answer has exactly this code. */
export function invalidParams(message: string): ToolcribError {
  const rpc: RpcError = { code: INVALID_PARAMS, message };
  return new ToolcribError("invalid_arguments", message, { details: { rpc } });
}

export function stringParam(params: JsonObject, key: string, method: string): string {
  const value = params[key];
  if (typeof value === "string") return value;
  throw invalidParams(`${method} needs "${key}" as text.`);
}

export function objectParam(params: JsonObject, key: string, method: string): JsonObject | undefined {
  const value = params[key];
  if (value === undefined || isJsonObject(value)) return value;
  throw invalidParams(`"${key}" of ${method} must be an object.`);
}

/** Arguments of a prompt are texts. */
export function stringMapParam(params: JsonObject, key: string, method: string): Record<string, string> | undefined {
  const value = objectParam(params, key, method);
  if (value === undefined) return undefined;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== "string") throw invalidParams(`The argument "${name}" of ${method} must be text.`);
  }
  // Every member was just seen to be text.
  return value as Record<string, string>;
}

/** Lists are one page, so no cursor is valid. */
export function refuseCursor(params: JsonObject, method: string): void {
  if (params["cursor"] !== undefined) throw invalidParams(`${method} has no such cursor: the list is one page.`);
}

export function metaOf(params: JsonObject | undefined): JsonObject {
  const meta = params?.["_meta"];
  return meta !== undefined && isJsonObject(meta) ? meta : NO_META;
}

const NO_META: JsonObject = Object.freeze({});

/** The part of a request's `_meta` that goes upstream, without keys of this hop. */
export function forwardedMeta(meta: JsonObject): JsonObject | undefined {
  if (meta === NO_META) return undefined;
  const entries = Object.entries(meta).filter(([key]) => key !== "progressToken" && !HOP_META_KEYS.has(key));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

const HOP_META_KEYS: ReadonlySet<string> = new Set([
  VERSION_KEY,
  CLIENT_INFO_KEY,
  CLIENT_CAPABILITIES_KEY,
  LOG_LEVEL_KEY,
]);

export type ProgressToken = string | number;

export function progressTokenOf(meta: JsonObject): ProgressToken | undefined {
  const token = meta["progressToken"];
  return typeof token === "string" || typeof token === "number" ? token : undefined;
}

/** One message as it goes to the client: text, and bytes that were encoded before. Never a line break in it. */
export type Encoded = readonly (string | Buffer)[];

/** Where messages go to a client: those of one request before its answer, or those of a session. Never throws. */
export interface MessageSink {
  send(message: Encoded): void;
}

const errorCodes = new WeakMap<Encoded, number>();

/** The code of an error answer, for transports that say more by a status; undefined for a result. */
export function errorCodeOf(answer: Encoded): number | undefined {
  return errorCodes.get(answer);
}

/** An answer to one request as the answer to another. */
export function withRequestId(id: RequestId, answer: Encoded): Encoded {
  const [first = "", ...rest] = answer;
  const text = first.toString();
  // Answers begin alike up to the id, which is followed by the member that says what they are.
  const member = Math.min(...['"result":', '"error":'].map((name) => text.indexOf(name)).filter((at) => at !== -1));
  const made = [`${RESPONSE_START}${JSON.stringify(id)},${text.slice(member)}`, ...rest];
  const code = errorCodes.get(answer);
  if (code !== undefined) errorCodes.set(made, code);
  return made;
}

const RESPONSE_START = '{"jsonrpc":"2.0","id":';

export function encodeResult(id: RequestId, result: JsonObject): Encoded {
  return [`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${JSON.stringify(result)}}`];
}

/** An answer whose result is there as text already. */
export function encodeResultText(id: RequestId, ...parts: Encoded): Encoded {
  return [`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`, ...parts, "}"];
}

export function encodeError(id: RequestId | null, error: RpcError): Encoded {
  const answer = [`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${JSON.stringify(error)}}`];
  errorCodes.set(answer, error.code);
  return answer;
}

export function encodeNotification(method: string, params?: JsonObject): Encoded {
  return [JSON.stringify({ jsonrpc: "2.0", method, params })];
}

export function encodeRequest(id: RequestId, method: string, params?: JsonObject): Encoded {
  return [JSON.stringify({ jsonrpc: "2.0", id, method, params })];
}

export function encodeToolcribError(id: RequestId | null, error: ErrorObject): Encoded {
  return encodeError(id, toRpcError(error));
}

/**
 * A server's error is forwarded as it came. The hub's own errors get the table's code, and the error object as data. The hint is
 * in the message too, because most clients show nothing else.
 */
export function toRpcError(error: ErrorObject): RpcError {
  const rpc = error.details?.["rpc"];
  // `details.rpc` is only ever made from a JSON-RPC error; the guard may have changed its text.
  if (isJsonObject(rpc) && typeof rpc["code"] === "number") return rpc as RpcError;
  const { code, message, hint, details } = error;
  return {
    code: ERROR_TABLE[code].rpc,
    message: hint === undefined ? message : `${message} ${hint}`,
    data: { code, message, hint, details },
  };
}

/** The eras have different codes for a resource that is not there. */
export function errorInEra(era: Era, error: RpcError): RpcError {
  return era === "modern" && error.code === RESOURCE_NOT_FOUND ? { ...error, code: INVALID_PARAMS } : error;
}

/** The hub's error for a missing resource, in the form of the era. */
export function resourceNotFound(era: Era, uri: string, error: ErrorObject): RpcError {
  const { code: _ofTable, data, ...rest } = toRpcError(error);
  const code = era === "modern" ? INVALID_PARAMS : RESOURCE_NOT_FOUND;
  return { code, ...rest, message: rest.message, data: { uri, ...(isJsonObject(data) ? data : {}) } };
}

/**
 * The sink of one request. Clients made with the official SDK lose a notification that arrives in one piece with the
 * answer, so an answer that follows one waits for the next turn.
 */
export class TrackedSink implements MessageSink {
  readonly #sink: MessageSink;
  #used = false;

  constructor(sink: MessageSink) {
    this.#sink = sink;
  }

  send(message: Encoded): void {
    this.#used = true;
    this.#sink.send(message);
  }

  /** Undefined if nothing was sent. */
  settle(): Promise<void> | undefined {
    return this.#used ? nextTurn() : undefined;
  }
}
