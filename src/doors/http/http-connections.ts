/** Connections of the listener: upgrades to WebSockets, pending responses, and requests that cannot be parsed. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ErrorCode, ERROR_TABLE, type ToolcribError } from "../../model/errors.ts";
import type { HttpRequest, HttpResponse } from "./http-exchange.ts";
import { rawErrorResponse } from "./http-responses.ts";

// Not imported as a module: that loads Node's whole fetch as well.
const { ServerResponse: Response, STATUS_CODES } = process.getBuiltinModule("node:http");

/** The connection of a request that wants to speak another protocol. */
export interface UpgradedConnection {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  /** From here on the route responds. */
  readonly detach: () => void;
}

interface UpgradeOptions {
  /** The pending responses. */
  readonly answers: PendingResponses;
  /** Whether a route takes over connections at the place that is asked for. */
  readonly acceptsUpgrade: (request: IncomingMessage) => boolean;
  /** Checks the request, and responds or passes the connection to a route. */
  readonly take: (request: HttpRequest, response: HttpResponse, takeover: UpgradedConnection) => void;
}

export class Upgrades {
  readonly #parts: UpgradeOptions;
  readonly #open = new Set<Duplex>();

  constructor(parts: UpgradeOptions) {
    this.#parts = parts;
  }

  /** For `createServer`. Versions of Node before 24.9 do not ask, and pass every request that has an `Upgrade`. */
  readonly shouldUpgrade = (request: IncomingMessage): boolean => {
    const { method, headers } = request;
    const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
    return method === "GET" && headers.upgrade !== undefined && !hasBody && this.#parts.acceptsUpgrade(request);
  };

  listen(server: Server): void {
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#take(server, request, socket, head);
    });
  }

  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #take(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const onError = (): void => void socket.destroy();
    const onClose = (): void => void this.#open.delete(socket);
    this.#open.add(socket);
    this.#parts.answers.asked(socket);
    socket.on("error", onError).once("close", onClose);
    const go = (): void => {
      try {
        if (socket.destroyed) return;
        if (this.shouldUpgrade(request)) {
          const refusal = this.#refusal(request);
          const detach = (): void => refusal.detachSocket(request.socket);
          this.#parts.take(request, refusal, { request, socket, head, detach });
          return;
        }
        socket.off("error", onError).off("close", onClose);
        this.#open.delete(socket);
        replayWithoutUpgrade(server, request, request.socket, head);
      } catch {
        // An error thrown here would end the process.
        socket.destroy();
      }
    };
    // The response to an earlier request may still be on its way.
    const earlier = this.#parts.answers.of(socket);
    if (earlier === undefined) go();
    else earlier.once("close", go);
  }

  /** Refusals are answered as those of any other request, and end the connection. */
  #refusal(request: IncomingMessage): ServerResponse {
    const response: ServerResponse = new Response(request);
    response.shouldKeepAlive = false;
    response.assignSocket(request.socket);
    response.once("finish", () => {
      // Without a reader, a disconnected client would not be noticed.
      request.socket.resume();
      request.socket.destroySoon();
    });
    return response;
  }
}

/** Puts a request back on its connection without its `Upgrade`, so that Node parses it like any other. */
export function replayWithoutUpgrade(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = "", value = ""] = rawHeaders.slice(index, index + 2);
    const kept = name.toLowerCase() === "connection" ? withoutUpgrade(value) : value;
    if (!UPGRADE_HEADERS.has(name.toLowerCase())) lines.push(`${name}: ${kept}`);
  }
  // Node adds its own again.
  socket.removeAllListeners("timeout");
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
}

/** HTTP/2 in clear text adds the second one. */
const UPGRADE_HEADERS = new Set(["upgrade", "http2-settings"]);

function withoutUpgrade(connection: string): string {
  const names = connection.split(",").map((name) => name.trim());
  return names.filter((name) => !UPGRADE_HEADERS.has(name.toLowerCase())).join(", ");
}

/**
 * The answers that each connection waits for. The last is kept by connection and looked at when it is asked for: a listener on
 * every answer would be a noticeable share of what a request costs.
 */
export class PendingResponses {
  readonly #bySocket = new Map<Duplex, HttpResponse | undefined>();
  /** Those before the last, of clients that do not wait for one before they send their next request. */
  readonly #earlier = new Map<Duplex, Set<HttpResponse>>();
  /** Connections that have not brought a request yet. */
  readonly #silent = new Set<Duplex>();
  #whenAllHaveAsked: (() => void)[] = [];

  connected(socket: Duplex): void {
    if (this.#bySocket.has(socket)) return;
    this.#silent.add(socket);
    socket.once("close", () => this.asked(socket));
  }

  begin(socket: Duplex, response: HttpResponse): void {
    this.asked(socket);
    const before = this.#bySocket.get(socket);
    if (before?.closed === false) {
      this.#keepEarlier(socket, before);
      // Of one that is cut while it waits, Node 24 never gets to the next one, and does not read that the client is gone.
      response.once("close", () => void (response.writableFinished || socket.destroy()));
    } else if (before === undefined && !this.#bySocket.has(socket)) socket.once("close", () => this.#forget(socket));
    this.#bySocket.set(socket, response);
  }

  /** Resolves when no connection is open that has not brought a request. */
  whenAllHaveAsked(): Promise<void> {
    if (this.#silent.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenAllHaveAsked.push(resolve));
  }

  /** Resolves when clients have got the responses that are complete by now. */
  async whenFlushed(): Promise<void> {
    const written = this.underWay().filter(({ writableEnded }) => writableEnded);
    await Promise.all(written.map((response) => new Promise<void>((resolve) => response.once("close", resolve))));
  }

  /** It has brought a request, or will not. */
  asked(socket: Duplex): void {
    if (!this.#silent.delete(socket) || this.#silent.size > 0) return;
    for (const resolve of this.#whenAllHaveAsked.splice(0)) resolve();
  }

  /** The last one. Undefined once it is complete, or cut. */
  of(socket: Duplex): HttpResponse | undefined {
    const response = this.#bySocket.get(socket);
    return response?.closed === false ? response : undefined;
  }

  /** Whether a part of one may have been sent. */
  hasBegun(socket: Duplex): boolean {
    return [...(this.#earlier.get(socket) ?? []), this.of(socket)].some((response) => response?.headersSent === true);
  }

  /** Those that are complete are let go of here: this is asked for every few seconds. */
  underWay(): HttpResponse[] {
    return [...this.#bySocket].flatMap(([socket, response]) => {
      const earlier = this.#earlier.get(socket) ?? [];
      if (response?.closed === false) return [...earlier, response];
      this.#bySocket.set(socket, undefined);
      return [...earlier];
    });
  }

  #keepEarlier(socket: Duplex, response: HttpResponse): void {
    const earlier = this.#earlier.get(socket) ?? new Set();
    this.#earlier.set(socket, earlier.add(response));
    response.once("close", () => earlier.delete(response));
  }

  #forget(socket: Duplex): void {
    const earlier = this.#earlier.get(socket);
    const last = this.#bySocket.get(socket);
    this.#bySocket.delete(socket);
    this.#earlier.delete(socket);
    if (earlier === undefined) return;
    const left = [...earlier, ...(last === undefined ? [] : [last])].filter(({ closed }) => !closed);
    for (const response of left) response.destroy();
    // Before Node 24 one that waits for those before it does not learn that its connection is gone: its stream would count for ever.
    setImmediate(() => {
      for (const response of left) if (!response.closed) response.emit("close");
    });
  }
}

interface ParseRefusal {
  readonly status: number;
  readonly reason: string;
  readonly code: ErrorCode;
  readonly message: string;
}

const MALFORMED: ParseRefusal = {
  status: 400,
  reason: "Bad Request",
  code: "invalid_arguments",
  message: "The request is not valid HTTP.",
};

const REFUSALS: Readonly<Record<string, ParseRefusal>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: "Request Header Fields Too Large",
    code: "too_large",
    message: "The headers of the request are too large (http.limits.headerBytes).",
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    reason: "Payload Too Large",
    code: "too_large",
    message: "The chunk extensions of the request are too large.",
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: "Request Timeout",
    code: "timeout",
    message: "The request took too long to arrive (http.limits.requestTimeoutMs).",
  },
};

/**
 * @param answers The pending response of each socket, which distinguishes an open event stream from a socket that is only
 * being held.
 */
export function refuseBadRequests(server: Server, answers: PendingResponses): void {
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === "ECONNRESET" || !socket.writable || answers.hasBegun(socket)) {
      socket.destroy();
      return;
    }
    const { status, reason, code, message } = REFUSALS[error.code ?? ""] ?? MALFORMED;
    socket.end(rawErrorResponse(status, reason, { code, message }));
  });
  // Nothing was read or written for a while. A call that runs and a stream with nothing to say are left alone; a client
  // that takes nothing of what is written to it is not, nor is a socket without a request.
  server.on("timeout", (socket: Socket) => {
    if (answers.of(socket) === undefined || socket.writableLength > 0) socket.destroy();
  });
}

/** Before the handshake it is still HTTP. */
export function refuseUpgrade({ socket }: Pick<UpgradedConnection, "socket">, error: ToolcribError): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const status = ERROR_TABLE[error.code].http;
  // Without a reader, a disconnected client would not be noticed.
  socket.resume();
  socket.end(rawErrorResponse(status, STATUS_CODES[status] ?? "Error", error.toObject()), () => socket.destroy());
}
