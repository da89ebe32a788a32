/**
 * SseWire: a remote server over HTTP+SSE, the transport of 2024-11-05: one event stream for everything that the
 * server says, whose first event names the address for our POSTs. The end of the stream is the end of the wire.
 */
import { systemClock } from "../../base/clock.ts";
import { Emitter, type Listeners } from "../../base/emitter.ts";
import {
  type AgreedProtocol,
  isRequest,
  notSent,
  type SendOptions,
  ThrottledWarnings,
  type Wire,
  type WireEvents,
} from "../wire.ts";
import type { RpcMessage } from "../../model/protocol.ts";
import { deliverEvent, isEventStream, isSuccess, readEvents, responseError } from "./response-body.ts";
import {
  type CheckedRemote,
  checkRemote,
  HttpClient,
  type HttpResponse,
  type HttpWireOptions,
  isSameOrigin,
  MAX_MESSAGE_BYTES,
  DeliveryLimit,
} from "./http-client.ts";
import { connectionCut } from "./http-connection.ts";
import { displayAddress, connectionError, notMcpError } from "./http-errors.ts";

export class SseWire implements Wire {
  readonly transport = "sse";
  readonly #options: HttpWireOptions;
  readonly #events = new Emitter<WireEvents>();
  readonly #malformed: ThrottledWarnings;
  readonly #client: HttpClient;
  readonly #oneWay: DeliveryLimit;
  #remote: CheckedRemote | undefined;
  /** Where our messages go; known once the wire is open. */
  #endpoint: URL | undefined;
  #version: string | undefined;
  #ended = false;

  constructor(options: HttpWireOptions) {
    this.#options = options;
    this.#client = new HttpClient(options);
    const { clock = systemClock } = options;
    this.#oneWay = new DeliveryLimit(clock);
    this.#malformed = new ThrottledWarnings(clock, (text) => this.#emit("warning", text));
  }

  listen(listeners: Listeners<WireEvents>): () => void {
    return this.#events.listen(listeners);
  }

  /** Aborting `signal` later does nothing: it only bounds the opening. */
  async open(signal: AbortSignal): Promise<void> {
    const { url, headers } = (this.#remote = checkRemote(this.#options));
    const opening = new AbortController();
    const cut = (): void => opening.abort();
    if (signal.aborted) cut();
    signal.addEventListener("abort", cut, { once: true });
    try {
      const accepting = { ...headers, accept: "text/event-stream" };
      const request = { method: "GET", url, headers: accepting, signal: opening.signal } as const;
      const response = await this.#client.request(request);
      await this.#checkStream(response);
      this.#endpoint = await this.#read(response);
    } catch (error) {
      this.#ended = true;
      this.#client.destroy();
      if (!signal.aborted) throw error;
      throw notSent("cancelled", "opening the connection was cancelled");
    } finally {
      signal.removeEventListener("abort", cut);
    }
  }

  agreed(protocol: AgreedProtocol): void {
    this.#version = protocol.version;
  }

  async send(message: RpcMessage, options: SendOptions = {}): Promise<void> {
    // The result comes on the event stream.
    if (isRequest(message)) void (await this.#post(message, options)).body.discard();
    else await this.#oneWay.send((signal) => this.#post(message, { ...options, signal }));
  }

  async #post(message: RpcMessage, options: SendOptions): Promise<HttpResponse> {
    const url = this.#endpoint;
    if (url === undefined || this.#ended) throw notSent("server_unavailable", "the connection is closed");
    const response = await this.#client.request({
      method: "POST",
      url,
      headers: {
        ...this.#remote?.headers,
        "content-type": "application/json",
        ...(this.#version === undefined ? {} : { "mcp-protocol-version": this.#version }),
        ...options.headers,
      },
      body: JSON.stringify(message),
      signal: options.signal,
    });
    if (!isSuccess(response)) throw await responseError(response);
    return response;
  }

  async close(): Promise<void> {
    this.#ended = true;
    this.#client.destroy();
  }

  async #checkStream(response: HttpResponse): Promise<void> {
    if (!isSuccess(response)) throw await responseError(response);
    if (isEventStream(response)) return;
    response.body.destroy();
    throw notMcpError(response.headers["content-type"], response.url);
  }

  /** Resolves with the endpoint; goes on reading after that. */
  #read({ body, url }: HttpResponse): Promise<URL> {
    return new Promise((resolve, reject) => {
      readEvents(body, {
        maxEventBytes: this.#options.maxMessageBytes ?? MAX_MESSAGE_BYTES,
        onEvent: (event) => {
          if (event.event !== "endpoint") {
            deliverEvent(event, {
              onMessage: (message) => this.#emit("message", { message }),
              onMalformed: (what, sample) => this.#malformed.add(what, sample),
            });
            return;
          }
          try {
            resolve(endpointFrom(event.data, url));
          } catch (error) {
            body.destroy();
            reject(error);
          }
        },
        onOversize: (error) => this.#malformed.add(error.message),
        onEnd: (_parser, error) => {
          const lost = connectionError(error ?? connectionCut(), url, true);
          reject(lost);
          if (this.#endpoint === undefined || this.#ended) return;
          this.#emit("lost", lost);
          this.#ended = true;
        },
      });
    });
  }

  #emit<Name extends keyof WireEvents>(name: Name, event: WireEvents[Name]): void {
    if (!this.#ended) this.#events.emit(name, event);
  }
}

/** Our credentials go to the endpoint with every message, so it must be where the stream is. */
function endpointFrom(data: string, stream: URL): URL {
  const endpoint = URL.parse(data.trim(), stream.href);
  if (endpoint !== null && isSameOrigin(endpoint, stream)) return endpoint;
  const where = endpoint === null ? "an address that is not a URL" : displayAddress(endpoint);
  throw notSent(
    "server_unavailable",
    `${displayAddress(stream)} wants its messages at ${where}, which is another origin`,
    "The server or a proxy before it is set up with the wrong public address.",
  );
}
