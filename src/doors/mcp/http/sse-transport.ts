/** The HTTP+SSE transport of 2024-11-05: a stream by GET, and an address to post to that the stream tells. */
import { identityOf } from "../../../model/caller.ts";
import { asToolcribError } from "../../../model/errors.ts";
import { INVALID_REQUEST, type RpcRequest } from "../../../model/rpc.ts";
import { batchError, type Received } from "../messages.ts";
import type { ViewScope } from "../origin.ts";
import { acceptsOf } from "./accepts.ts";
import { answerOf } from "./answer-of.ts";
import { answerNothing, type McpExchange, refuse, refuseToolcrib } from "./exchange.ts";
import { refuseNoSession } from "./find-session.ts";
import { mayAsk } from "./may-ask.ts";
import { SseSession } from "./sse-session.ts";
import type { Transport } from "./transport.ts";
import { whenClosed } from "./when-closed.ts";

export function openSse(transport: Transport, exchange: McpExchange, scope: ViewScope, messagesPath: string): void {
  const { request, response, caller } = exchange;
  const { clock, streams, door, sessions, ids } = transport;
  if (transport.isClosing) return transport.refuseClosing(response, null);
  if (!caller.scopes.has("read")) return exchange.refuseScope("read");
  if (acceptsOf(request.headers.accept)?.stream !== true) {
    return refuse(response, 406, null, { code: INVALID_REQUEST, message: "Accept must allow text/event-stream." });
  }
  const full = streams.reachedFor(caller);
  if (full !== undefined) return transport.refuseFull(response, null, "streams", full);
  const make = (id: string): SseSession =>
    new SseSession({
      ...{ id, caller, clock, streams, response },
      open: (outlet) => door.openSession({ caller, scope }, outlet),
      endpoint: endpointFor(request.url ?? "/", messagesPath, id),
    });
  try {
    const opened = sessions.open(caller, make, ids?.issue("sse"));
    if ("reached" in opened) return transport.refuseFull(response, null, "sessions", opened.reached);
    whenClosed(response, () => sessions.end(opened.session));
  } catch (error) {
    refuseToolcrib(response, null, asToolcribError(error).toObject());
  }
}

export function postToSse(transport: Transport, exchange: McpExchange, posted: Received): void {
  const { response, caller, query } = exchange;
  const session = transport.sessions.find(query.get("sessionId") ?? "", identityOf(caller));
  if (!(session instanceof SseSession)) return refuseNoSession(exchange, null);
  const reason = posted.isBatch ? batchError(posted.batch, session.legacy.version) : undefined;
  if (reason !== undefined) return refuse(response, 400, null, { code: INVALID_REQUEST, message: reason });
  const messages = posted.isBatch ? posted.batch : [posted.message];
  const requests = messages.flatMap((one) => (one.kind === "request" ? [one.message] : []));
  if (!mayAsk(transport, exchange, requests, { ofSession: true })) return;
  answerNothing(response, 202);
  for (const one of messages) {
    if (one.kind === "notification") session.legacy.notify(one.message);
    if (one.kind === "response") session.legacy.answer(one.message);
    if (one.kind === "request") answer(session, one.message);
  }
}

function answer(session: SseSession, request: RpcRequest): void {
  void session.answer((outlet) => answerOf(request.id, () => session.legacy.request(request, outlet)));
}

/** Relative to the address as it was asked for, so that it is right behind a proxy that puts a prefix before our paths. */
function endpointFor(url: string, messagesPath: string, id: string): string {
  const [path = "/"] = url.split("?", 1);
  const folders = path.slice(1).split("/").length - 1;
  return `${"../".repeat(folders)}${messagesPath.slice(1)}?sessionId=${id}`;
}
