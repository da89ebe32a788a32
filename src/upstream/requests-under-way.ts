/** What a server says names no call, or names it loosely: these find the request of ours that is meant. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { SUBSCRIPTION_KEY } from "../model/protocol.ts";
import type { RequestId } from "../model/rpc.ts";
import type { ClientSide } from "../model/session.ts";
import type { RequestOptions } from "./request-options.ts";

/** In the order in which they were sent. */
export type UnderWay = Pick<
  ReadonlyMap<RequestId, { readonly options: RequestOptions }>,
  "get" | "has" | "keys" | "values"
>;

/** Some servers send a numeric id back as a string. */
export function ownId(underWay: UnderWay, id: unknown): RequestId | undefined {
  if (typeof id === "number") return id;
  if (typeof id !== "string") return undefined;
  return !underWay.has(id) && underWay.has(Number(id)) ? Number(id) : id;
}

/** The distinct clients that have a request under way; the newest request of each one counts. */
export function callersOf(underWay: UnderWay): ClientSide[] {
  const clients = new Map<unknown, ClientSide>();
  for (const { options } of underWay.values()) {
    const { client } = options;
    if (client === undefined) continue;
    // The newest that can take a question; if none can, the newest.
    const before = clients.get(client.key);
    if (client.waiting !== true || before === undefined || before.waiting === true) clients.set(client.key, client);
  }
  return [...clients.values()];
}

/** All that a client has under way, where only one client has any: one of them is why the server asks. */
export function callsOfOneClient(underWay: UnderWay): RequestId[] {
  const calls: RequestId[] = [];
  let key: unknown;
  for (const id of underWay.keys()) {
    const { client, background } = underWay.get(id)?.options ?? {};
    if (client === undefined || background === true) continue;
    if (calls.length > 0 && client.key !== key) return [];
    key = client.key;
    calls.push(id);
  }
  return calls;
}

/**
 * The request that a notification belongs to, which came on no request's own stream: by what it says, or because it can
 * be no other client's.
 */
export function requestOfNotice(
  underWay: UnderWay,
  { method, params, modern }: { readonly method: string; readonly params: JsonObject; readonly modern: boolean },
): RequestOptions | undefined {
  const meta = params["_meta"];
  const subscription = modern && isJsonObject(meta) ? meta[SUBSCRIPTION_KEY] : undefined;
  if (typeof subscription === "number" || typeof subscription === "string") {
    const id = ownId(underWay, subscription);
    return id === undefined ? undefined : underWay.get(id)?.options;
  }
  return method === "notifications/message" ? newestOfOneClient(underWay) : undefined;
}

/**
 * Log messages are about what a server is doing, so while it works for one client they are for that client. Between
 * several there is no telling. Requests of our own say nothing of interest.
 */
function newestOfOneClient(underWay: UnderWay): RequestOptions | undefined {
  let newest: RequestOptions | undefined;
  for (const { options } of underWay.values()) {
    if (options.background === true || options.client === undefined) continue;
    if (newest !== undefined && newest.client?.key !== options.client.key) return undefined;
    // Of one client's requests, one that takes notices.
    if (newest === undefined || options.onNotice !== undefined) newest = options;
  }
  return newest;
}

/** The id of a subscription is ours, and means nothing to those whom the notification is passed on to. */
export function withoutSubscription(params: JsonObject): JsonObject {
  const { _meta: meta, ...rest } = params;
  if (!isJsonObject(meta) || meta[SUBSCRIPTION_KEY] === undefined) return params;
  const { [SUBSCRIPTION_KEY]: _ours, ...others } = meta;
  return Object.keys(others).length === 0 ? rest : { ...rest, _meta: others };
}
