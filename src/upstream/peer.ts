/**
 * Peer: requests, answers, progress and cancellation over one Wire, for both protocol eras.
 *
 * The SDK's Client is not used here: it drops fields it does not know, one bad tool fails a whole list, a call costs
 * three to five times a plain pipe, and it does not initialise again after a lost HTTP session.
 */
import { afterPauses, CancelController, type CancelSignal, Pauses } from "../base/async.ts";
import type { Clock } from "../base/clock.ts";
import { ChurnMap } from "../base/maps.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  INVALID_REQUEST,
  type Progress,
  type RequestId,
  type RpcMessage,
  type RpcNotification,
  type RpcRequest,
  type RpcResponse,
  SUBSCRIPTION_KEY,
} from "../model/protocol.ts";
import type { ClientSide } from "../model/source.ts";
import { errorFromRpc, rpcFromError, rpcOf } from "./rpc-error.ts";
import { ThrottledWarnings, type Wire } from "./wire.ts";

export interface PeerOptions {
  readonly clock: Clock;
  /** Serves a request of the server; what it throws becomes the error answer. */
  readonly onRequest: (method: string, params: JsonObject, context: IncomingContext) => Promise<JsonObject>;
  /** `request`: the one that it belongs to, if that is known. */
  readonly onNotification: (method: string, params: JsonObject, request: RequestOptions | undefined) => void;
  readonly onLost: (error: ToolcribError) => void;
  readonly onWarning: (text: string) => void;
}

interface Pending {
  readonly method: string;
  readonly options: RequestOptions;
  readonly resolve: (result: JsonObject) => void;
  readonly reject: (error: ToolcribError) => void;
  readonly startedAt: number;
  /** Ends the request's own HTTP stream. */
  readonly stream: CancelController | undefined;
  readonly onAbort: () => void;
  stopTimer: (() => void) | undefined;
  /** Open questions of the server to people or models because of it, and the time that answers took. */
  questions: { open: number; readonly pauses: Pauses } | undefined;
  /** Set when the pipe broke before the request was out, until the wire says what became of the process. */
  unsent: ToolcribError | undefined;
}

/** A broken pipe is noticed before the exit that explains it. */
const EXIT_NOTICE_MS = 1000;

/** Ids of given-up requests that are remembered so that their late answers raise no warning. */
const MAX_ABANDONED = 1000;
export const LISTEN_METHOD = "subscriptions/listen";

export class Peer {
  readonly wire: Wire;
  readonly #options: PeerOptions;
  readonly #pending = new ChurnMap<RequestId, Pending>();
  readonly #abandoned = new Set<RequestId>();
  readonly #served: ServerRequests;
  readonly #malformed: ThrottledWarnings;
  readonly #detach: () => void;
  #idleWaiters: (() => void)[] = [];
  #nextId = 1;
  #ended: ToolcribError | undefined;
  /** Why the wire went away, if it did. */
  lost: ToolcribError | undefined;
  /** Sent in the `_meta` of every request of the modern era. */
  #envelope: JsonObject | undefined;
  lastReceivedAt: number;

  constructor(wire: Wire, options: PeerOptions) {
    this.wire = wire;
    this.#options = options;
    this.lastReceivedAt = options.clock.now();
    this.#malformed = new ThrottledWarnings(options.clock, options.onWarning);
    this.#served = new ServerRequests(options.onRequest, (answer) => this.#post(answer));
    this.#detach = wire.listen({
      message: ({ message, related }) => this.#receive(message, related),
      failed: ({ id, error }) => this.#fail(id, error),
      lost: (error) => this.#lose(error),
      warning: (text) => options.onWarning(text),
    });
  }

  /** From now on every request carries this in its `_meta`: the modern era has no handshake that lasts. */
  setEnvelope(envelope: JsonObject | undefined): void {
    this.#envelope = envelope;
  }

  /** For a modern link only: a legacy one has no envelope. */
  extendEnvelope(more: JsonObject): void {
    if (this.#envelope !== undefined) this.#envelope = { ...this.#envelope, ...more };
  }

  get modern(): boolean {
    return this.#envelope !== undefined;
  }

  /** Whether a request is in progress that a caller waits for. */
  get busy(): boolean {
    for (const pending of this.#pending.values()) if (pending.options.background !== true) return true;
    return false;
  }

  /** Resolves when no caller waits for a request any more. */
  whenIdle(): Promise<void> {
    return this.busy ? new Promise((resolve) => this.#idleWaiters.push(resolve)) : Promise.resolve();
  }

  /** The distinct clients that have a request in progress. */
  callers(): ClientSide[] {
    return callersOf(this.#pending);
  }

  /** Resolves with the result exactly as the server sent it. Rejects with ToolcribError only. */
  request(method: string, params: JsonObject = {}, options: RequestOptions = {}): Promise<JsonObject> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    if (options.signal?.aborted === true) return Promise.reject(cancelled(method, false));
    const id = this.#nextId++;
    options.onSent?.(id);
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        method,
        options,
        resolve,
        reject,
        startedAt: this.#options.clock.now(),
        stream: this.wire.transport === "http" ? new CancelController() : undefined,
        onAbort: () => this.#giveUp(id, cancelled(method, true), "The caller gave up."),
        stopTimer: undefined,
        questions: undefined,
        unsent: undefined,
      };
      this.#pending.set(id, pending);
      options.signal?.addEventListener("abort", pending.onAbort, { once: true });
      this.#startTimer(id, pending);
      const message: RpcRequest = { jsonrpc: "2.0", id, method, params: this.#withMeta(id, params, options) };
      const sendOptions = { signal: pending.stream, headers: options.headers };
      this.wire.send(message, sendOptions).catch((error: unknown) => this.#fail(id, error));
    });
  }

  async notify(method: string, params?: JsonObject): Promise<void> {
    await this.wire.send({ jsonrpc: "2.0", method, params });
  }

  /** Rejects all requests in progress and detaches from the wire, which it does not close. */
  end(error: ToolcribError): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.#detach();
    this.#served.abortAll();
    for (const id of [...this.#pending.keys()]) this.#take(id)?.reject(error);
  }

  #withMeta(id: RequestId, params: JsonObject, options: RequestOptions): JsonObject {
    const { _meta } = params;
    const given = _meta !== undefined && isJsonObject(_meta) ? _meta : undefined;
    if (given === undefined && this.#envelope === undefined) {
      return options.onProgress === undefined ? params : { ...params, _meta: { progressToken: id } };
    }
    // A token of the caller's own client would collide with ours: progress is reported through `onProgress`.
    const envelope = this.#envelope === undefined ? undefined : { ...this.#envelope, ...options.envelope };
    const { progressToken: _foreign, ...meta } = { ...given, ...envelope };
    if (options.onProgress !== undefined) Object.assign(meta, { progressToken: id });
    if (given === undefined && Object.keys(meta).length === 0) return params;
    return { ...params, _meta: meta };
  }

  #receive(message: RpcMessage, related: RequestId | undefined): void {
    this.lastReceivedAt = this.#options.clock.now();
    if (!("method" in message)) return this.#answered(message);
    const { params: given } = message;
    const params = given !== undefined && isJsonObject(given) ? given : {};
    if ("id" in message) {
      const client = related === undefined ? undefined : this.#pending.get(related)?.options.client;
      const calls = related === undefined ? callsOfOneClient(this.#pending) : [related];
      const answered = this.#served.serve(message, params, { client, calls });
      if (INTERACTIVE_METHODS.has(message.method)) this.#pauseUntil(answered, calls);
      return;
    }
    this.#notified(message, params, related);
  }

  #notified(message: RpcNotification, params: JsonObject, related: RequestId | undefined): void {
    if (message.method === "notifications/progress") return this.#progressed(params);
    if (message.method === "notifications/cancelled") return this.#cancelledByServer(params);
    const { method } = message;
    const request =
      related === undefined
        ? requestOfNotification(this.#pending, { method, params, modern: this.modern })
        : this.#pending.get(related)?.options;
    this.#options.onNotification(method, withoutSubscription(params), request);
  }

  #answered(response: RpcResponse): void {
    const id = ownId(this.#pending, response.id);
    const pending = id === undefined ? undefined : this.#take(id);
    if (pending === undefined) return this.#unexpected(response);
    if ("error" in response) return pending.reject(errorFromRpc(response.error));
    if (isJsonObject(response.result)) return pending.resolve(response.result);
    // A tool may have nothing to say. Any other answer without a result lacks what was asked for.
    if (pending.method === "tools/call" && (response.result ?? null) === null) return pending.resolve({});
    pending.reject(
      new ToolcribError("tool_error", `The server answered ${pending.method} with something that is not an object.`),
    );
  }

  #unexpected(response: RpcResponse): void {
    if (response.id !== null && this.#abandoned.delete(response.id)) return;
    const what = "error" in response ? `an error (${response.error?.message})` : "an answer";
    this.#malformed.add(
      `Ignored ${what} with the id ${JSON.stringify(response.id)}, which is unknown or answered already.`,
    );
  }

  #progressed(params: JsonObject): void {
    const { progressToken, _meta, ...progress } = params;
    const id = ownId(this.#pending, progressToken);
    const pending = id === undefined ? undefined : this.#pending.get(id);
    if (id === undefined || pending === undefined) return;
    this.#startTimer(id, pending);
    const report = _meta === undefined ? progress : { ...progress, _meta };
    if (typeof progress["progress"] !== "number") return;
    try {
      // `progress` was just seen to be a number; the other fields pass as they came.
      pending.options.onProgress?.(report as Progress);
    } catch (error) {
      this.#options.onWarning(`A progress listener failed: ${String(error)}`);
    }
  }

  #cancelledByServer(params: JsonObject): void {
    const id = params["requestId"];
    if (typeof id !== "number" && typeof id !== "string") return;
    if (this.#served.cancel(id)) return;
    // Of our own requests a server may end only a listen stream; ids of both sides overlap, so the rest is ignored.
    if (this.#pending.get(id)?.method === LISTEN_METHOD) {
      this.#take(id)?.reject(new ToolcribError("cancelled", "The server ended the stream of changes."));
    }
  }

  /** A call is not silent while its server waits for an answer, however long a person takes. */
  #pauseUntil(answered: Promise<void>, calls: readonly RequestId[]): void {
    for (const id of calls) {
      const pending = this.#pending.get(id);
      if (pending === undefined || pending.unsent !== undefined) continue;
      const questions = (pending.questions ??= { open: 0, pauses: new Pauses(this.#options.clock) });
      questions.open += 1;
      questions.pauses.pause();
      pending.stopTimer?.();
      void answered.then(() => {
        questions.open -= 1;
        if (questions.open > 0) return;
        questions.pauses.resume();
        if (this.#pending.get(id) === pending) this.#startTimer(id, pending);
      });
    }
  }

  #spentMs({ startedAt, questions }: Pending): number {
    return this.#options.clock.now() - startedAt - (questions?.pauses.totalMs() ?? 0);
  }

  #startTimer(id: RequestId, pending: Pending): void {
    const { timeoutMs, maxTotalMs, pauses } = pending.options;
    const { clock } = this.#options;
    if (timeoutMs === undefined || (pending.questions?.open ?? 0) > 0) return;
    pending.stopTimer?.();
    const left = maxTotalMs === undefined ? timeoutMs : Math.min(timeoutMs, maxTotalMs - this.#spentMs(pending));
    const wait = Math.max(left, 0);
    const run = (): void => this.#timeOut(id, pending);
    pending.stopTimer = pauses === undefined ? clock.after(wait, run) : afterPauses(wait, { clock, pauses, run });
  }

  #timeOut(id: RequestId, pending: Pending): void {
    const spent = this.#spentMs(pending);
    const ceiling = pending.options.maxTotalMs;
    // A server that waits for our own answer is not late.
    if (this.#served.busy && ceiling !== undefined && spent < ceiling) return this.#startTimer(id, pending);
    const paused = pending.options.pauses?.totalMs() ?? 0;
    const seconds = Math.round((spent - Math.min(paused, spent)) / 100) / 10;
    const text = `${pending.method} got no answer within ${seconds} s.`;
    const hint =
      "Raise the server's `toolTimeout` (calls; `sessions.toolTimeout` if a client brought it) or `timeout` (connecting), or look at what the server is doing.";
    this.#giveUp(
      id,
      new ToolcribError("timeout", text, { hint, details: { afterMs: spent, sent: true } }),
      "Timed out.",
    );
  }

  #giveUp(id: RequestId, error: ToolcribError, reason: string): void {
    const pending = this.#take(id);
    if (pending === undefined) return;
    this.#abandon(id);
    const closesStream = pending.stream !== undefined && this.modern;
    if (!closesStream && pending.options.uncancellable !== true) {
      this.#post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
    }
    pending.stream?.abort();
    pending.reject(error);
  }

  #abandon(id: RequestId): void {
    this.#abandoned.add(id);
    const oldest = this.#abandoned.values().next();
    if (this.#abandoned.size > MAX_ABANDONED && oldest.done !== true) this.#abandoned.delete(oldest.value);
  }

  #fail(id: RequestId, thrown: unknown): void {
    const waiting = this.#pending.get(id);
    if (waiting === undefined) return;
    if (this.wire.transport === "stdio" && waiting.unsent === undefined && isUnsent(thrown)) {
      waiting.unsent = thrown;
      waiting.stopTimer?.();
      waiting.stopTimer = this.#options.clock.after(EXIT_NOTICE_MS, () => this.#fail(id, thrown));
      return;
    }
    const pending = this.#take(id);
    if (pending === undefined) return;
    if (thrown instanceof ToolcribError) return pending.reject(answeredByStatus(thrown));
    if (thrown instanceof RangeError) {
      const message = `What ${pending.method} was to send is nested too deeply.`;
      return pending.reject(new ToolcribError("invalid_arguments", message, { cause: thrown }));
    }
    pending.reject(
      new ToolcribError("internal", `Sending ${pending.method} failed: ${String(thrown)}`, { cause: thrown }),
    );
  }

  #lose(error: ToolcribError): void {
    this.lost = error;
    for (const [id, pending] of [...this.#pending]) {
      const details = { ...error.details, sent: pending.unsent === undefined };
      this.#take(id)?.reject(
        new ToolcribError("server_unavailable", error.message, { hint: error.hint, details, cause: error }),
      );
    }
    this.end(new ToolcribError("server_unavailable", error.message, { hint: error.hint, details: { sent: false } }));
    this.#options.onLost(error);
  }

  /** Removes a request and everything that hangs on it; whoever gets it must settle it. */
  #take(id: RequestId): Pending | undefined {
    const pending = this.#pending.get(id);
    if (pending === undefined) return undefined;
    this.#pending.delete(id);
    pending.stopTimer?.();
    pending.options.signal?.removeEventListener("abort", pending.onAbort);
    this.#served.callEnded(id);
    if (this.#idleWaiters.length > 0 && !this.busy) for (const resolve of this.#idleWaiters.splice(0)) resolve();
    return pending;
  }

  /** For messages without a response: if the wire is gone, `lost` reports it. */
  #post(message: RpcMessage): void {
    this.wire.send(message).catch(() => {});
  }
}

/** A JSON-RPC error that came with an HTTP error status is an answer, unless the status itself says more. */
function answeredByStatus(error: ToolcribError): ToolcribError {
  const rpc = rpcOf(error);
  const saysMore = error.code !== "server_unavailable" || error.details?.["sessionLost"] === true;
  return rpc === undefined || saysMore ? error : errorFromRpc(rpc, error.details);
}

function isUnsent(thrown: unknown): thrown is ToolcribError {
  return thrown instanceof ToolcribError && thrown.details?.["sent"] === false;
}

function cancelled(method: string, sent: boolean): ToolcribError {
  return new ToolcribError("cancelled", `${method} was cancelled by the caller.`, { details: { sent } });
}

/** How a request is sent, and who is behind it. */
export interface RequestOptions {
  readonly signal?: CancelSignal | undefined;
  /** Silence after which the request is given up; absent for requests that stay open. */
  readonly timeoutMs?: number | undefined;
  /** Time that does not count as silence. */
  readonly pauses?: Pauses | undefined;
  /** Progress restarts the timeout, but never beyond this. */
  readonly maxTotalMs?: number | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Extra HTTP headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Who answers what the server asks while the request runs. */
  readonly client?: ClientSide | undefined;
  /** Replaces what is the same for all requests in a modern request's `_meta`. */
  readonly envelope?: JsonObject | undefined;
  /** Gets what the server says on this request's own stream, or in its time; the Peer's owner hands it on. */
  readonly onNotice?: ((method: string, params: JsonObject) => void) | undefined;
  /** The call that it is sent for. */
  readonly callId?: string | undefined;
  /** A request of our own that stays open, and does not make the connection busy. */
  readonly background?: boolean | undefined;
  /** Gets the id of the request, when it is sent. */
  readonly onSent?: ((id: RequestId) => void) | undefined;
  /** `initialize` must not be cancelled by a notification. */
  readonly uncancellable?: boolean | undefined;
}

/** In the order in which they were sent. */
type PendingRequests = Pick<
  ReadonlyMap<RequestId, { readonly options: RequestOptions }>,
  "get" | "has" | "keys" | "values"
>;

/** Some servers send a numeric id back as a string. */
function ownId(pending: PendingRequests, id: unknown): RequestId | undefined {
  if (typeof id === "number") return id;
  if (typeof id !== "string") return undefined;
  return !pending.has(id) && pending.has(Number(id)) ? Number(id) : id;
}

/** The distinct clients that have a request in progress; the newest request of each one counts. */
function callersOf(pending: PendingRequests): ClientSide[] {
  const clients = new Map<unknown, ClientSide>();
  for (const { options } of pending.values()) {
    const { client } = options;
    if (client === undefined) continue;
    // The newest that can take a question; if none can, the newest.
    const before = clients.get(client.key);
    const canTakeOne = client.isWaiting?.() !== true;
    if (canTakeOne || before === undefined || before.isWaiting?.() === true) clients.set(client.key, client);
  }
  return [...clients.values()];
}

/** All requests of the only client that has any in progress: one of them is why the server asks. */
function callsOfOneClient(pending: PendingRequests): RequestId[] {
  const calls: RequestId[] = [];
  let key: unknown;
  for (const id of pending.keys()) {
    const { client, background } = pending.get(id)?.options ?? {};
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
function requestOfNotification(
  pending: PendingRequests,
  { method, params, modern }: { readonly method: string; readonly params: JsonObject; readonly modern: boolean },
): RequestOptions | undefined {
  const meta = params["_meta"];
  const subscription = modern && isJsonObject(meta) ? meta[SUBSCRIPTION_KEY] : undefined;
  if (typeof subscription === "number" || typeof subscription === "string") {
    const id = ownId(pending, subscription);
    return id === undefined ? undefined : pending.get(id)?.options;
  }
  return method === "notifications/message" ? newestOfOneClient(pending) : undefined;
}

/**
 * Log messages are about what a server is doing, so while it works for one client they are for that client. Between
 * several it is unclear. Requests of our own are ignored.
 */
function newestOfOneClient(pending: PendingRequests): RequestOptions | undefined {
  let newest: RequestOptions | undefined;
  for (const { options } of pending.values()) {
    if (options.background === true || options.client === undefined) continue;
    if (newest !== undefined && newest.client?.key !== options.client.key) return undefined;
    // Of one client's requests, one that takes notices.
    if (newest === undefined || options.onNotice !== undefined) newest = options;
  }
  return newest;
}

/** The id of a subscription is ours, and means nothing to those whom the notification is passed on to. */
function withoutSubscription(params: JsonObject): JsonObject {
  const { _meta: meta, ...rest } = params;
  if (meta === undefined || !isJsonObject(meta) || meta[SUBSCRIPTION_KEY] === undefined) return params;
  const { [SUBSCRIPTION_KEY]: _ours, ...others } = meta;
  return Object.keys(others).length === 0 ? rest : { ...rest, _meta: others };
}

export interface IncomingContext {
  readonly signal: AbortSignal;
  /** The client of the request whose own stream carried this, where the transport knows it. */
  readonly client?: ClientSide;
}

type Serve = (method: string, params: JsonObject, context: IncomingContext) => Promise<JsonObject>;

/** Answered by a person or a model; the rest is answered at once. */
const INTERACTIVE_METHODS: ReadonlySet<string> = new Set(["elicitation/create", "sampling/createMessage"]);

/** Of one connection: each waits in a client, or before a person. */
const MAX_OPEN_REQUESTS = 1000;

interface OpenRequest {
  readonly controller: AbortController;
  /** The calls that it can belong to and that are still in progress. */
  readonly calls: Set<RequestId>;
}

/** The requests of a server that our side is answering right now. */
class ServerRequests {
  readonly #serve: Serve;
  readonly #post: (answer: RpcResponse) => void;
  readonly #open = new Map<RequestId, OpenRequest>();
  /** A server may use an id twice. */
  #waiting = 0;

  constructor(serve: Serve, post: (answer: RpcResponse) => void) {
    this.#serve = serve;
    this.#post = post;
  }

  get busy(): boolean {
    return this.#open.size > 0;
  }

  /**
   * Resolves when it is answered. Never rejects.
   * @param client Of the request whose own stream carried this.
   * @param calls Our requests of which one made the server ask; empty if it asks by itself.
   */
  serve(
    { id, method }: { readonly id: RequestId; readonly method: string },
    params: JsonObject,
    { client, calls }: { readonly client: ClientSide | undefined; readonly calls: readonly RequestId[] },
  ): Promise<void> {
    if (method === "ping") {
      this.#post({ jsonrpc: "2.0", id, result: {} });
      return Promise.resolve();
    }
    if (this.#waiting >= MAX_OPEN_REQUESTS) {
      const message = `${MAX_OPEN_REQUESTS} requests of this server wait for an answer already.`;
      this.#post({ jsonrpc: "2.0", id, error: { code: INVALID_REQUEST, message } });
      return Promise.resolve();
    }
    const open = { controller: new AbortController(), calls: new Set(INTERACTIVE_METHODS.has(method) ? calls : []) };
    this.#open.set(id, open);
    return this.#answer(id, method, params, open.controller.signal, client);
  }

  /** Ends the questions that only this call needed answered. The server gets an error, in case it still waits. */
  callEnded(call: RequestId): void {
    for (const [id, { controller, calls }] of this.#open) {
      if (!calls.delete(call) || calls.size > 0) continue;
      controller.abort();
      this.#open.delete(id);
      this.#post({ jsonrpc: "2.0", id, error: { code: INVALID_REQUEST, message: "The call that asked has ended." } });
    }
  }

  /** Whether there was such a request. */
  cancel(id: RequestId): boolean {
    const open = this.#open.get(id);
    open?.controller.abort();
    return open !== undefined;
  }

  abortAll(): void {
    for (const { controller } of this.#open.values()) controller.abort();
  }

  async #answer(
    id: RequestId,
    method: string,
    params: JsonObject,
    signal: AbortSignal,
    client: ClientSide | undefined,
  ): Promise<void> {
    let answer: RpcResponse;
    this.#waiting += 1;
    try {
      const result = await this.#serve(method, params, { signal, client });
      answer = { jsonrpc: "2.0", id, result };
    } catch (error) {
      answer = { jsonrpc: "2.0", id, error: rpcFromError(error) };
    } finally {
      this.#waiting -= 1;
      // Another request may have the id by now.
      if (this.#open.get(id)?.controller.signal === signal) this.#open.delete(id);
    }
    // A cancelled request gets no answer.
    if (!signal.aborted) this.#post(answer);
  }
}
