import { MODERN_VERSION } from "../../../model/protocol.ts";
import type { RpcNotification, RpcRequest } from "../../../model/rpc.ts";
import { claimsModern } from "../envelope.ts";

/** `initialize` opens a legacy session whatever the header says, unless the message itself claims the modern era. */
export function isModern(message: RpcRequest | RpcNotification, versionHeader: string | undefined): boolean {
  return claimsModern(message) || (versionHeader === MODERN_VERSION && message.method !== "initialize");
}
