/**
 * HTTP for the wires, with kept connections: built-in fetch is a large share of what a call costs, and follows redirects with
 * our credentials.
 */
import { urlToHttpOptions } from "node:url";
import { CancelController, type CancelSignal, withAbort } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { AddressPolicy } from "./address-policy.ts";
import {
  type Endpoint,
  HttpConnection,
  type Pool,
  type ResponseBody,
  type ResponseHeaders,
} from "./http-connection.ts";
import { displayAddress, connectionError } from "./http-errors.ts";
import { notSent } from "../wire.ts";

/** Credentials that change while a wire is open, such as a token that is renewed before it ends or when it is refused. */
export interface WireCredentials {
  /** Names in lower case. */
  headers(): Promise<Readonly<Record<string, string>>>;
  /** Called for every 401 and 403. True: send the request once more, with what `headers()` returns then. */
  rejected(rejection: {
    readonly status: number;
    readonly challenge: string | undefined;
    readonly sent: Readonly<Record<string, string>>;
    readonly attempt: number;
  }): Promise<boolean>;
}

export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: URL;
  /** Where many requests have the same object, it is written out once. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request and, later, the body of its response. */
  readonly signal?: CancelSignal;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: ResponseBody;
  /** Where it came from in the end. */
  readonly url: URL;
}

interface Target extends Endpoint {
  readonly url: URL;
  readonly path: string;
  /** For user and password in the address. */
  readonly basic: string | undefined;
  readonly pool: Pool;
}

/** The text of a request up to the length of its body. */
interface RequestHead {
  readonly method: string;
  readonly target: Target;
  readonly headers: HttpRequest["headers"];
  readonly text: string;
}

const MAX_REDIRECTS = 5;
const SEE_OTHER = 303;

interface HttpClientOptions {
  readonly credentials?: WireCredentials | undefined;
  /** Where requests may go, redirected ones too; anywhere if absent. */
  readonly reach?: AddressPolicy | undefined;
}

export class HttpClient {
  // A response may take for ever, so connections are not limited: one call must never wait for another.
  readonly #connections = new Set<HttpConnection>();
  /** By origin. */
  readonly #pools = new Map<string, Pool>();
  #target: Target | undefined;
  #lastHead: RequestHead | undefined;
  readonly #options: HttpClientOptions;

  constructor(options: HttpClientOptions = {}) {
    this.#options = options;
  }

  /**
   * Rejects with ToolcribError; `details.sent: false` says that the server cannot have seen the request. Rejects with
   * whatever the credentials reject with, too.
   */
  request(request: HttpRequest): Promise<HttpResponse> {
    const { credentials } = this.#options;
    return credentials === undefined ? this.#followed(request) : this.#authorized(request, credentials);
  }

  async #authorized(request: HttpRequest, credentials: WireCredentials): Promise<HttpResponse> {
    for (let attempt = 1; ; attempt++) {
      const sent = await unlessAborted(credentials.headers(), request.signal);
      const response = await this.#followed({ ...request, headers: { ...request.headers, ...sent } });
      const { status } = response;
      if (status !== 401 && status !== 403) return response;
      const challenge = response.headers["www-authenticate"];
      try {
        const again = await unlessAborted(credentials.rejected({ status, challenge, sent, attempt }), request.signal);
        if (!again || attempt > 1) return response;
      } catch (error) {
        response.body.destroy();
        throw error;
      }
      void response.body.discard();
    }
  }

  /** Ends every connection, those in use included. */
  destroy(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  async #followed(request: HttpRequest): Promise<HttpResponse> {
    let url = request.url;
    for (let redirects = 0; ; redirects++) {
      const response = await this.#once(request, url);
      const { status, headers, body } = response;
      if (status < 300 || status >= 400 || status === 304) return response;
      void body.discard();
      url = redirectTarget(status, headers["location"], url, redirects);
    }
  }

  /** Nearly all requests go to one address. */
  #targetOf(url: URL): Target {
    if (this.#target?.url !== url) this.#target = makeTarget(url, this.#options.reach, this.#poolOf(url));
    return this.#target;
  }

  #poolOf({ origin }: URL): Pool {
    let pool = this.#pools.get(origin);
    if (pool === undefined) this.#pools.set(origin, (pool = { idle: [], session: undefined }));
    return pool;
  }

  #headOf(method: string, target: Target, headers: HttpRequest["headers"]): string {
    const last = this.#lastHead;
    if (last?.headers === headers && last.target === target && last.method === method) return last.text;
    const text = headText(method, target, headers);
    this.#lastHead = { method, target, headers, text };
    return text;
  }

  #once({ method, headers, body, signal }: HttpRequest, url: URL): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(cancelled(false));
        return;
      }
      const target = this.#targetOf(url);
      const head = this.#headOf(method, target, headers);
      // Head and body as one text, which is one write.
      const length = body === undefined ? "" : `content-length: ${Buffer.byteLength(body)}\r\n`;
      const text = `${head}${length}\r\n${body ?? ""}`;
      const connection = this.#connectionTo(target);
      const onAbort = (): void => {
        reject(cancelled(connection.isConnected));
        connection.destroy();
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      connection.send(text, {
        onResponse: (status, answered, answer) => resolve({ status, headers: answered, body: answer, url }),
        onFailure: (error) => {
          const isStale = connection.isReused && "code" in error && error.code === "ECONNRESET";
          reject(isStale ? staleConnection(error, url) : connectionError(error, url, connection.isConnected));
        },
        onOver: () => signal?.removeEventListener("abort", onAbort),
      });
    });
  }

  #connectionTo(target: Target): HttpConnection {
    const { pool } = target;
    for (let kept = pool.idle.pop(); kept !== undefined; kept = pool.idle.pop()) {
      if (kept.isUsable) return kept;
      kept.destroy();
    }
    const connection = new HttpConnection(target, pool, () => this.#connections.delete(connection));
    this.#connections.add(connection);
    return connection;
  }
}

/** Throws for an address that is out of reach. A name is judged when it is looked up. */
function makeTarget(url: URL, reach: AddressPolicy | undefined, pool: Pool): Target {
  reach?.check(url);
  const { protocol, hostname, port, path, auth } = urlToHttpOptions(url);
  const basic = typeof auth === "string" ? `Basic ${Buffer.from(auth).toString("base64")}` : undefined;
  const secure = protocol === "https:";
  const host = hostname ?? "";
  return {
    url,
    secure,
    host,
    port: Number(port ?? (secure ? 443 : 80)),
    path: path ?? "/",
    basic,
    pool,
    lookup: reach?.lookup(url),
  };
}

/** Throws for a header that would break it. */
function headText(method: string, { url, path, basic }: Target, headers: HttpRequest["headers"]): string {
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${url.host}\r\nconnection: keep-alive\r\n`;
  for (const name of Object.keys(headers)) {
    const value = headers[name] ?? "";
    http.validateHeaderName(name);
    http.validateHeaderValue(name, value);
    head += `${name}: ${value}\r\n`;
  }
  return basic === undefined || headers["authorization"] !== undefined ? head : `${head}authorization: ${basic}\r\n`;
}

function redirectTarget(status: number, location: string | undefined, from: URL, redirects: number): URL {
  const target = location === undefined ? null : URL.parse(location, from.href);
  // 307 and 308 keep method and body. Another origin must not get our credentials, nor the message.
  const follow = (status === 307 || status === 308) && redirects < MAX_REDIRECTS;
  if (follow && target !== null && isSameOrigin(target, from)) return target;
  const where = target === null ? "nowhere" : displayAddress(target);
  const message = `${displayAddress(from)} redirects to ${where}, which is not followed (HTTP ${status})`;
  const hint = target === null ? undefined : "If you trust that address, use it as `url`.";
  // A redirect says that the request was not acted upon, unless it is to see the result elsewhere.
  if (status !== SEE_OTHER) throw notSent("server_unavailable", message, hint, { status });
  throw new ToolcribError("server_unavailable", message, { hint, details: { status, sent: true } });
}

/** With the protocol, because the origin of `blob:https://a.example/` is that of the address in it. */
export function isSameOrigin(one: URL, other: URL): boolean {
  return one.origin === other.origin && one.protocol === other.protocol;
}

/** The server closed a kept connection just as we used it. Nearly always it has not seen the request, but that is not certain. */
function staleConnection(error: Error, url: URL): ToolcribError {
  const { message, details } = connectionError(error, url, true);
  return new ToolcribError("server_unavailable", message, { details: { ...details, stale: true }, cause: error });
}

function cancelled(sent: boolean): ToolcribError {
  return new ToolcribError("cancelled", "the request was cancelled", { details: { sent } });
}

/** A renewal goes on for others that want it; a caller that gave up does not wait for it. */
function unlessAborted<T>(work: Promise<T>, signal: CancelSignal | undefined): Promise<T> {
  return signal === undefined ? work : withAbort(work, signal, () => cancelled(false));
}

/** Of one server at a time. */
const MAX_ONE_WAY = 32;
const MAX_WAITING = 1000;
const ONE_WAY_MS = 30_000;

/**
 * Posts of messages that get no result, our answers to a server's requests included: no call's time limit ends them, and a server that
 * asks without end and takes no answer would use up the connections that the hub may have.
 */
export class DeliveryLimit {
  readonly #clock: Clock;
  #open = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the server has taken it. */
  async send(post: (signal: CancelSignal) => Promise<HttpResponse>): Promise<void> {
    if (this.#open < MAX_ONE_WAY) this.#open += 1;
    else if (this.#waiting.length < MAX_WAITING) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else throw notSent("server_unavailable", "the server has not taken what was sent to it before");
    const late = new CancelController();
    const stop = this.#clock.after(ONE_WAY_MS, () => late.abort());
    const end = (): void => {
      stop();
      const next = this.#waiting.shift();
      if (next === undefined) this.#open -= 1;
      else next();
    };
    try {
      const { body } = await post(late);
      void body.discard().then(end);
    } catch (error) {
      end();
      throw error;
    }
  }
}

export interface HttpWireOptions extends HttpClientOptions {
  readonly url: string;
  /** Sent with every request, to this origin only. They hold credentials and are never shown. */
  readonly headers: Readonly<Record<string, string>>;
  /** A larger message is dropped and its request fails; default 64 MiB. */
  readonly maxMessageBytes?: number;
  readonly clock?: Clock;
}

export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** Protocol and framing are the wire's own business; a user's value would break it. */
const RESERVED_HEADERS = new Set([
  "accept",
  "connection",
  "content-length",
  "content-type",
  "host",
  "transfer-encoding",
]);

export interface CheckedRemote {
  readonly url: URL;
  /** Names in lower case, so that one name has one value. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Checks the options of a wire before its first request. */
export function checkRemote(options: HttpWireOptions): CheckedRemote {
  const url = URL.parse(options.url);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw invalidRemote("the address is not a URL that begins with https:// or http://", "Correct `url`.");
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers)) {
    try {
      http.validateHeaderName(name);
      http.validateHeaderValue(name, value);
    } catch {
      const hint = "A line break at the end of a token is a common cause.";
      throw invalidRemote(`the header ${JSON.stringify(name)} contains a character that HTTP does not allow`, hint);
    }
    if (!RESERVED_HEADERS.has(name.toLowerCase())) headers[name.toLowerCase()] = value;
  }
  return { url, headers };
}

function invalidRemote(message: string, hint: string): ToolcribError {
  return notSent("invalid_config", message, hint);
}

/**
 * Not imported as a module: that evaluates the lazy parts of node:http as well, which load Node's whole fetch (12 MB and
 * 30 ms).
 */
const http = process.getBuiltinModule("node:http");
