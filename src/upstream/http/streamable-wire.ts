/**
 * StreamableWire: a remote server over Streamable HTTP, one POST per message. Each request's response is a JSON body or
 * an event stream of its own; a legacy session has one more stream, by GET, for what the server says by itself.
 * There is no lasting channel to lose: `lost` comes only when the server drops the session of an open stream.
 */
import type { CancelSignal } from "../../base/async.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { Emitter, type Listeners } from "../../base/emitter.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { RequestId, RpcMessage } from "../../model/protocol.ts";
import {
  type AgreedProtocol,
  decodeMessages,
  isRequest,
  isResponse,
  type SendOptions,
  ThrottledWarnings,
  type Wire,
  type WireEvents,
} from "../wire.ts";
import {
  type CheckedRemote,
  checkRemote,
  HttpClient,
  type HttpRequest,
  type HttpResponse,
  type HttpWireOptions,
  MAX_MESSAGE_BYTES,
  DeliveryLimit,
} from "./http-client.ts";
import { connectionCut } from "./http-connection.ts";
import { connectionError, notMcpError } from "./http-errors.ts";
import { claimedVersion, modernHeaders } from "./mcp-headers.ts";
import {
  deliverEvent,
  deliverMessages,
  type EventDelivery,
  isEventStream,
  isSuccess,
  readEvents,
  readText,
  responseError,
  type SseEvent,
} from "./response-body.ts";

const END_SESSION_TIMEOUT_MS = 2000;

/** Of every POST, in a session and under an agreement. */
interface CommonHeaders {
  readonly session: string | undefined;
  readonly agreed: AgreedProtocol | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

export class StreamableWire implements Wire {
  readonly transport = "http";
  readonly #options: HttpWireOptions;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #events = new Emitter<WireEvents>();
  readonly #malformed: ThrottledWarnings;
  readonly #client: HttpClient;
  readonly #oneWay: DeliveryLimit;
  readonly #resumed = new Set<ResumableStream>();
  #remote: CheckedRemote | undefined;
  #session: string | undefined;
  #agreed: AgreedProtocol | undefined;
  #initialized = false;
  #common: CommonHeaders | undefined;
  #serverStream: ResumableStream | undefined;
  /** Lost or closed: nothing is sent or reported any more. */
  #ended = false;
  #closed = false;

  constructor(options: HttpWireOptions) {
    this.#options = options;
    this.#client = new HttpClient(options);
    this.#clock = options.clock ?? systemClock;
    this.#oneWay = new DeliveryLimit(this.#clock);
    this.#maxBytes = options.maxMessageBytes ?? MAX_MESSAGE_BYTES;
    this.#malformed = new ThrottledWarnings(this.#clock, (text) => this.#emit("warning", text));
  }

  listen(listeners: Listeners<WireEvents>): () => void {
    return this.#events.listen(listeners);
  }

  /** Only checks address and headers: the first message is the first request. */
  async open(_signal: AbortSignal): Promise<void> {
    this.#remote = checkRemote(this.#options);
  }

  agreed(protocol: AgreedProtocol): void {
    this.#agreed = protocol;
    this.#openServerStream();
  }

  async send(message: RpcMessage, options: SendOptions = {}): Promise<void> {
    if (!isRequest(message)) return this.#sendOneWay(message, options);
    const isInitialize = message.method === "initialize";
    // A new handshake on the same wire: what was agreed before is over.
    if (isInitialize) this.#forgetSession();
    const session = this.#session;
    const response = await this.#post(message, options);
    if (!isSuccess(response)) throw await this.#refusal(response, session);
    if (isInitialize) this.#session = response.headers["mcp-session-id"];
    this.#receive(response, message, options.signal);
  }

  async #sendOneWay(message: RpcMessage, options: SendOptions): Promise<void> {
    await this.#oneWay.send(async (signal) => {
      const session = this.#session;
      const response = await this.#post(message, { ...options, signal });
      if (!isSuccess(response)) throw await this.#refusal(response, session);
      // Nothing is expected; an event stream would never end by itself.
      if (isEventStream(response)) response.body.destroy();
      return response;
    });
    if ("method" in message && message.method === "notifications/initialized") {
      this.#initialized = true;
      this.#openServerStream();
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const session = this.#session;
    const headers = this.#headers();
    this.#end();
    // Every request in progress is cut off first; the client makes new connections after that as before.
    this.#client.destroy();
    if (session !== undefined && this.#remote !== undefined) {
      const signal = AbortSignal.timeout(END_SESSION_TIMEOUT_MS);
      // Servers may refuse it (405), and one that is gone needs no goodbye.
      await this.#client.request({ method: "DELETE", url: this.#remote.url, headers, signal }).catch(() => {});
    }
    this.#client.destroy();
  }

  /** The status was a success: what can still go wrong concerns this one request. */
  #receive(response: HttpResponse, request: { id: RequestId } & RpcMessage, signal: CancelSignal | undefined): void {
    const { id } = request;
    const isModern = this.#agreed?.era === "modern" || claimedVersion(request) !== undefined;
    const reading: ResponseHandlers = {
      id,
      clock: this.#clock,
      maxBytes: this.#maxBytes,
      onMessage: (incoming) => this.#emit("message", { message: incoming, related: id }),
      onMalformed: (what, sample) => this.#malformed.add(what, sample),
      onFailed: (error) => {
        if (signal?.aborted !== true) this.#emit("failed", { id, error });
      },
      // The modern era has no resumption: a cut stream is a cancelled request.
      resume: isModern ? null : (lastEventId, retryMs) => this.#resume(reading, lastEventId, retryMs, signal),
    };
    readResponse(response, reading);
  }

  /** Asks for the rest of a response whose stream ended early. */
  #resume(
    reading: ResponseHandlers,
    lastEventId: string,
    retryMs: number | undefined,
    signal: CancelSignal | undefined,
  ): void {
    if (this.#ended || signal?.aborted === true) return;
    const stop = (): void => {
      stream.stop();
      this.#resumed.delete(stream);
      signal?.removeEventListener("abort", stop);
    };
    const fail = (error: ToolcribError): void => {
      stop();
      reading.onFailed(error);
    };
    const stream = new ResumableStream({
      clock: this.#clock,
      maxEventBytes: this.#maxBytes,
      maxAttempts: 5,
      lastEventId,
      retryMs,
      connect: (from, cut) => this.#get(from, cut),
      onEvent: (event) => {
        if (deliverEvent(event, reading)) stop();
      },
      onOversize: fail,
      onRefused: fail,
    });
    this.#resumed.add(stream);
    signal?.addEventListener("abort", stop, { once: true });
    stream.startLater();
  }

  /** Not before the server heard `initialized`: some refuse the stream until then. */
  #openServerStream(): void {
    if (this.#agreed?.era !== "legacy" || !this.#initialized || this.#serverStream !== undefined || this.#ended) return;
    this.#serverStream = new ResumableStream({
      clock: this.#clock,
      maxEventBytes: this.#maxBytes,
      connect: (from, cut) => this.#get(from, cut),
      onEvent: (event) =>
        deliverEvent(event, {
          onMessage: (message) => this.#emit("message", { message }),
          onMalformed: (what, sample) => this.#malformed.add(what, sample),
        }),
      onOversize: (error) => this.#malformed.add(error.message),
      onOutage: (error) => this.#emit("warning", `the stream of the server's own messages is down: ${error.message}`),
      onRefused: (error, wasOpen) => this.#streamRefused(error, wasOpen),
    });
    this.#serverStream.start();
  }

  #streamRefused(error: ToolcribError, wasOpen: boolean): void {
    const status = error.details?.["status"];
    if (status === 404 && wasOpen && this.#session !== undefined) {
      const text = "the server has ended the session";
      const lost = new ToolcribError("server_unavailable", text, { details: { ...error.details, sessionLost: true } });
      this.#session = undefined;
      this.#emit("lost", lost);
      this.#end();
    } else if (status !== 404 && status !== 405 && status !== 501) {
      // Those three say that the server has no such stream, which is its right.
      this.#emit("warning", `the server's own messages cannot be received: ${error.message}`);
    }
  }

  async #post(message: RpcMessage, options: SendOptions): Promise<HttpResponse> {
    if (this.#remote === undefined || this.#ended) {
      throw new ToolcribError("server_unavailable", "the connection is closed", { details: { sent: false } });
    }
    const version = this.#agreed?.era === "modern" ? this.#agreed.version : claimedVersion(message);
    const request: HttpRequest = {
      method: "POST",
      url: this.#remote.url,
      headers:
        version === undefined && options.headers === undefined
          ? this.#postHeaders()
          : {
              ...this.#postHeaders(),
              ...(version === undefined ? {} : modernHeaders(message, version)),
              ...options.headers,
            },
      body: JSON.stringify(message),
      signal: options.signal,
    };
    try {
      return await this.#client.request(request);
    } catch (thrown) {
      const error = asToolcribError(thrown);
      const isCall = "method" in message && message.method === "tools/call";
      // Whether a call may run twice is not for the wire to say; everything else may.
      if (error.details?.["stale"] === true && !isCall && !this.#ended) return this.#client.request(request);
      throw error;
    }
  }

  #get(lastEventId: string | undefined, signal: AbortSignal): Promise<HttpResponse> {
    if (this.#remote === undefined) throw new ToolcribError("internal", "the wire is not open");
    const headers = {
      ...this.#headers(),
      accept: "text/event-stream",
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    };
    return this.#client.request({ method: "GET", url: this.#remote.url, headers, signal });
  }

  /** The same object for as long as they stay the same. */
  #postHeaders(): Readonly<Record<string, string>> {
    const [session, agreed] = [this.#session, this.#agreed];
    if (this.#common === undefined || this.#common.session !== session || this.#common.agreed !== agreed) {
      const accept = "application/json, text/event-stream";
      const headers = { ...this.#headers(), "content-type": "application/json", accept };
      this.#common = { session, agreed, headers };
    }
    return this.#common.headers;
  }

  #headers(): Record<string, string> {
    return {
      ...this.#remote?.headers,
      ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
      ...(this.#agreed === undefined ? {} : { "mcp-protocol-version": this.#agreed.version }),
    };
  }

  async #refusal(response: HttpResponse, session: string | undefined): Promise<ToolcribError> {
    const { status } = response;
    const error = await responseError(response);
    const rpc = error.details?.["rpc"];
    // The rule is 404. Servers made from the SDK's examples say 400 with a message about the session.
    const says = typeof rpc === "object" && rpc !== null && "message" in rpc ? String(rpc.message) : "";
    const sessionLost = session !== undefined && (status === 404 || (status === 400 && /session/i.test(says)));
    if (!sessionLost) return error;
    if (this.#session === session) this.#session = undefined;
    const details = { ...error.details, sessionLost: true, sent: false };
    return new ToolcribError("server_unavailable", "the server no longer knows the session", { details });
  }

  #forgetSession(): void {
    this.#session = undefined;
    this.#agreed = undefined;
    this.#initialized = false;
    this.#serverStream?.stop();
    this.#serverStream = undefined;
  }

  #end(): void {
    this.#ended = true;
    this.#forgetSession();
    for (const stream of this.#resumed) stream.stop();
    this.#resumed.clear();
  }

  #emit<Name extends keyof WireEvents>(name: Name, event: WireEvents[Name]): void {
    if (!this.#ended) this.#events.emit(name, event);
  }
}

interface ResponseHandlers extends EventDelivery {
  readonly id: RequestId;
  readonly clock: Clock;
  readonly maxBytes: number;
  readonly onFailed: (error: ToolcribError) => void;
  /** Takes over a stream that ended before the response, or null where that cannot be. */
  readonly resume: ((lastEventId: string, retryMs: number | undefined) => void) | null;
}

/** A stream should end with the response; one that does not is cut after this, so that connections do not pile up. */
const LINGER_MS = 1000;
const JSON_TYPE = "application/json";

/**
 * Reads the response to a POST that carried a request. Throws if its content type alone shows that it is not MCP. After that
 * the request always ends: with its result, or through `onFailed`.
 */
function readResponse(response: HttpResponse, options: ResponseHandlers): void {
  const contentType = response.headers["content-type"];
  const kind = contentType === JSON_TYPE ? JSON_TYPE : contentType?.split(";")[0]?.trim().toLowerCase();
  if (kind === "text/event-stream") return readStream(response, options);
  if (kind === JSON_TYPE) {
    readText(response.body, response.url, options.maxBytes).then(
      (text) => readJson(text, options),
      (error: unknown) => options.onFailed(asToolcribError(error)),
    );
    return;
  }
  void response.body.discard();
  throw notMcpError(contentType, response.url);
}

function readJson(text: string, options: ResponseHandlers): void {
  const messages = decodeMessages(text);
  if (messages === null) {
    options.onMalformed("a response of the server is not a JSON-RPC message", text);
    options.onFailed(unanswered("the server's response is not valid JSON-RPC"));
    return;
  }
  // An error without an id can only be about the one request that was in the POST.
  const only = messages.length === 1 ? messages[0] : undefined;
  if (only !== undefined && isResponse(only) && only.id === null && "error" in only) {
    options.onFailed(new ToolcribError("tool_error", only.error.message, { details: { rpc: only.error, sent: true } }));
    return;
  }
  if (!deliverMessages(messages, options)) options.onFailed(unanswered("the server's response is for another request"));
}

function readStream({ body, url }: HttpResponse, options: ResponseHandlers): void {
  let answered = false;
  let cancelLinger: () => void = () => {};
  readEvents(body, {
    maxEventBytes: options.maxBytes,
    onEvent: (event) => {
      if (!deliverEvent(event, options)) return;
      answered = true;
      cancelLinger();
      cancelLinger = options.clock.after(LINGER_MS, () => body.destroy());
    },
    onOversize: (error) => {
      if (!answered) options.onFailed(error);
      answered = true;
      body.destroy();
    },
    onEnd: (parser, error) => {
      cancelLinger();
      if (answered) return;
      if (options.resume !== null && parser.lastEventId !== undefined)
        options.resume(parser.lastEventId, parser.retryMs);
      else if (error !== undefined) options.onFailed(connectionError(error, url, true));
      else options.onFailed(unanswered("the server ended the stream before the response"));
    },
  });
}

function unanswered(message: string): ToolcribError {
  return new ToolcribError("server_unavailable", message, { details: { sent: true } });
}

interface ResumableStreamOptions {
  readonly clock: Clock;
  readonly maxEventBytes: number;
  readonly connect: (lastEventId: string | undefined, signal: AbortSignal) => Promise<HttpResponse>;
  readonly onEvent: (event: SseEvent) => void;
  readonly onOversize: (error: ToolcribError) => void;
  /** The stream is over for good: refused by the server, or out of attempts. `wasOpen` if it had been open before. */
  readonly onRefused: (error: ToolcribError, wasOpen: boolean) => void;
  /** Once per outage. */
  readonly onOutage?: (error: ToolcribError) => void;
  /** Failed attempts in a row; without it, they are not limited. */
  readonly maxAttempts?: number;
  readonly lastEventId?: string | undefined;
  readonly retryMs?: number | undefined;
}

const FIRST_DELAY_MS = 1000;
/** One that asks for no wait at all and ends each stream would have the hub do nothing else. */
const MIN_DELAY_MS = 100;
const MAX_DELAY_MS = 30_000;
/** A server may ask for a longer wait than ours, but not for ever. */
const MAX_RETRY_MS = 300_000;
/** A stream that lasted this long was a good one, even if nothing came. */
const MIN_HEALTHY_MS = 5000;

/** The server may do better later: it restarts, is busy, or still holds the stream that was cut. */
const TRANSIENT_STATUSES = new Set([408, 409, 425, 429]);

/**
 * An event stream by GET that is opened again after every cut, from the last event that was seen: the stream for a
 * server's own messages, and the rest of a response whose stream was cut.
 */
class ResumableStream {
  readonly #options: ResumableStreamOptions;
  readonly #abort = new AbortController();
  #lastEventId: string | undefined;
  #retryMs: number | undefined;
  #failures = 0;
  #wasOpen = false;
  #isOut = false;
  #cancelTimer: () => void = () => {};

  constructor(options: ResumableStreamOptions) {
    this.#options = options;
    this.#lastEventId = options.lastEventId;
    this.#retryMs = options.retryMs;
  }

  start(): void {
    void this.#connect();
  }

  /** As after a cut: when the server's or our own delay is over. */
  startLater(): void {
    this.#cancelTimer = this.#options.clock.after(this.#delay(), () => void this.#connect());
  }

  stop(): void {
    this.#cancelTimer();
    this.#abort.abort();
  }

  get #stopped(): boolean {
    return this.#abort.signal.aborted;
  }

  async #connect(): Promise<void> {
    let response: HttpResponse;
    try {
      response = await this.#options.connect(this.#lastEventId, this.#abort.signal);
    } catch (error) {
      this.#failed(asToolcribError(error));
      return;
    }
    const { status, headers, body, url } = response;
    if (!isSuccess(response)) {
      const error = await responseError(response);
      if (status >= 500 || TRANSIENT_STATUSES.has(status)) this.#failed(error);
      else this.#refuse(error);
      return;
    }
    if (!isEventStream(response)) {
      body.destroy();
      this.#refuse(notMcpError(headers["content-type"], url));
      return;
    }
    this.#read(response);
  }

  #read({ body, url }: HttpResponse): void {
    const openedAt = this.#options.clock.now();
    this.#wasOpen = true;
    this.#isOut = false;
    let useful = false;
    readEvents(body, {
      maxEventBytes: this.#options.maxEventBytes,
      onEvent: (event) => {
        useful = true;
        if (!this.#stopped) this.#options.onEvent(event);
      },
      onOversize: (error) => this.#options.onOversize(error),
      onEnd: (parser, cause) => {
        this.#lastEventId = parser.lastEventId ?? this.#lastEventId;
        this.#retryMs = parser.retryMs ?? this.#retryMs;
        if (useful || this.#options.clock.now() - openedAt >= MIN_HEALTHY_MS) this.#failures = 0;
        this.#failed(connectionError(cause ?? connectionCut(), url, true), cause !== undefined);
      },
    });
  }

  /** An end that the server chose is not an outage, but the stream is opened again all the same. */
  #failed(error: ToolcribError, isOutage = true): void {
    if (this.#stopped) return;
    const delay = this.#delay();
    this.#failures++;
    if (this.#options.maxAttempts !== undefined && this.#failures > this.#options.maxAttempts) {
      this.#refuse(error);
      return;
    }
    if (isOutage && !this.#isOut) {
      this.#isOut = true;
      this.#options.onOutage?.(error);
    }
    this.#cancelTimer = this.#options.clock.after(delay, () => void this.#connect());
  }

  #refuse(error: ToolcribError): void {
    if (this.#stopped) return;
    this.stop();
    this.#options.onRefused(error, this.#wasOpen);
  }

  #delay(): number {
    const asked = Math.min(this.#retryMs ?? 0, MAX_RETRY_MS);
    const base = Math.max(MIN_DELAY_MS, this.#retryMs ?? FIRST_DELAY_MS);
    return Math.max(asked, Math.min(base * 2 ** this.#failures, MAX_DELAY_MS));
  }
}
