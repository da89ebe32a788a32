/** Messages to clients as text, and how the hub's errors read in JSON-RPC. */
import { ERROR_TABLE, type ErrorObject } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Era } from "../../model/protocol.ts";
import { INVALID_PARAMS, RESOURCE_NOT_FOUND, type RequestId, type RpcError } from "../../model/rpc.ts";
import type { Encoded } from "./encoded.ts";

const errorCodes = new WeakMap<Encoded, number>();

/** The code of an error answer, for transports that say more by a status; undefined for a result. */
export function errorCodeOf(answer: Encoded): number | undefined {
  return errorCodes.get(answer);
}

/** An answer to one request as the answer to another. */
export function readdressed(id: RequestId, answer: Encoded): Encoded {
  const [first = "", ...rest] = answer;
  const text = first.toString();
  // Answers begin alike up to the id, which is followed by the member that says what they are.
  const member = Math.min(...['"result":', '"error":'].map((name) => text.indexOf(name)).filter((at) => at !== -1));
  const made = [`${START}${JSON.stringify(id)},${text.slice(member)}`, ...rest];
  const code = errorCodes.get(answer);
  if (code !== undefined) errorCodes.set(made, code);
  return made;
}

const START = '{"jsonrpc":"2.0","id":';

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
  return encodeError(id, rpcErrorOf(error));
}

/**
 * What a server answered goes on as it came. Errors of the hub itself get the table's code, and the error object as data.
 * The hint stands in the message too, because most clients show nothing else.
 */
export function rpcErrorOf(error: ErrorObject): RpcError {
  const rpc = error.details?.["rpc"];
  // `details.rpc` is only ever made from a JSON-RPC error; the guard may have changed its words.
  if (isJsonObject(rpc) && typeof rpc["code"] === "number") return rpc as RpcError;
  const { code, message, hint, details } = error;
  return {
    code: ERROR_TABLE[code].rpc,
    message: hint === undefined ? message : `${message} ${hint}`,
    data: { code, message, hint, details },
  };
}

/** The eras have different codes for a resource that is not there. */
export function inEra(era: Era, error: RpcError): RpcError {
  return era === "modern" && error.code === RESOURCE_NOT_FOUND ? { ...error, code: INVALID_PARAMS } : error;
}

/** The hub's own word that there is no such resource, as each era words it. */
export function resourceNotFound(era: Era, uri: string, error: ErrorObject): RpcError {
  const { code: _ofTable, data, ...rest } = rpcErrorOf(error);
  const code = era === "modern" ? INVALID_PARAMS : RESOURCE_NOT_FOUND;
  return { code, ...rest, message: rest.message, data: { uri, ...(isJsonObject(data) ? data : {}) } };
}
