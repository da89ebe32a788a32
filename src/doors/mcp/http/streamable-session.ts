/** A legacy client over Streamable HTTP: its POSTs, its session, and the streams that it can resume. */
import { localPeer } from "../../http/http-client-info.ts";
import type { OutgoingHttpHeaders } from "node:http";
import type { Clock } from "../../../base/clock.ts";
import { type Caller, identityOf } from "../../../model/caller.ts";
import { asToolcribError } from "../../../model/errors.ts";
import { INVALID_REQUEST, LEGACY_VERSIONS, type RequestId, type RpcRequest } from "../../../model/protocol.ts";
import type { QuotaReached } from "../../../policy/quota.ts";
import { type HttpExchange, type HttpResponse, onceClosed } from "../../http/http-exchange.ts";
import { MAX_SILENT_TICKS, type PendingReply, SseConnection, textOf } from "../../http/open-streams.ts";
import { unsupportedVersion } from "../mcp-handshake.ts";
import { batchError, type ClientMessage, type Encoded, errorCodeOf, type MessageSink } from "../rpc-messages.ts";
import { httpPeer, scopeKey, type ViewScope } from "../view-scope.ts";
import { bytesOf, headerOf, refuseRpc, refuseWithError, respondEmpty, respondJson } from "./http-messages.ts";
import {
  admitOrRefuseRequests,
  answerOrError,
  type EngineSession,
  forwardToOwner,
  type McpPost,
  type OpenSession,
  refuseUnknownSession,
  SESSION_HEADER,
  type Transport,
  VERSION_HEADER,
} from "./transport.ts";

export async function postLegacy(post: McpPost, posted: Exclude<ClientMessage, { kind: "invalid" }>): Promise<void> {
  const { exchange } = post;
  const isRequest = posted.kind === "request";
  if (isRequest && posted.message.method === "initialize" && !(SESSION_HEADER in exchange.request.headers)) {
    return postInitialize(post, posted.message);
  }
  const found = findOrForward(post, isRequest ? posted.message.id : null);
  // A hub on its own knows at once.
  const session = found instanceof Promise ? await found : found;
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
  exchange: { caller, request, query },
  scope,
}: McpPost): { readonly session: StreamableSession } | { readonly reached: QuotaReached } {
  const { sessions, clock, resumeGraceMs: graceMs, door, ids } = transport;
  const open = (stream: SessionStream): EngineSession =>
    door.openSession({ caller, scope, peer: httpPeer("http", query), locate: () => localPeer(request.socket) }, stream);
  const make = (id: string): StreamableSession => new StreamableSession({ id, caller, scope, clock, graceMs, open });
  return sessions.open(caller, make, ids?.issue("mcp"));
}

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
  const session = transport.sessions.find(sessionId, caller);
  // Another scope needs another session, which clients open after a 404.
  if (session instanceof StreamableSession && session.isOfScope(scope)) return session;
  refuseUnknownSession(exchange, id);
  return undefined;
}

/** The session of the POST. Undefined if there is none here, which is then answered, perhaps by another node. */
function findOrForward(
  { transport, exchange, scope }: McpPost,
  id: RequestId | null,
): StreamableSession | undefined | Promise<StreamableSession | undefined> {
  const { ids } = transport;
  const find = (): StreamableSession | undefined => findSessionOrRefuse(transport, exchange, scope, id);
  if (ids === undefined) return find();
  const sessionId = headerOf(exchange.request.headers[SESSION_HEADER]);
  return forwardToOwner(ids, exchange, "mcp", sessionId, id).then((isAnswered) => (isAnswered ? undefined : find()));
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
  readonly #response: HttpResponse;
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

interface StreamableSessionOptions {
  readonly id: string;
  /** No one else finds the session. */
  readonly caller: Caller;
  readonly scope: ViewScope;
  readonly clock: Clock;
  readonly graceMs: number;
  /** Opens the engine's session; the stream takes what belongs to no request. */
  readonly open: (stream: SessionStream) => EngineSession;
}

/** How long a delivered event can be resumed from. */
const MAX_RESUME_MS = 5 * 60_000;
/** Above this many, streams that cannot be resumed are dropped at once, not at the next sweep. */
const MAX_FINISHED_STREAMS = 64;
/** Since this version an event without data is part of the protocol. */
const PRIMING_SINCE = "2025-11-25";

const EVENT_ID = /^(\d{1,15})-(\d{1,15})$/;

class StreamableSession implements OpenSession {
  readonly id: string;
  readonly caller: Caller;
  readonly key: string;
  readonly legacy: EngineSession;
  usedAt: number;
  /** Requests that are not answered yet. */
  running = 0;
  readonly #options: StreamableSessionOptions;
  readonly #log = new EventLog();
  /** The stream by GET has the number 0; the streams of POSTs count from 1. */
  readonly #own: SessionStream;
  readonly #streams = new Map<number, SessionStream>();
  #lastStream = 0;
  #closed = false;

  constructor(options: StreamableSessionOptions) {
    this.id = options.id;
    this.caller = options.caller;
    this.key = identityOf(options.caller);
    this.usedAt = options.clock.now();
    this.#options = options;
    this.#own = this.#stream(0);
    this.legacy = options.open(this.#own);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  isOfScope(scope: ViewScope): boolean {
    return scope === this.#options.scope || scopeKey(scope) === scopeKey(this.#options.scope);
  }

  get isBusy(): boolean {
    return this.running > 0 || this.#own.isConnected;
  }

  get isOver(): boolean {
    return this.legacy.isOver === true;
  }

  /** Whether the client knows events without data, which it can resume from. */
  get canPrime(): boolean {
    return (this.legacy.version ?? "") >= PRIMING_SINCE;
  }

  /** A message that the client cannot get with the response. */
  tell(message: Encoded): void {
    this.#own.send(message);
  }

  /** One request has ended. */
  release(): void {
    this.running -= 1;
    this.usedAt = this.#options.clock.now();
  }

  /** For a request whose answer becomes a stream. */
  openStream(onAbandoned: () => void): SessionStream {
    if (this.#streams.size >= MAX_FINISHED_STREAMS) this.#forgetStreams();
    const number = ++this.#lastStream;
    const stream = this.#stream(number, onAbandoned);
    this.#streams.set(number, stream);
    return stream;
  }

  /** Opens the session's own stream, or resumes one that was cut. False if that stream is no longer known. */
  listen(lastEventId: string | undefined, connect: () => SseConnection): boolean {
    if (lastEventId === undefined) {
      this.#own.attach(connect());
      return true;
    }
    const [, number, seq] = EVENT_ID.exec(lastEventId) ?? [];
    if (number === undefined || seq === undefined) return false;
    const stream = Number(number) === 0 ? this.#own : this.#streams.get(Number(number));
    if (stream === undefined) return false;
    stream.attach(connect(), Number(seq));
    return true;
  }

  sweep(now: number): void {
    this.#log.expire(now - MAX_RESUME_MS);
    this.#forgetStreams();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.legacy.close();
    for (const stream of this.#streams.values()) stream.finish();
    this.#own.finish();
  }

  #stream(number: number, onAbandoned?: () => void): SessionStream {
    const { clock, graceMs } = this.#options;
    return new SessionStream({
      number,
      log: this.#log,
      clock,
      graceMs,
      canPrime: () => this.canPrime,
      onAbandoned,
    });
  }

  #forgetStreams(): void {
    for (const [number, stream] of this.#streams) {
      if (stream.isFinished && !this.#log.holds(number)) this.#streams.delete(number);
    }
  }
}

interface SessionStreamOptions {
  readonly number: number;
  readonly log: EventLog;
  readonly clock: Clock;
  /** Events without data break clients of versions that did not have them. */
  readonly canPrime: () => boolean;
  /** How long a cut stream waits for its client. */
  readonly graceMs: number;
  /** The client did not resume in time. Without it, the stream waits as long as its session. */
  readonly onAbandoned?: () => void;
}

/** How long a client waits before it reopens a cut stream. */
const RETRY_MS = 1000;
/** A client that was away needs each of these only once. */
const SUPERSEDED = /^\{"jsonrpc":"2\.0","method":"notifications\/(?:[a-z]+\/list_changed|resources\/updated)"/;

/**
 * One logical event stream of a legacy session: the response to one POST, or the GET stream. It survives a cut connection, and a
 * GET with `Last-Event-ID` resumes it.
 */
class SessionStream implements MessageSink {
  readonly #options: SessionStreamOptions;
  #seq = 0;
  #connection: SseConnection | undefined;
  #cancelGrace: (() => void) | undefined;
  #finished = false;

  constructor(options: SessionStreamOptions) {
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  get isFinished(): boolean {
    return this.#finished;
  }

  send(message: Encoded): void {
    if (this.#finished) return;
    const { number, log, clock } = this.#options;
    if (this.#connection === undefined) this.#dropSuperseded(message);
    const seq = ++this.#seq;
    const delivered = this.#connection?.send(message, `${number}-${seq}`) ?? false;
    log.add({ stream: number, seq, message, at: clock.now(), delivered });
  }

  /** @param after The last event that the client has; without it, it gets the undelivered events. */
  attach(connection: SseConnection, after?: number): void {
    const { number, log, canPrime } = this.#options;
    this.#cancelGrace?.();
    this.#connection?.end();
    this.#connection = connection;
    connection.onClose(() => this.#lost(connection));
    const events = after === undefined ? log.undelivered(number) : log.after(number, after);
    const first = events[0]?.seq ?? this.#seq + 1;
    if (canPrime()) connection.prime(`${number}-${after ?? first - 1}`, RETRY_MS);
    else connection.open();
    for (const event of events) event.delivered = connection.send(event.message, `${number}-${event.seq}`);
    if (this.#finished) connection.end();
  }

  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#cancelGrace?.();
    this.#connection?.end();
  }

  #lost(connection: SseConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    const { onAbandoned, clock, graceMs } = this.#options;
    if (this.#finished || onAbandoned === undefined) return;
    this.#cancelGrace = clock.after(graceMs, onAbandoned);
  }

  #dropSuperseded(message: Encoded): void {
    const { number, log } = this.#options;
    const text = textOf(message);
    if (text === undefined || !SUPERSEDED.test(text)) return;
    log.drop(new Set(log.undelivered(number).filter((event) => textOf(event.message) === text)));
  }
}

export interface LoggedEvent {
  readonly stream: number;
  readonly seq: number;
  readonly message: Encoded;
  readonly at: number;
  /** It was written to an open connection; only the client knows whether it arrived. */
  delivered: boolean;
}

const MAX_LOGGED_EVENTS = 256;
const MAX_LOGGED_BYTES = 1024 * 1024;

/** The last events of one session, for a client that resumes a stream. */
export class EventLog {
  #events: LoggedEvent[] = [];
  #bytes = 0;

  /** The newest event is kept whatever its size: it may be the awaited answer. */
  add(event: LoggedEvent): void {
    this.#events.push(event);
    this.#bytes += bytesOf(event.message);
    while (this.#events.length > MAX_LOGGED_EVENTS || (this.#bytes > MAX_LOGGED_BYTES && this.#events.length > 1))
      this.#dropOne();
  }

  /** The events of one stream after `seq`, oldest first. */
  after(stream: number, seq: number): LoggedEvent[] {
    return this.#events.filter((event) => event.stream === stream && event.seq > seq);
  }

  undelivered(stream: number): LoggedEvent[] {
    return this.#events.filter((event) => event.stream === stream && !event.delivered);
  }

  holds(stream: number): boolean {
    return this.#events.some((event) => event.stream === stream);
  }

  drop(events: ReadonlySet<LoggedEvent>): void {
    if (events.size > 0) this.#keep((event) => !events.has(event));
  }

  /** Events delivered before that moment are considered received. */
  expire(before: number): void {
    if (this.#events.some(({ delivered, at }) => delivered && at < before)) {
      this.#keep(({ delivered, at }) => !delivered || at >= before);
    }
  }

  #keep(isKept: (event: LoggedEvent) => boolean): void {
    this.#events = this.#events.filter(isKept);
    this.#bytes = this.#events.reduce((sum, { message }) => sum + bytesOf(message), 0);
  }

  /** Delivered ones first, but never the newest. */
  #dropOne(): void {
    const delivered = this.#events.findIndex((event) => event.delivered);
    const index = delivered === -1 || delivered === this.#events.length - 1 ? 0 : delivered;
    const [dropped] = this.#events.splice(index, 1);
    if (dropped !== undefined) this.#bytes -= bytesOf(dropped.message);
  }
}
