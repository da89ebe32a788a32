/** JSON-RPC 2.0 messages as MCP uses them. */
import type { JsonObject } from "./json.ts";

export type RequestId = string | number;

export interface RpcError extends JsonObject {
  code: number;
  message: string;
  data?: unknown;
}

export interface RpcRequest {
  jsonrpc: "2.0";
  id: RequestId;
  method: string;
  params?: JsonObject;
}

export interface RpcNotification {
  jsonrpc: "2.0";
  method: string;
  params?: JsonObject;
}

export type RpcResponse =
  | { jsonrpc: "2.0"; id: RequestId; result: JsonObject }
  | { jsonrpc: "2.0"; id: RequestId | null; error: RpcError };

export type RpcMessage = RpcRequest | RpcNotification | RpcResponse;

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
/** Legacy only: the modern era says INVALID_PARAMS. */
export const RESOURCE_NOT_FOUND = -32002;
export const HEADER_MISMATCH = -32020;
export const MISSING_CAPABILITY = -32021;
export const UNSUPPORTED_VERSION = -32022;
