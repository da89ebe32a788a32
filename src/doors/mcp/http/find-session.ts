/** The session of an exchange at `/mcp`, by its headers. */
import { identityOf } from "../../../model/caller.ts";
import { LEGACY_VERSIONS } from "../../../model/protocol.ts";
import { INVALID_REQUEST, type RequestId } from "../../../model/rpc.ts";
import { unsupportedVersion } from "../envelope.ts";
import { scopeKey, type ViewScope } from "../origin.ts";
import { type McpExchange, refuse, refuseToolcrib } from "./exchange.ts";
import { headerOf } from "./header-value.ts";
import { HttpSession } from "./http-session.ts";
import type { Transport } from "./transport.ts";

export const SESSION_HEADER = "mcp-session-id";
export const VERSION_HEADER = "mcp-protocol-version";

const LEGACY: ReadonlySet<string> = new Set(LEGACY_VERSIONS);

/** The session that the exchange belongs to. If there is none, that is answered. */
export function sessionFor(
  transport: Transport,
  exchange: McpExchange,
  scope: ViewScope,
  id: RequestId | null,
): HttpSession | undefined {
  const { request, response, caller } = exchange;
  const version = headerOf(request.headers[VERSION_HEADER]);
  if (version !== undefined && !LEGACY.has(version)) {
    refuse(response, 400, id, unsupportedVersion(version));
    return undefined;
  }
  const sessionId = headerOf(request.headers[SESSION_HEADER]);
  if (sessionId === undefined) {
    const message =
      "The header Mcp-Session-Id is missing. Begin with initialize, and send the id that it answers with.";
    refuse(response, 400, id, { code: INVALID_REQUEST, message });
    return undefined;
  }
  const session = transport.sessions.find(sessionId, identityOf(caller));
  // Whoever asks for another part of the catalog is to open another session, which is what clients do after a 404.
  if (session instanceof HttpSession && scopeKey(session.scope) === scopeKey(scope)) return session;
  refuseNoSession(exchange, id);
  return undefined;
}

export function refuseNoSession({ response }: McpExchange, id: RequestId | null): void {
  const hint = "It may have ended: begin a new one with initialize.";
  refuseToolcrib(response, id, { code: "not_found", message: "No such session.", hint });
}
