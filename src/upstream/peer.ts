/**
 * Peer: requests, answers, progress and cancellation over one Wire, for both protocol eras.
 *
 * The SDK's Client is not used here: it drops fields it does not know, one bad tool fails a whole list, a call costs
 * three to five times a plain pipe, and it does not initialise again after a lost HTTP session.
 */
import type { Clock } from "../model/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Progress } from "../model/protocol.ts";
import type { ClientSide } from "../model/session.ts";
import { TurnoverMap } from "../model/turnover.ts";
import { Cancel } from "../model/cancel.ts";
import { JunkWarnings } from "./junk-warnings.ts";
import type { RequestOptions } from "./request-options.ts";
import { callersOf, callsOfOneClient, ownId, requestOfNotice, withoutSubscription } from "./requests-under-way.ts";
import { errorFromRpc, rpcOf } from "./rpc-error.ts";
import { type IncomingContext, ServedRequests } from "./served-requests.ts";
import type { Wire } from "./wire.ts";
import type { RequestId, RpcMessage, RpcNotification, RpcRequest, RpcResponse } from "../model/rpc.ts";

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
  readonly stream: Cancel | undefined;
  readonly onAbort: () => void;
  stopTimer: (() => void) | undefined;
  /** Set when the pipe broke before the request was out, until the wire says what became of the process. */
  unsent: ToolcribError | undefined;
}

/** A broken pipe is noticed before the exit that explains it. */
const EXIT_NOTICE_MS = 1000;

/** Ids of given-up requests that are remembered so that their late answers raise no warning. */
const ABANDONED_KEPT = 1000;
export const LISTEN_METHOD = "subscriptions/listen";

export class Peer {
  readonly wire: Wire;
  readonly #options: PeerOptions;
  readonly #pending = new TurnoverMap<RequestId, Pending>();
  readonly #abandoned = new Set<RequestId>();
  readonly #served: ServedRequests;
  readonly #junk: JunkWarnings;
  readonly #detach: (() => void)[];
  #idleWaiters: (() => void)[] = [];
  #nextId = 1;
  #ended: ToolcribError | undefined;
  /** Why the wire went away, if it did. */
  lost: ToolcribError | undefined;
  /** What the modern era wants in the `_meta` of every request. */
  #envelope: JsonObject | undefined;
  lastReceivedAt: number;

  constructor(wire: Wire, options: PeerOptions) {
    this.wire = wire;
    this.#options = options;
    this.lastReceivedAt = options.clock.now();
    this.#junk = new JunkWarnings(options.clock, options.onWarning);
    this.#served = new ServedRequests(options.onRequest, (answer) => this.#post(answer));
    this.#detach = [
      wire.on("message", ({ message, related }) => this.#receive(message, related)),
      wire.on("failed", ({ id, error }) => this.#fail(id, error)),
      wire.on("lost", (error) => this.#lose(error)),
      wire.on("warning", (text) => options.onWarning(text)),
    ];
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

  /** Whether a request is under way that someone waits for. */
  get busy(): boolean {
    for (const pending of this.#pending.values()) if (pending.options.background !== true) return true;
    return false;
  }

  /** Resolves when nobody waits for a request any more. */
  whenIdle(): Promise<void> {
    return this.busy ? new Promise((resolve) => this.#idleWaiters.push(resolve)) : Promise.resolve();
  }

  /** The distinct clients that have a request under way; the newest request of each one counts. */
  callers(): ClientSide[] {
    return callersOf(this.#pending);
  }

  /** Resolves with the result exactly as the server sent it. Rejects with ToolcribError only. */
  request(method: string, params: JsonObject = {}, options: RequestOptions = {}): Promise<JsonObject> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    if (options.signal?.aborted === true) return Promise.reject(cancelled(method, false));
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        method,
        options,
        resolve,
        reject,
        startedAt: this.#options.clock.now(),
        stream: this.wire.transport === "http" ? new Cancel() : undefined,
        onAbort: () => this.#giveUp(id, cancelled(method, true), "The caller gave up."),
        stopTimer: undefined,
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

  /** Rejects what is under way and lets go of the wire, which it does not close. */
  end(error: ToolcribError): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    for (const detach of this.#detach) detach();
    this.#served.abortAll();
    for (const id of [...this.#pending.keys()]) this.#take(id)?.reject(error);
  }

  #withMeta(id: RequestId, params: JsonObject, options: RequestOptions): JsonObject {
    const given = isJsonObject(params["_meta"]) ? params["_meta"] : undefined;
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
    const params = isJsonObject(message.params) ? message.params : {};
    if ("id" in message) {
      const client = related === undefined ? undefined : this.#pending.get(related)?.options.client;
      const calls = related === undefined ? callsOfOneClient(this.#pending) : [related];
      this.#served.serve(message, params, { client, calls });
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
        ? requestOfNotice(this.#pending, { method, params, modern: this.modern })
        : this.#pending.get(related)?.options;
    this.#options.onNotification(method, withoutSubscription(params), request);
  }

  #answered(response: RpcResponse): void {
    const id = ownId(this.#pending, response.id);
    const pending = id === undefined ? undefined : this.#take(id);
    if (pending === undefined) return this.#unexpected(response);
    if ("error" in response) return pending.reject(errorFromRpc(response.error));
    if (isJsonObject(response.result)) return pending.resolve(response.result);
    pending.reject(
      new ToolcribError("tool_error", `The server answered ${pending.method} with something that is no object.`),
    );
  }

  #unexpected(response: RpcResponse): void {
    if (response.id !== null && this.#abandoned.delete(response.id)) return;
    const what = "error" in response ? `an error (${response.error?.message})` : "an answer";
    this.#junk.add(`Ignored ${what} with the id ${JSON.stringify(response.id)}, which is unknown or answered already.`);
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

  #startTimer(id: RequestId, pending: Pending): void {
    const { timeoutMs, maxTotalMs } = pending.options;
    if (timeoutMs === undefined) return;
    pending.stopTimer?.();
    const spent = this.#options.clock.now() - pending.startedAt;
    const wait = maxTotalMs === undefined ? timeoutMs : Math.min(timeoutMs, maxTotalMs - spent);
    pending.stopTimer = this.#options.clock.after(Math.max(wait, 0), () => this.#timeOut(id, pending));
  }

  #timeOut(id: RequestId, pending: Pending): void {
    const spent = this.#options.clock.now() - pending.startedAt;
    const ceiling = pending.options.maxTotalMs;
    // A server that waits for our own answer, perhaps from a person, is not late.
    if (this.#served.busy && ceiling !== undefined && spent < ceiling) return this.#startTimer(id, pending);
    const seconds = Math.round(spent / 100) / 10;
    const text = `${pending.method} got no answer within ${seconds} s.`;
    const hint =
      "Raise the server's `toolTimeout` (calls) or `timeout` (connecting), or look at what the server is doing.";
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
    if (this.#abandoned.size > ABANDONED_KEPT && oldest.done !== true) this.#abandoned.delete(oldest.value);
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

  /** For messages that nobody waits on: if the wire is gone, `lost` says so. */
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
