/** What a client sends, told apart by what it is. */
import { isJsonObject } from "../../model/json.ts";
import type { RequestId, RpcNotification, RpcRequest, RpcResponse } from "../../model/rpc.ts";

export type ClientMessage =
  | { readonly kind: "request"; readonly message: RpcRequest }
  | { readonly kind: "notification"; readonly message: RpcNotification }
  | { readonly kind: "response"; readonly message: RpcResponse }
  | { readonly kind: "invalid"; readonly id: RequestId | null };

/** One JSON value as it was parsed: a message, or what one version of the protocol has as a batch. */
export type Received =
  | { readonly isBatch: false; readonly message: ClientMessage }
  | { readonly isBatch: true; readonly batch: readonly ClientMessage[] };

export function received(value: unknown): Received {
  return Array.isArray(value)
    ? { isBatch: true, batch: value.map(classify) }
    : { isBatch: false, message: classify(value) };
}

function classify(value: unknown): ClientMessage {
  if (!isJsonObject(value) || value["jsonrpc"] !== "2.0") return invalid(value);
  const { id, method, params } = value;
  if (method === undefined) {
    const isAnswer = isJsonObject(value["result"]) ? isRequestId(id) : isError(value["error"]);
    // The fields that are read were looked at just now.
    return isAnswer ? { kind: "response", message: value as RpcResponse } : invalid(value);
  }
  if (typeof method !== "string" || (params !== undefined && !isJsonObject(params))) return invalid(value);
  // As above, for both.
  if (id === undefined) return { kind: "notification", message: value as unknown as RpcNotification };
  return isRequestId(id) ? { kind: "request", message: value as unknown as RpcRequest } : invalid(value);
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
  if (batch.length > MAX_BATCH) return `A batch holds at most ${MAX_BATCH} messages.`;
  if (batch.some(({ kind }) => kind === "invalid")) return "The batch holds something that is no JSON-RPC 2.0 message.";
  const initializes = batch.some((one) => one.kind === "request" && one.message.method === "initialize");
  return initializes ? "initialize must not be part of a batch." : undefined;
}

function isRequestId(id: unknown): id is RequestId {
  return typeof id === "string" || (typeof id === "number" && Number.isFinite(id));
}

function isError(error: unknown): boolean {
  return isJsonObject(error) && typeof error["code"] === "number" && typeof error["message"] === "string";
}

function invalid(value: unknown): ClientMessage {
  const id = isJsonObject(value) ? value["id"] : undefined;
  return { kind: "invalid", id: isRequestId(id) ? id : null };
}
