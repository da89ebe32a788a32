/**
 * HTTP for the wires, on node:http with kept connections: built-in fetch is a large share of what a call costs, and
 * follows redirects with our credentials.
 */
import type { Agent, IncomingHttpHeaders, IncomingMessage, RequestOptions } from "node:http";
import type { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import { urlToHttpOptions } from "node:url";
import { ToolcribError } from "../../model/errors.ts";
import type { CancelSignal } from "../../model/cancel.ts";
import { HttpAgent, httpRequest, nodeHttps } from "./node-http.ts";
import type { Reach } from "./reach.ts";
import { addressOf, connectionError } from "./reasons.ts";

export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request and, later, the body of its answer. */
  readonly signal?: CancelSignal;
}

export interface HttpAnswer {
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

const CONNECT_MS = 10_000;
const MAX_REDIRECTS = 5;

export class HttpClient {
  // Answers may take for ever, so there is no limit of connections: one call must never wait for another.
  readonly #http = new HttpAgent({ keepAlive: true });
  #https: HttpsAgent | undefined;
  #target: Target | undefined;
  readonly #reach: Reach | undefined;

  /** @param reach Where requests may go, redirected ones too; anywhere if absent. */
  constructor(reach?: Reach) {
    this.#reach = reach;
  }

  /** Rejects with ToolcribError; `details.sent: false` says that the server cannot have seen the request. */
  async request(request: HttpRequest): Promise<HttpAnswer> {
    let url = request.url;
    for (let redirects = 0; ; redirects++) {
      const body = await this.#once(request, url);
      const status = body.statusCode ?? 0;
      if (status < 300 || status >= 400 || status === 304) return { status, headers: body.headers, body, url };
      body.resume();
      url = redirectTarget(status, body.headers.location, url, redirects);
    }
  }

  /** Ends every connection, those in use included. */
  destroy(): void {
    this.#http.destroy();
    this.#https?.destroy();
  }

  #agentFor(secure: boolean): Agent {
    if (!secure) return this.#http;
    return (this.#https ??= new (nodeHttps().Agent)({ keepAlive: true }));
  }

  /** Nearly all requests go to one address. */
  #targetOf(url: URL): Target {
    if (this.#target?.url !== url) this.#target = makeTarget(url, this.#reach);
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
      const request = secure ? nodeHttps().request(options) : httpRequest(options);
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
        noConnection = setTimeout(() => request.destroy(connectTimeout()), CONNECT_MS);
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
function makeTarget(url: URL, reach: Reach | undefined): Target {
  reach?.check(url);
  const { protocol, hostname, port, path, auth } = urlToHttpOptions(url);
  const basic = typeof auth === "string" ? `Basic ${Buffer.from(auth).toString("base64")}` : undefined;
  const secure = protocol === "https:";
  const options = { protocol, hostname, port, path, ...(reach === undefined ? {} : { lookup: reach.lookup(url) }) };
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
  const where = target === null ? "nowhere" : addressOf(target);
  throw new ToolcribError(
    "server_unavailable",
    `${addressOf(from)} redirects to ${where}, which is not followed (HTTP ${status})`,
    {
      hint: target === null ? undefined : "If you trust that address, use it as `url`.",
      // A redirect says that the request was not acted upon.
      details: { status, sent: false },
    },
  );
}

function connectTimeout(): Error {
  return Object.assign(new Error("connect timeout"), { code: "ETIMEDOUT" });
}

/** The server closed a kept connection just as we used it. Nearly always it has not seen the request, but nobody knows. */
function staleConnection(error: Error, url: URL): ToolcribError {
  const { message, details } = connectionError(error, url, true);
  return new ToolcribError("server_unavailable", message, { details: { ...details, stale: true }, cause: error });
}

function cancelled(sent: boolean): ToolcribError {
  return new ToolcribError("cancelled", "the request was cancelled", { details: { sent } });
}
