/** Checks before a request of MCP over HTTP is answered: its session, its scope, and the node that has to answer it. */
import type { IdKind, RoutableIds } from "../../../hub/cluster/routable-ids.ts";
import { identityOf, type Scope } from "../../../model/caller.ts";
import { asToolcribError } from "../../../model/errors.ts";
import {
  INVALID_REQUEST,
  LEGACY_VERSIONS,
  MODERN_VERSION,
  type RequestId,
  type RpcNotification,
  type RpcRequest,
} from "../../../model/protocol.ts";
import type { HttpExchange } from "../../http/http-exchange.ts";
import { claimsModern, unsupportedVersion } from "../mcp-handshake.ts";
import { type Encoded, encodeToolcribError } from "../rpc-messages.ts";
import { scopeKey, type ViewScope } from "../view-scope.ts";
import { headerOf, refuseRpc, refuseWithError } from "./http-messages.ts";
import type { McpPost, Transport } from "./session-table.ts";
import { StreamableSession } from "./streamable-session.ts";

export const SESSION_HEADER = "mcp-session-id";
export const VERSION_HEADER = "mcp-protocol-version";

const LEGACY: ReadonlySet<string> = new Set(LEGACY_VERSIONS);

/** The session that the exchange belongs to. If there is none, that is answered. */
export function findSessionOrRefuse(
  transport: Transport,
  exchange: HttpExchange,
  scope: ViewScope,
  id: RequestId | null,
): StreamableSession | undefined {
  const { request, response, caller } = exchange;
  const version = headerOf(request.headers[VERSION_HEADER]);
  if (version !== undefined && !LEGACY.has(version)) {
    refuseRpc(response, 400, id, unsupportedVersion(version));
    return undefined;
  }
  const sessionId = headerOf(request.headers[SESSION_HEADER]);
  if (sessionId === undefined) {
    const message = "The header Mcp-Session-Id is missing. Start with initialize, and send the id of its response.";
    refuseRpc(response, 400, id, { code: INVALID_REQUEST, message });
    return undefined;
  }
  const session = transport.sessions.find(sessionId, identityOf(caller));
  // Another scope needs another session, which clients open after a 404.
  if (session instanceof StreamableSession && scopeKey(session.scope) === scopeKey(scope)) return session;
  refuseUnknownSession(exchange, id);
  return undefined;
}

export function refuseUnknownSession({ response }: HttpExchange, id: RequestId | null): void {
  const hint = "It may have ended: start a new one with initialize.";
  refuseWithError(response, id, { code: "not_found", message: "No such session.", hint });
}

/**
 * Whether new requests are accepted, and these from this caller. If not, that is answered. A session of a node that shuts down
 * counts as ended: the client opens a new one at another node.
 */
export function admitOrRefuseRequests(
  { transport, exchange }: Pick<McpPost, "transport" | "exchange">,
  requests: readonly RpcRequest[],
  { ofSession = false }: { readonly ofSession?: boolean } = {},
): boolean {
  if (requests.length > 0 && transport.isClosing) {
    const id = requests[0]?.id ?? null;
    if (ofSession && transport.ids !== undefined) refuseUnknownSession(exchange, id);
    else transport.refuseClosing(exchange.response, id);
    return false;
  }
  for (const { method } of requests) {
    const scope = requiredScope(method);
    if (exchange.caller.scopes.has(scope)) continue;
    exchange.refuseScope(scope);
    return false;
  }
  return true;
}

/** The scope that a request of this method needs. */
function requiredScope(method: string): Scope {
  return method === "tools/call" ? "call" : "read";
}

/**
 * True if it was answered: by the node that has it, or because that node cannot be reached. False if no live node has it: it is
 * then looked up here, and not found.
 */
export async function forwardToOwner(
  ids: RoutableIds | undefined,
  exchange: HttpExchange,
  kind: IdKind,
  id: string | null | undefined,
  request: RequestId | null,
): Promise<boolean> {
  if (ids === undefined || id === null || id === undefined || exchange.forwardTo === undefined) return false;
  const place = await ids.find(kind, id);
  if (place === undefined || !("node" in place)) return false;
  switch (await exchange.forwardTo(place.node)) {
    case "answered":
      return true;
    case "gone":
      return false;
    case "away":
      // Not 404, after which clients drop a session that may be alive.
      refuseWithError(exchange.response, request, {
        code: "server_unavailable",
        message: "The node that has this session cannot be reached at the moment.",
        hint: "Try again soon.",
      });
      return true;
  }
}

/** The door answers every request; an error that it throws is a bug and is answered as one. */
export async function answerOrError(id: RequestId, ask: () => Promise<Encoded | null>): Promise<Encoded | null> {
  try {
    return await ask();
  } catch (error) {
    return encodeToolcribError(id, asToolcribError(error).toObject());
  }
}

/** `initialize` opens a legacy session whatever the header says, unless the message itself claims the modern era. */
export function isModern(message: RpcRequest | RpcNotification, versionHeader: string | undefined): boolean {
  return claimsModern(message) || (versionHeader === MODERN_VERSION && message.method !== "initialize");
}
