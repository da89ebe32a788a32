/** The HTTP+SSE transport of 2024-11-05: a GET stream, whose first event names the address to post to. */
import { localPeer } from "../../http/http-client-info.ts";
import type { Clock } from "../../../base/clock.ts";
import { type Caller, identityOf } from "../../../model/caller.ts";
import { asToolcribError } from "../../../model/errors.ts";
import { INVALID_REQUEST, type RpcRequest } from "../../../model/protocol.ts";
import { type HttpExchange, type HttpResponse, onceClosed } from "../../http/http-exchange.ts";
import { type OpenStreams, type PendingReply, SseConnection } from "../../http/open-streams.ts";
import { batchError, type Encoded, type MessageSink, type ParsedMessages } from "../rpc-messages.ts";
import { httpPeer, type ViewScope } from "../view-scope.ts";
import { acceptsOf, refuseRpc, refuseWithError, respondEmpty } from "./http-messages.ts";
import {
  admitOrRefuseRequests,
  answerOrError,
  type EngineSession,
  type OpenSession,
  refuseUnknownSession,
  type Transport,
} from "./transport.ts";

export function openSse(transport: Transport, exchange: HttpExchange, scope: ViewScope, messagesPath: string): void {
  const { request, response, caller } = exchange;
  const { clock, streams, door, sessions, ids } = transport;
  if (transport.isClosing) return transport.refuseClosing(response, null);
  if (!caller.scopes.has("read")) return exchange.refuseScope("read");
  if (acceptsOf(request.headers.accept)?.stream !== true) {
    return refuseRpc(response, 406, null, { code: INVALID_REQUEST, message: "Accept must allow text/event-stream." });
  }
  const full = streams.reachedFor(caller);
  if (full !== undefined) return transport.refuseFull(response, null, "streams", full);
  const make = (id: string): SseSession =>
    new SseSession({
      ...{ id, caller, clock, streams, response },
      open: (sink) =>
        door.openSession(
          { caller, scope, peer: httpPeer("sse", exchange.query), locate: () => localPeer(request.socket) },
          sink,
        ),
      endpoint: endpointFor(request.url ?? "/", messagesPath, id),
    });
  try {
    const opened = sessions.open(caller, make, ids?.issue("sse"));
    if ("reached" in opened) return transport.refuseFull(response, null, "sessions", opened.reached);
    onceClosed(response, () => sessions.end(opened.session));
  } catch (error) {
    refuseWithError(response, null, asToolcribError(error).toObject());
  }
}

export function postToSse(transport: Transport, exchange: HttpExchange, posted: ParsedMessages): void {
  const { response, caller, query } = exchange;
  const session = transport.sessions.find(query.get("sessionId") ?? "", caller);
  if (!(session instanceof SseSession)) return refuseUnknownSession(exchange, null);
  const reason = posted.isBatch ? batchError(posted.batch, session.legacy.version) : undefined;
  if (reason !== undefined) return refuseRpc(response, 400, null, { code: INVALID_REQUEST, message: reason });
  const messages = posted.isBatch ? posted.batch : [posted.message];
  const requests = messages.flatMap((one) => (one.kind === "request" ? [one.message] : []));
  if (!admitOrRefuseRequests({ transport, exchange }, requests, { ofSession: true })) return;
  respondEmpty(response, 202);
  for (const one of messages) {
    if (one.kind === "notification") session.legacy.notify(one.message);
    if (one.kind === "response") session.legacy.answer(one.message);
    if (one.kind === "request") answerOnStream(session, one.message);
  }
}

function answerOnStream(session: SseSession, request: RpcRequest): void {
  void session.answer((sink) => answerOrError(request.id, () => session.legacy.request(request, sink)));
}

/** Relative to the address as it was asked for, so that it is right behind a proxy that puts a prefix before our paths. */
function endpointFor(url: string, messagesPath: string, id: string): string {
  const [path = "/"] = url.split("?", 1);
  const folders = path.slice(1).split("/").length - 1;
  return `${"../".repeat(folders)}${messagesPath.slice(1)}?sessionId=${id}`;
}

interface SseSessionOptions {
  readonly id: string;
  /** No one else finds the session. */
  readonly caller: Caller;
  readonly clock: Clock;
  readonly streams: OpenStreams;
  readonly response: HttpResponse;
  /** Opens the engine's session; may throw. */
  readonly open: (sink: MessageSink) => EngineSession;
  /** Where to post to, as the client is to resolve it against the address of the stream. */
  readonly endpoint: string;
}

/** A client of the HTTP+SSE transport: its session is one stream that carries everything. */
class SseSession implements OpenSession, MessageSink {
  readonly id: string;
  readonly caller: Caller;
  readonly key: string;
  readonly legacy: EngineSession;
  /** The stream is open as long as the session is. */
  readonly isBusy = true;
  usedAt: number;
  readonly #connection: SseConnection;
  readonly #streams: OpenStreams;

  constructor({ id, caller, clock, streams, response, open, endpoint }: SseSessionOptions) {
    this.id = id;
    this.caller = caller;
    this.key = identityOf(caller);
    this.usedAt = clock.now();
    this.#streams = streams;
    // First: before anything is written, it can still be refused.
    this.legacy = open(this);
    this.#connection = new SseConnection(response);
    streams.add(this.#connection, caller);
    this.#connection.event({ event: "endpoint" }, [endpoint]);
  }

  get isOver(): boolean {
    return this.legacy.isOver === true;
  }

  send(message: Encoded): void {
    this.#connection.send(message);
  }

  /** The answer goes onto the stream, whenever it comes. */
  async answer(ask: (sink: MessageSink) => Promise<Encoded | null>): Promise<void> {
    const owed: PendingReply = { stillPending: () => {} };
    this.#streams.owe(owed);
    const answer = await ask(this);
    if (answer !== null) this.send(answer);
    this.#streams.settle(owed);
  }

  sweep(): void {}

  close(): void {
    this.legacy.close();
    this.#connection.end();
  }
}
