/** Text from a server to JSON-RPC messages, as they came: nothing is dropped, renamed or filled in. */
import { isJsonObject } from "../model/json.ts";
import type { RequestId, RpcMessage } from "../model/rpc.ts";

/**
 * The messages in one line, body or event; null if it holds anything else. An array is a batch, which 2025-03-26 had.
 * Only what routing needs is checked, so that sloppy servers work and unknown fields stay.
 */
export function decodeMessages(text: string): RpcMessage[] | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(value)) return isMessage(value) ? [value] : null;
  return value.length > 0 && value.every(isMessage) ? value : null;
}

function isMessage(value: unknown): value is RpcMessage {
  if (!isJsonObject(value)) return false;
  if (typeof value["method"] === "string") return true;
  return "id" in value && ("result" in value || isJsonObject(value["error"]));
}

export function isRequest(message: RpcMessage): message is Extract<RpcMessage, { id: RequestId; method: string }> {
  return "method" in message && "id" in message;
}

export function isResponse(message: RpcMessage): message is Extract<RpcMessage, { id: RequestId | null }> {
  return !("method" in message);
}
