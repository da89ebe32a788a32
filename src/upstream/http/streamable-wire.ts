/**
 * StreamableWire: a remote server over Streamable HTTP, one POST per message. Each request's answer is a JSON body or
 * an event stream of its own; a legacy session has one more stream, by GET, for what the server says by itself.
 * There is no lasting channel to lose: `lost` comes only when the server drops the session of an open stream.
 */
import { type Clock, systemClock } from "../../model/clock.ts";
import { Emitter } from "../../model/emitter.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { CancelSignal } from "../../model/cancel.ts";
import { isRequest } from "../decode.ts";
import { JunkWarnings } from "../junk-warnings.ts";
import type { AgreedProtocol, SendOptions, Wire, WireEvents } from "../wire.ts";
import type { RequestId, RpcMessage } from "../../model/rpc.ts";
import { type ReadOptions, readAnswer } from "./answer-reader.ts";
import { AuthorizedClient } from "./authorized-client.ts";
import type { HttpAnswer, HttpRequest } from "./http-client.ts";
import { checkRemote, type HttpWireOptions, MAX_MESSAGE_BYTES, type Remote } from "./http-options.ts";
import { claimedVersion, modernHeaders } from "./message-headers.ts";
import { readErrorText } from "./read-body.ts";
import { statusError } from "./reasons.ts";
import { ResumableStream } from "./resumable-stream.ts";
import { deliverEvent } from "./deliver-event.ts";

const END_SESSION_MS = 2000;

export class StreamableWire implements Wire {
  readonly transport = "http";
  readonly #options: HttpWireOptions;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #events = new Emitter<WireEvents>();
  readonly #junk: JunkWarnings;
  readonly #client: AuthorizedClient;
  readonly #resumed = new Set<ResumableStream>();
  #remote: Remote | undefined;
  #session: string | undefined;
  #agreed: AgreedProtocol | undefined;
  #initialized = false;
  #serverStream: ResumableStream | undefined;
  /** Lost or closed: nothing is sent or told any more. */
  #ended = false;
  #closed = false;

  constructor(options: HttpWireOptions) {
    this.#options = options;
    this.#client = new AuthorizedClient(options.credentials, options.reach);
    this.#clock = options.clock ?? systemClock;
    this.#maxBytes = options.maxMessageBytes ?? MAX_MESSAGE_BYTES;
    this.#junk = new JunkWarnings(this.#clock, (text) => this.#emit("warning", text));
  }

  on<Name extends keyof WireEvents>(name: Name, listener: (event: WireEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
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
    const isInitialize = "method" in message && message.method === "initialize";
    // A new handshake on the same wire: what was agreed before is over.
    if (isInitialize) this.#forgetSession();
    const session = this.#session;
    const answer = await this.#post(message, options);
    if (answer.status < 200 || answer.status >= 300) throw await this.#refusal(answer, session);
    if (isInitialize) this.#session = headerOf(answer, "mcp-session-id");
    if (isRequest(message)) return this.#receive(answer, message, options.signal);
    // Nothing is expected; an event stream would never end by itself.
    if (headerOf(answer, "content-type")?.startsWith("text/event-stream") === true) answer.body.destroy();
    else answer.body.on("error", () => {}).resume();
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
    // Every request under way is cut first; the client makes new connections after that as before.
    this.#client.destroy();
    if (session !== undefined && this.#remote !== undefined) {
      const signal = AbortSignal.timeout(END_SESSION_MS);
      // Servers may refuse it (405), and one that is gone needs no goodbye.
      await this.#client.request({ method: "DELETE", url: this.#remote.url, headers, signal }).catch(() => {});
    }
    this.#client.destroy();
  }

  /** No `notMcp` answer, no error status: what is left to go wrong concerns this one request. */
  #receive(answer: HttpAnswer, request: { id: RequestId } & RpcMessage, signal: CancelSignal | undefined): void {
    const { id } = request;
    const isModern = this.#agreed?.era === "modern" || claimedVersion(request) !== undefined;
    const reading: ReadOptions = {
      id,
      clock: this.#clock,
      maxBytes: this.#maxBytes,
      onMessage: (incoming) => this.#emit("message", { message: incoming, related: id }),
      onJunk: (what, sample) => this.#junk.add(what, sample),
      onFailed: (error) => {
        if (signal?.aborted !== true) this.#emit("failed", { id, error });
      },
      // The modern era has no resumption: a cut stream is a cancelled request.
      resume: isModern ? null : (lastEventId, retryMs) => this.#resume(reading, lastEventId, retryMs, signal),
    };
    readAnswer(answer, reading);
  }

  /** Asks for the rest of an answer whose stream ended early. */
  #resume(
    reading: ReadOptions,
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
          onJunk: (what, sample) => this.#junk.add(what, sample),
        }),
      onOversize: (error) => this.#junk.add(error.message),
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

  async #post(message: RpcMessage, options: SendOptions): Promise<HttpAnswer> {
    if (this.#remote === undefined || this.#ended) {
      throw new ToolcribError("server_unavailable", "the connection is closed", { details: { sent: false } });
    }
    const version = this.#agreed?.era === "modern" ? this.#agreed.version : claimedVersion(message);
    const request: HttpRequest = {
      method: "POST",
      url: this.#remote.url,
      headers: {
        ...this.#headers(),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
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

  #get(lastEventId: string | undefined, signal: AbortSignal): Promise<HttpAnswer> {
    if (this.#remote === undefined) throw new ToolcribError("internal", "the wire is not open");
    const headers = {
      ...this.#headers(),
      accept: "text/event-stream",
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    };
    return this.#client.request({ method: "GET", url: this.#remote.url, headers, signal });
  }

  #headers(): Record<string, string> {
    return {
      ...this.#remote?.headers,
      ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
      ...(this.#agreed === undefined ? {} : { "mcp-protocol-version": this.#agreed.version }),
    };
  }

  async #refusal(answer: HttpAnswer, session: string | undefined): Promise<ToolcribError> {
    const { status, headers, body, url } = answer;
    const error = statusError({ status, headers, url, body: await readErrorText(body, url) });
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

function headerOf(answer: HttpAnswer, name: "content-type" | "mcp-session-id"): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
