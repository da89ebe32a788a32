/** What clients send as params, looked at only as far as routing needs it. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY, VERSION_KEY } from "../../model/protocol.ts";
import { INVALID_PARAMS, type RpcError } from "../../model/rpc.ts";
import { ToolcribError } from "../../model/errors.ts";

/** A request whose params do not fit; its answer has exactly this code. */
export function invalidParams(message: string): ToolcribError {
  const rpc: RpcError = { code: INVALID_PARAMS, message };
  return new ToolcribError("invalid_arguments", message, { details: { rpc } });
}

export function textParam(params: JsonObject, key: string, method: string): string {
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
export function textsParam(params: JsonObject, key: string, method: string): Record<string, string> | undefined {
  const value = objectParam(params, key, method);
  if (value === undefined) return undefined;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== "string") throw invalidParams(`The argument "${name}" of ${method} must be text.`);
  }
  // Every member was just seen to be text.
  return value as Record<string, string>;
}

/** Lists are given whole, so no cursor was ever handed out. */
export function refuseCursor(params: JsonObject, method: string): void {
  if (params["cursor"] !== undefined) throw invalidParams(`${method} knows no such cursor: the list has one page.`);
}

export function metaOf(params: JsonObject | undefined): JsonObject {
  const meta = params?.["_meta"];
  return isJsonObject(meta) ? meta : NO_META;
}

const NO_META: JsonObject = Object.freeze({});

/** What of a request's `_meta` goes upstream: not what concerns this hop only. */
export function foreignMeta(meta: JsonObject): JsonObject | undefined {
  if (meta === NO_META) return undefined;
  const entries = Object.entries(meta).filter(([key]) => key !== "progressToken" && !OF_THIS_HOP.has(key));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

const OF_THIS_HOP: ReadonlySet<string> = new Set([
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
