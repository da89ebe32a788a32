/** The headers that mirror a message's body in the modern era, so that proxies can route without reading it. */
import { isJsonObject } from "../../model/json.ts";
import { VERSION_KEY } from "../../model/protocol.ts";
import type { RpcMessage } from "../../model/rpc.ts";
import { encodeHeaderValue } from "./header-values.ts";

/** The version that a modern message claims in its own `_meta`: how a server is asked before anything is agreed. */
export function claimedVersion(message: RpcMessage): string | undefined {
  if (!("method" in message)) return undefined;
  const meta = message.params?.["_meta"];
  const version = isJsonObject(meta) ? meta[VERSION_KEY] : undefined;
  return typeof version === "string" ? version : undefined;
}

export function modernHeaders(message: RpcMessage, version: string): Record<string, string> {
  if (!("method" in message)) return { "mcp-protocol-version": version };
  const name = nameOf(message.method, message.params ?? {});
  return {
    "mcp-protocol-version": version,
    "mcp-method": message.method,
    ...(typeof name === "string" ? { "mcp-name": encodeHeaderValue(name) } : {}),
  };
}

function nameOf(method: string, params: Readonly<Record<string, unknown>>): unknown {
  switch (method) {
    case "tools/call":
    case "prompts/get":
      return params["name"];
    case "resources/read":
      return params["uri"];
    default:
      return undefined;
  }
}
