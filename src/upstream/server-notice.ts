/** What a server's notification says, for those that a Connection acts upon. */
import type { JsonObject } from "../model/json.ts";
import type { LogMessage } from "../model/protocol.ts";
import { LIST_KINDS, type ListKind } from "./discovery.ts";

export type Notice =
  | { readonly kind: "list-changed"; readonly list: ListKind }
  | { readonly kind: "log"; readonly message: LogMessage }
  | { readonly kind: "resource-updated"; readonly uri: string }
  | { readonly kind: "stream-acknowledged" }
  | { readonly kind: "unknown" };

export function readNotice(method: string, params: JsonObject): Notice {
  const list = LIST_KINDS.find((kind) => method === `notifications/${kind}/list_changed`);
  if (list !== undefined) return { kind: "list-changed", list };
  if (method === "notifications/message" && typeof params["level"] === "string") {
    // `level` is what a log message must have; the rest passes as it came.
    return { kind: "log", message: params as LogMessage };
  }
  if (method === "notifications/resources/updated" && typeof params["uri"] === "string") {
    return { kind: "resource-updated", uri: params["uri"] };
  }
  return { kind: method === "notifications/subscriptions/acknowledged" ? "stream-acknowledged" : "unknown" };
}
