/** What each request of the modern era carries about its client, checked before anybody looks at what it wants. */
import { isJsonObject } from "../../model/json.ts";
import { CLIENT_CAPABILITIES_KEY, MODERN_VERSION, VERSION_KEY } from "../../model/protocol.ts";
import {
  INVALID_PARAMS,
  type RpcError,
  type RpcNotification,
  type RpcRequest,
  UNSUPPORTED_VERSION,
} from "../../model/rpc.ts";
import { metaOf } from "./params.ts";
import { SUPPORTED_VERSIONS } from "./welcome.ts";

/** A modern message says so in its `_meta`; `server/discover` exists in that era only. */
export function claimsModern({ method, params }: RpcRequest | RpcNotification): boolean {
  return method === "server/discover" || VERSION_KEY in metaOf(params);
}

/**
 * What is wrong with the envelope; undefined if nothing is.
 * @param objection What else speaks against the version that the request names; comes before whether we have it.
 */
export function envelopeError(
  { params }: RpcRequest,
  objection?: (version: string) => RpcError | undefined,
): RpcError | undefined {
  const meta = metaOf(params);
  const version = meta[VERSION_KEY];
  if (typeof version !== "string") return missing(VERSION_KEY);
  const objected = objection?.(version);
  if (objected !== undefined) return objected;
  if (version !== MODERN_VERSION) return unsupportedVersion(version);
  return isJsonObject(meta[CLIENT_CAPABILITIES_KEY]) ? undefined : missing(CLIENT_CAPABILITIES_KEY);
}

export function unsupportedVersion(requested: string): RpcError {
  const data = { supported: SUPPORTED_VERSIONS, requested };
  return { code: UNSUPPORTED_VERSION, message: "Unsupported protocol version", data };
}

function missing(key: string): RpcError {
  return { code: INVALID_PARAMS, message: `Invalid params: _meta["${key}"] is missing or of the wrong type.` };
}
