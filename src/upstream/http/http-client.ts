/**
 * HTTP for the wires, on node:http with kept connections: built-in fetch is a large share of what a call costs, and
 * follows redirects with our credentials.
 */
import { Agent as HttpAgent, type IncomingHttpHeaders, type IncomingMessage, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { urlToHttpOptions } from "node:url";
import { ToolcribError } from "../../model/errors.ts";
import { addressOf, connectionError } from "./reasons.ts";

export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request and, later, the body of its answer. */
  readonly signal?: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Must be read to its end or destroyed. */
  readonly body: IncomingMessage;
  /** Where it came from in the end. */
  readonly url: URL;
}

const CONNECT_MS = 10_000;
const MAX_REDIRECTS = 5;

export class HttpClient {
  // Answers may take for ever, so there is no limit of connections: one call must never wait for another.
  readonly #http = new HttpAgent({ keepAlive: true });
  readonly #https = new HttpsAgent({ keepAlive: true });

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
    this.#https.destroy();
  }

  #once({ method, headers, body, signal }: HttpRequest, url: URL): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(cancelled(false));
        return;
      }
      const secure = url.protocol === "https:";
      const options = {
        ...urlToHttpOptions(url),
        method,
        agent: secure ? this.#https : this.#http,
        headers: body === undefined ? headers : { ...headers, "content-length": Buffer.byteLength(body) },
      };
      let connected = false;
      const request = secure ? httpsRequest(options) : httpRequest(options);
      const onAbort = (): void => {
        request.destroy();
        reject(cancelled(connected));
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      const noConnection = setTimeout(() => request.destroy(connectTimeout()), CONNECT_MS);
      const onConnected = (): void => {
        connected = true;
        clearTimeout(noConnection);
      };
      request.once("socket", (socket: Socket) => {
        if (request.reusedSocket) onConnected();
        else socket.once(secure ? "secureConnect" : "connect", onConnected);
      });
      request.once("response", resolve);
      request.on("error", (error) => {
        const stale = request.reusedSocket && "code" in error && error.code === "ECONNRESET";
        reject(stale ? staleConnection(error, url) : connectionError(error, url, connected));
      });
      // Comes after the body too, so the signal is watched as long as there is something to end, and no longer.
      request.once("close", () => {
        clearTimeout(noConnection);
        signal?.removeEventListener("abort", onAbort);
      });
      request.end(body);
    });
  }
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
