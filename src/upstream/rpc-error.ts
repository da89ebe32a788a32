/** Between JSON-RPC errors on the wire and ToolcribErrors inside; the original is always kept in `details.rpc`. */
import { asToolcribError, ERROR_TABLE, type ErrorCode, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  type RpcError,
  UNSUPPORTED_VERSION,
} from "../model/protocol.ts";

/** The codes that only a server of the modern era sends. */
export function isModernErrorCode(code: number): boolean {
  return code <= HEADER_MISMATCH && code >= UNSUPPORTED_VERSION;
}

/** A server's error response as a ToolcribError. */
export function errorFromRpc(rpc: RpcError, details: JsonObject = {}): ToolcribError {
  const message = typeof rpc.message === "string" && rpc.message !== "" ? rpc.message : "The server gave no message.";
  return new ToolcribError(codeFromRpc(rpc.code), message, { details: { ...details, rpc } });
}

function codeFromRpc(code: unknown): ErrorCode {
  if (code === INVALID_PARAMS) return "invalid_arguments";
  if (code === METHOD_NOT_FOUND) return "not_found";
  return "tool_error";
}

/** The JSON-RPC error that an error came from, if it came from one. */
export function rpcOf(error: unknown): RpcError | undefined {
  if (!(error instanceof ToolcribError)) return undefined;
  const rpc = error.details?.["rpc"];
  // `details.rpc` is only ever set from an RpcError; the check guards against an error body of another shape.
  return isJsonObject(rpc) && typeof rpc["code"] === "number" ? (rpc as RpcError) : undefined;
}

/** An error that answers a server's request with exactly this code. */
export function rpcRefusal(rpcCode: number, message: string, hint?: string): ToolcribError {
  return new ToolcribError("denied", message, { hint, details: { rpc: { code: rpcCode, message } } });
}

/** The error answer to a server's request that our side could not serve. */
export function rpcFromError(thrown: unknown): RpcError {
  const known = rpcOf(thrown);
  if (known !== undefined) return known;
  const error = asToolcribError(thrown);
  return { code: ERROR_TABLE[error.code].rpc, message: error.message };
}
