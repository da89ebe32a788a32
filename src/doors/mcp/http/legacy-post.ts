/** POST requests of legacy clients: they open a session or belong to one. */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { asToolcribError } from "../../../model/errors.ts";
import { INVALID_REQUEST, type RequestId, type RpcRequest } from "../../../model/protocol.ts";
import type { QuotaReached } from "../../../policy/quota.ts";
import { onceClosed } from "../../http/http-exchange.ts";
import { batchError, type ClientMessage, type Encoded, errorCodeOf, type MessageSink } from "../rpc-messages.ts";
import { headerOf, refuseRpc, refuseWithError, respondEmpty, respondJson } from "./http-messages.ts";
import { MAX_SILENT_TICKS, type PendingReply, SseConnection } from "./open-streams.ts";
import {
  admitOrRefuseRequests,
  answerOrError,
  findSessionOrRefuse,
  forwardToOwner,
  SESSION_HEADER,
} from "./request-checks.ts";
import type { EngineSession, McpPost } from "./session-table.ts";
import { type SessionStream, StreamableSession } from "./streamable-session.ts";

export async function postLegacy(post: McpPost, posted: Exclude<ClientMessage, { kind: "invalid" }>): Promise<void> {
  const { exchange } = post;
  const isRequest = posted.kind === "request";
  if (isRequest && posted.message.method === "initialize" && !(SESSION_HEADER in exchange.request.headers)) {
    return postInitialize(post, posted.message);
  }
  const session = await findOrForward(post, isRequest ? posted.message.id : null);
  if (session === undefined) return;
  if (isRequest) {
    if (!admitOrRefuseRequests(post, [posted.message], { ofSession: true })) return;
    const { message } = posted;
    const reply = new LegacyReply(post, session, [message.id]);
    const answer = await answerOrError(message.id, () => session.legacy.request(message, reply));
    reply.finish(answer === null ? [] : [answer]);
    return;
  }
  if (posted.kind === "notification") session.legacy.notify(posted.message);
  else session.legacy.answer(posted.message);
  respondEmpty(exchange.response, 202);
}

async function postInitialize(post: McpPost, message: RpcRequest): Promise<void> {
  const { transport, exchange } = post;
  const { response } = exchange;
  if (!admitOrRefuseRequests(post, [message])) return;
  let opened: ReturnType<typeof openStreamableSession>;
  try {
    opened = openStreamableSession(post);
  } catch (error) {
    return refuseWithError(response, message.id, asToolcribError(error).toObject());
  }
  if ("reached" in opened) return transport.refuseFull(response, message.id, "sessions", opened.reached);
  const { session } = opened;
  const reply = new LegacyReply(post, session, [message.id]);
  reply.headers = { "Mcp-Session-Id": session.id };
  const answer = await answerOrError(message.id, () => session.legacy.request(message, reply));
  const isOpen = answer !== null && errorCodeOf(answer) === undefined && !response.destroyed;
  if (!isOpen) reply.headers = undefined;
  reply.finish(answer === null ? [] : [answer]);
  if (!isOpen) transport.sessions.end(session);
}

function openStreamableSession({
  transport,
  exchange: { caller },
  scope,
}: McpPost): { readonly session: StreamableSession } | { readonly reached: QuotaReached } {
  const { sessions, clock, resumeGraceMs: graceMs, door, ids } = transport;
  const open = (stream: SessionStream): EngineSession => door.openSession({ caller, scope }, stream);
  const make = (id: string): StreamableSession => new StreamableSession({ id, caller, scope, clock, graceMs, open });
  return sessions.open(caller, make, ids?.issue("mcp"));
}

/** The session of the POST. Undefined if there is none here, which is then answered, perhaps by another node. */
async function findOrForward(
  { transport, exchange, scope }: McpPost,
  id: RequestId | null,
): Promise<StreamableSession | undefined> {
  const { ids } = transport;
  const sessionId = headerOf(exchange.request.headers[SESSION_HEADER]);
  if (ids !== undefined && (await forwardToOwner(ids, exchange, "mcp", sessionId, id))) return undefined;
  return findSessionOrRefuse(transport, exchange, scope, id);
}

/** @param batch The entries of the array, classified. */
export async function postBatch(post: McpPost, batch: readonly ClientMessage[]): Promise<void> {
  const { response } = post.exchange;
  const session = await findOrForward(post, null);
  if (session === undefined) return;
  const reason = batchError(batch, session.legacy.version);
  if (reason !== undefined) return refuseRpc(response, 400, null, { code: INVALID_REQUEST, message: reason });
  const requests = batch.flatMap((posted) => (posted.kind === "request" ? [posted.message] : []));
  if (!admitOrRefuseRequests(post, requests, { ofSession: true })) return;
  for (const posted of batch) {
    if (posted.kind === "notification") session.legacy.notify(posted.message);
    if (posted.kind === "response") session.legacy.answer(posted.message);
  }
  if (requests.length === 0) return respondEmpty(response, 202);
  const ids = requests.map(({ id }) => id);
  const reply = new LegacyReply(post, session, ids, { isBatch: true });
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

/** Half a second at most. */
const MAX_PLAIN_TICKS = 2;

/** The response to one POST of a legacy client: JSON, or an event stream if a message must be sent before the answer. */
class LegacyReply implements MessageSink, PendingReply {
  /** Further headers of the response. */
  headers: Readonly<OutgoingHttpHeaders> | undefined;
  readonly #post: McpPost;
  readonly #response: ServerResponse;
  readonly #session: StreamableSession;
  readonly #ids: readonly RequestId[];
  readonly #isBatch: boolean;
  #stream: SessionStream | undefined;
  #ticks = 0;
  #done = false;

  /**
   * @param ids The requests in the POST: one, or those of a batch.
   * @param isBatch A batch is answered by a batch, even if it has only one request.
   */
  constructor(post: McpPost, session: StreamableSession, ids: readonly RequestId[], { isBatch = false } = {}) {
    this.#post = post;
    this.#response = post.exchange.response;
    this.#session = session;
    this.#ids = ids;
    this.#isBatch = isBatch;
    session.running += 1;
    post.transport.streams.owe(this);
    onceClosed(this.#response, () => {
      // Without an event id there is nothing to resume.
      if (!this.#done && this.#stream === undefined) this.#abandon();
    });
  }

  get isStream(): boolean {
    return this.#stream !== undefined;
  }

  send(message: Encoded): void {
    if (this.#done) return;
    const stream = this.#stream ?? this.#openStream();
    if (stream === undefined) this.#session.tell(message);
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
    if (this.#ticks >= (this.#session.canPrime ? MAX_PLAIN_TICKS : MAX_SILENT_TICKS)) this.#openStream();
  }

  /** Sends the answers. Without any, the request was cancelled or its session has ended. */
  finish(answers: readonly Encoded[]): void {
    if (!this.#post.accepts.json && answers.length > 0) this.#openStream(true);
    this.#settle();
    if (this.#stream !== undefined) {
      for (const answer of answers) this.#stream.send(answer);
      this.#stream.finish();
    } else if (answers[0] === undefined) this.#finishEmpty();
    else respondJson(this.#response, 200, this.#isBatch ? jsonArray(answers) : answers[0], this.headers);
  }

  #finishEmpty(): void {
    const response = this.#response;
    const id = this.#ids[0] ?? null;
    if (response.headersSent || response.destroyed) return;
    if (this.#session.isClosed) {
      refuseWithError(response, id, { code: "not_found", message: "The session has ended." });
    } else if (this.#post.accepts.stream) {
      // A cancelled request has no answer, and neither has a stream without events.
      new SseConnection(response).end();
    } else {
      refuseWithError(response, id, { code: "cancelled", message: "The request was cancelled." }, 200);
    }
  }

  #openStream(isOnlyWay = false): SessionStream | undefined {
    const { accepts, transport } = this.#post;
    const { streams } = transport;
    const [response, session] = [this.#response, this.#session];
    if (!accepts.stream || response.headersSent || response.destroyed) return undefined;
    if (!isOnlyWay && streams.reachedFor(session.caller) !== undefined) return undefined;
    const connection = new SseConnection(response, this.headers);
    streams.add(connection, session.caller);
    this.#stream = session.openStream(() => this.#abandon());
    this.#stream.attach(connection);
    return this.#stream;
  }

  #abandon(): void {
    for (const id of this.#ids) this.#session.legacy.abandon(id);
  }

  #settle(): void {
    if (this.#done) return;
    this.#done = true;
    this.#post.transport.streams.settle(this);
    this.#session.release();
  }
}

function jsonArray(answers: readonly Encoded[]): Encoded {
  return ["[", ...answers.flatMap((answer, index) => (index === 0 ? answer : [",", ...answer])), "]"];
}
