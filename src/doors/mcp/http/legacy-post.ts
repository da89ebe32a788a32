/** POST requests of legacy clients: they open a session or belong to one. */
import { type HttpExchange, onceClosed } from "../../http/http-exchange.ts";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Caller } from "../../../model/caller.ts";
import { asToolcribError } from "../../../model/errors.ts";
import { INVALID_REQUEST, type RequestId, type RpcRequest } from "../../../model/protocol.ts";
import type { QuotaReached } from "../../../policy/quota.ts";
import { batchError, type ClientMessage, type Encoded, errorCodeOf, type MessageSink } from "../rpc-messages.ts";
import type { ViewScope } from "../view-scope.ts";
import { type Accepts, headerOf, refuseRpc, refuseWithError, respondEmpty, respondJson } from "./http-messages.ts";
import { MAX_SILENT_TICKS, type OpenStreams, type PendingReply, SseConnection } from "./open-streams.ts";
import {
  admitOrRefuseRequests,
  answerOrError,
  findSessionOrRefuse,
  forwardToOwner,
  SESSION_HEADER,
} from "./request-checks.ts";
import type { Transport } from "./session-table.ts";
import { type SessionStream, StreamableSession } from "./streamable-session.ts";

export async function postLegacy(
  transport: Transport,
  exchange: HttpExchange,
  accepts: Accepts,
  scope: ViewScope,
  posted: Exclude<ClientMessage, { kind: "invalid" }>,
): Promise<void> {
  const { request, response } = exchange;
  if (posted.kind === "request" && posted.message.method === "initialize" && !(SESSION_HEADER in request.headers)) {
    return postInitialize(transport, exchange, accepts, scope, posted.message);
  }
  const id = posted.kind === "request" ? posted.message.id : null;
  if (transport.ids !== undefined && (await forwardToSessionOwner(transport, exchange, id))) return;
  const session = findSessionOrRefuse(transport, exchange, scope, id);
  if (session === undefined) return;
  if (posted.kind === "request") {
    if (!admitOrRefuseRequests(transport, exchange, [posted.message], { ofSession: true })) return;
    const { message } = posted;
    const { streams } = transport;
    const reply = new LegacyReply({ response, session, accepts, streams, ids: [message.id], isBatch: false });
    const answer = await answerOrError(message.id, () => session.legacy.request(message, reply));
    reply.finish(answer === null ? [] : [answer]);
    return;
  }
  if (posted.kind === "notification") session.legacy.notify(posted.message);
  else session.legacy.answer(posted.message);
  respondEmpty(response, 202);
}

async function postInitialize(
  transport: Transport,
  exchange: HttpExchange,
  accepts: Accepts,
  scope: ViewScope,
  message: RpcRequest,
): Promise<void> {
  const { response, caller } = exchange;
  if (!admitOrRefuseRequests(transport, exchange, [message])) return;
  let opened: ReturnType<typeof openStreamableSession>;
  try {
    opened = openStreamableSession(transport, caller, scope);
  } catch (error) {
    refuseWithError(response, message.id, asToolcribError(error).toObject());
    return;
  }
  if ("reached" in opened) {
    transport.refuseFull(response, message.id, "sessions", opened.reached);
    return;
  }
  const { session } = opened;
  const { legacy } = session;
  const { streams } = transport;
  const reply = new LegacyReply({ response, session, accepts, streams, ids: [message.id], isBatch: false });
  reply.headers = { "Mcp-Session-Id": session.id };
  const answer = await answerOrError(message.id, () => legacy.request(message, reply));
  const isOpen = answer !== null && errorCodeOf(answer) === undefined && !response.destroyed;
  if (!isOpen) reply.headers = undefined;
  reply.finish(answer === null ? [] : [answer]);
  if (!isOpen) transport.sessions.end(session);
}

function openStreamableSession(
  transport: Transport,
  caller: Caller,
  scope: ViewScope,
): { readonly session: StreamableSession } | { readonly reached: QuotaReached } {
  const { sessions, clock, resumeGraceMs, door, ids } = transport;
  return sessions.open(
    caller,
    (id) =>
      new StreamableSession({
        id,
        caller,
        scope,
        clock,
        graceMs: resumeGraceMs,
        open: (stream) => door.openSession({ caller, scope }, stream),
      }),
    ids?.issue("mcp"),
  );
}

async function forwardToSessionOwner(
  { ids }: Transport,
  exchange: HttpExchange,
  id: RequestId | null,
): Promise<boolean> {
  return forwardToOwner(ids, exchange, "mcp", headerOf(exchange.request.headers[SESSION_HEADER]), id);
}

/** @param batch The entries of the array, classified. */
export async function postBatch(
  transport: Transport,
  exchange: HttpExchange,
  accepts: Accepts,
  scope: ViewScope,
  batch: readonly ClientMessage[],
): Promise<void> {
  const { response } = exchange;
  if (transport.ids !== undefined && (await forwardToSessionOwner(transport, exchange, null))) return;
  const session = findSessionOrRefuse(transport, exchange, scope, null);
  if (session === undefined) return;
  const reason = batchError(batch, session.legacy.version);
  if (reason !== undefined) {
    refuseRpc(response, 400, null, { code: INVALID_REQUEST, message: reason });
    return;
  }
  const requests = batch.flatMap((posted) => (posted.kind === "request" ? [posted.message] : []));
  if (!admitOrRefuseRequests(transport, exchange, requests, { ofSession: true })) return;
  for (const posted of batch) {
    if (posted.kind === "notification") session.legacy.notify(posted.message);
    if (posted.kind === "response") session.legacy.answer(posted.message);
  }
  if (requests.length === 0) {
    respondEmpty(response, 202);
    return;
  }
  await answerBatch(transport, exchange, accepts, session, requests);
}

async function answerBatch(
  transport: Transport,
  { response }: HttpExchange,
  accepts: Accepts,
  session: StreamableSession,
  requests: readonly RpcRequest[],
): Promise<void> {
  const ids = requests.map(({ id }) => id);
  const { streams } = transport;
  const reply = new LegacyReply({ response, session, accepts, streams, ids, isBatch: true });
  const waiting: Encoded[] = [];
  await Promise.all(
    requests.map(async (request) => {
      const answer = await answerOrError(request.id, () => session.legacy.request(request, reply));
      if (answer === null) return;
      if (reply.isStream) reply.send(answer);
      else waiting.push(answer);
    }),
  );
  reply.finish(waiting);
}

interface LegacyReplyOptions {
  readonly response: ServerResponse;
  readonly session: StreamableSession;
  readonly accepts: Accepts;
  readonly streams: OpenStreams;
  /** The requests in the POST: one, or those of a batch. */
  readonly ids: readonly RequestId[];
  /** A batch is answered by a batch, even if it has only one request. */
  readonly isBatch: boolean;
}

/** Half a second at most. */
const MAX_PLAIN_TICKS = 2;

/** The response to one POST of a legacy client: JSON, or an event stream if a message must be sent before the answer. */
class LegacyReply implements MessageSink, PendingReply {
  /** Further headers of the response. */
  headers: Readonly<OutgoingHttpHeaders> | undefined;
  readonly #options: LegacyReplyOptions;
  #stream: SessionStream | undefined;
  #ticks = 0;
  #done = false;

  constructor(options: LegacyReplyOptions) {
    this.#options = options;
    options.session.running += 1;
    options.streams.owe(this);
    onceClosed(options.response, () => this.#clientGone());
  }

  get isStream(): boolean {
    return this.#stream !== undefined;
  }

  send(message: Encoded): void {
    if (this.#done) return;
    const stream = this.#stream ?? this.#openStream();
    if (stream === undefined) this.#options.session.tell(message);
    else stream.send(message);
  }

  /**
   * A slow call gets a stream, so that its answer is not lost with the connection. For a client that cannot resume, a stream only
   * keeps the connection alive, and that can wait longer. The connection is never closed before the answer, as the protocol would
   * allow: clients that do not come back would wait forever.
   */
  stillPending(): void {
    this.#ticks += 1;
    if (this.#stream !== undefined) return;
    if (this.#ticks >= (this.#options.session.canPrime ? MAX_PLAIN_TICKS : MAX_SILENT_TICKS)) this.#openStream();
  }

  /** Sends the answers. Without any, the request was cancelled or its session has ended. */
  finish(answers: readonly Encoded[]): void {
    const { response, accepts } = this.#options;
    if (!accepts.json && answers.length > 0) this.#openStream(true);
    this.#settle();
    if (this.#stream !== undefined) {
      for (const answer of answers) this.#stream.send(answer);
      this.#stream.finish();
    } else if (answers[0] === undefined) this.#finishEmpty();
    else respondJson(response, 200, this.#options.isBatch ? jsonArray(answers) : answers[0], this.headers);
  }

  #finishEmpty(): void {
    const { response, session, accepts, ids } = this.#options;
    if (response.headersSent || response.destroyed) return;
    if (session.isClosed) {
      refuseWithError(response, ids[0] ?? null, { code: "not_found", message: "The session has ended." });
    } else if (accepts.stream) {
      // A cancelled request has no answer, and neither has a stream without events.
      new SseConnection(response).end();
    } else {
      refuseWithError(response, ids[0] ?? null, { code: "cancelled", message: "The request was cancelled." }, 200);
    }
  }

  #openStream(isOnlyWay = false): SessionStream | undefined {
    const { response, session, accepts, streams, ids } = this.#options;
    if (!accepts.stream || response.headersSent || response.destroyed) return undefined;
    if (!isOnlyWay && streams.reachedFor(session.caller) !== undefined) return undefined;
    const connection = new SseConnection(response, this.headers);
    streams.add(connection, session.caller);
    this.#stream = session.openStream(() => this.#abandon(ids));
    this.#stream.attach(connection);
    return this.#stream;
  }

  /** Without an event id there is nothing to resume. */
  #clientGone(): void {
    if (!this.#done && this.#stream === undefined) this.#abandon(this.#options.ids);
  }

  #abandon(ids: readonly RequestId[]): void {
    for (const id of ids) this.#options.session.legacy.abandon(id);
  }

  #settle(): void {
    if (this.#done) return;
    this.#done = true;
    this.#options.streams.settle(this);
    this.#options.session.release();
  }
}

function jsonArray(answers: readonly Encoded[]): Encoded {
  return ["[", ...answers.flatMap((answer, index) => (index === 0 ? answer : [",", ...answer])), "]"];
}
