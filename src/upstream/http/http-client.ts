/**
 * HTTP for the wires, on node:http with kept connections: built-in fetch is a large share of what a call costs, and
 * follows redirects with our credentials.
 */
import type { Agent, IncomingHttpHeaders, IncomingMessage, RequestOptions } from "node:http";
import type { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import { urlToHttpOptions } from "node:url";
import { type CancelSignal, withAbort } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { AddressPolicy } from "./address-policy.ts";
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
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request and, later, the body of its response. */
  readonly signal?: CancelSignal;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Must be read to its end or destroyed. */
  readonly body: IncomingMessage;
  /** Where it came from in the end. */
  readonly url: URL;
}

/** An address as node:http wants it. */
interface Target {
  readonly url: URL;
  readonly secure: boolean;
  readonly host: string;
  /** For user and password in the address. */
  readonly basic: string | undefined;
  readonly options: Readonly<RequestOptions>;
}

const CONNECT_TIMEOUT_MS = 10_000;
const MAX_REDIRECTS = 5;

interface HttpClientOptions {
  readonly credentials?: WireCredentials | undefined;
  /** Where requests may go, redirected ones too; anywhere if absent. */
  readonly reach?: AddressPolicy | undefined;
}

export class HttpClient {
  // A response may take for ever, so connections are not limited: one call must never wait for another.
  readonly #http = new http.Agent({ keepAlive: true });
  #https: HttpsAgent | undefined;
  #target: Target | undefined;
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
      discard(response.body);
    }
  }

  /** Ends every connection, those in use included. */
  destroy(): void {
    this.#http.destroy();
    this.#https?.destroy();
  }

  async #followed(request: HttpRequest): Promise<HttpResponse> {
    let url = request.url;
    for (let redirects = 0; ; redirects++) {
      const body = await this.#once(request, url);
      const status = body.statusCode ?? 0;
      if (status < 300 || status >= 400 || status === 304) return { status, headers: body.headers, body, url };
      body.resume();
      url = redirectTarget(status, body.headers.location, url, redirects);
    }
  }

  #agentFor(secure: boolean): Agent {
    if (!secure) return this.#http;
    return (this.#https ??= new (nodeHttps().Agent)({ keepAlive: true }));
  }

  /** Nearly all requests go to one address. */
  #targetOf(url: URL): Target {
    if (this.#target?.url !== url) this.#target = makeTarget(url, this.#options.reach);
    return this.#target;
  }

  #once({ method, headers, body, signal }: HttpRequest, url: URL): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(cancelled(false));
        return;
      }
      const target = this.#targetOf(url);
      const { secure } = target;
      const options = {
        ...target.options,
        method,
        agent: this.#agentFor(secure),
        headers: headerList(target, headers, body),
      };
      let connected = false;
      let noConnection: NodeJS.Timeout | undefined;
      const request = secure ? nodeHttps().request(options) : http.request(options);
      const onAbort = (): void => {
        request.destroy();
        reject(cancelled(connected));
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      // These three come once: `once` would only wrap each listener in another function.
      request.on("socket", (socket: Socket) => {
        if (request.reusedSocket) {
          connected = true;
          return;
        }
        // The agent has no limit of connections, so a socket is there at once.
        noConnection = setTimeout(() => {
          request.destroy(Object.assign(new Error("connect timeout"), { code: "ETIMEDOUT" }));
        }, CONNECT_TIMEOUT_MS);
        socket.once(secure ? "secureConnect" : "connect", () => {
          connected = true;
          clearTimeout(noConnection);
        });
      });
      request.on("response", resolve);
      request.on("error", (error) => {
        const stale = request.reusedSocket && "code" in error && error.code === "ECONNRESET";
        reject(stale ? staleConnection(error, url) : connectionError(error, url, connected));
      });
      // Comes after the body too, so the signal is watched as long as there is something to end, and no longer.
      request.on("close", () => {
        clearTimeout(noConnection);
        signal?.removeEventListener("abort", onAbort);
      });
      request.end(body);
    });
  }
}

/** Throws for an address that is out of reach. A name is judged when it is looked up. */
function makeTarget(url: URL, reach: AddressPolicy | undefined): Target {
  reach?.check(url);
  const { protocol, hostname, port, path, auth } = urlToHttpOptions(url);
  const basic = typeof auth === "string" ? `Basic ${Buffer.from(auth).toString("base64")}` : undefined;
  const secure = protocol === "https:";
  const options = { protocol, hostname, port, path, lookup: reach?.lookup(url) };
  return { url, secure, host: url.host, basic, options };
}

/** As a list Node sends the headers as they are, without keeping each one in a map of its own first. */
function headerList({ host, basic }: Target, headers: HttpRequest["headers"], body: string | undefined): string[] {
  const list = ["host", host];
  for (const name of Object.keys(headers)) list.push(name, headers[name] ?? "");
  if (basic !== undefined && headers["authorization"] === undefined) list.push("authorization", basic);
  if (body !== undefined) list.push("content-length", String(Buffer.byteLength(body)));
  return list;
}

function redirectTarget(status: number, location: string | undefined, from: URL, redirects: number): URL {
  const target = location === undefined ? null : URL.parse(location, from.href);
  // 307 and 308 keep method and body. Another origin must not get our credentials, nor the message.
  const follow = (status === 307 || status === 308) && target?.origin === from.origin && redirects < MAX_REDIRECTS;
  if (follow && target !== null) return target;
  const where = target === null ? "nowhere" : displayAddress(target);
  // A redirect says that the request was not acted upon.
  throw notSent(
    "server_unavailable",
    `${displayAddress(from)} redirects to ${where}, which is not followed (HTTP ${status})`,
    target === null ? undefined : "If you trust that address, use it as `url`.",
    { status },
  );
}

/** The server closed a kept connection just as we used it. Nearly always it has not seen the request, but that is not certain. */
function staleConnection(error: Error, url: URL): ToolcribError {
  const { message, details } = connectionError(error, url, true);
  return new ToolcribError("server_unavailable", message, { details: { ...details, stale: true }, cause: error });
}

function cancelled(sent: boolean): ToolcribError {
  return new ToolcribError("cancelled", "the request was cancelled", { details: { sent } });
}

/** Reads a body to its end without keeping it, so that its connection can be used again. */
export function discard(body: IncomingMessage): void {
  body.on("error", () => {}).resume();
}

/** A renewal goes on for others that want it; a caller that gave up does not wait for it. */
function unlessAborted<T>(work: Promise<T>, signal: CancelSignal | undefined): Promise<T> {
  return signal === undefined ? work : withAbort(work, signal, () => cancelled(false));
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

/** Loaded for the first address that needs it: TLS is 4 MB that a hub of local servers never uses. */
function nodeHttps(): typeof import("node:https") {
  return process.getBuiltinModule("node:https");
}
