/**
 * Requests that are read and answered on the socket itself. For each request node:http makes two streams, takes a dozen turns of the
 * queue and sets two timers: most of what the door cost a small call. Only what can be read in no other way is taken here: a POST
 * that came whole, in one piece, with headers that say nothing about the connection. All else is for node:http, from its first byte
 * on, and so is what comes after it on its connection.
 */
import { EventEmitter } from "node:events";
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { HttpResponse, WholeRequest } from "./http-exchange.ts";

// Not imported as a module: that loads Node's whole fetch as well.
const { ServerResponse: StreamedResponse, STATUS_CODES } = process.getBuiltinModule("node:http");

interface PlainRequestOptions {
  readonly server: Server;
  readonly headerBytes: number;
  /** Whether requests for this target may be taken. */
  readonly accepts: (target: string) => boolean;
  readonly take: (request: WholeRequest, response: HttpResponse) => void;
}

/** As Node has it: a client that keeps to the announced time finds the connection open. */
const KEEP_ALIVE_MARGIN_MS = 1000;
/** Of requests that came before the response to an earlier one. */
const MAX_WAITING_BYTES = 64 * 1024;

export class PlainRequests {
  readonly #options: PlainRequestOptions;
  readonly #open = new Set<Socket>();

  /** From now on connections come here first. */
  constructor(options: PlainRequestOptions) {
    this.#options = options;
    const { server } = options;
    const [serveStreams] = server.listeners("connection");
    if (serveStreams === undefined) return;
    server.removeAllListeners("connection");
    server.on("connection", (socket: Socket) => this.#serve(socket, () => void serveStreams.call(server, socket)));
  }

  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #serve(socket: Socket, handOver: () => void): void {
    const { server, headerBytes, accepts, take } = this.#options;
    let current: PlainResponse | undefined;
    let waiting: Buffer | undefined;
    let isIdle = false;
    const connection = { socket };
    const onData = (chunk: Buffer): void => {
      if (current !== undefined) {
        waiting = waiting === undefined ? chunk : Buffer.concat([waiting, chunk]);
        if (waiting.length > MAX_WAITING_BYTES) socket.pause();
        return;
      }
      if (isIdle) socket.setTimeout(server.timeout);
      isIdle = false;
      const request = parseWhole(chunk, socket, headerBytes);
      if (request === undefined || !accepts(request.url)) return leave(chunk);
      const keepsAlive = request.headers.connection?.toLowerCase() !== "close";
      current = new PlainResponse(connection, keepsAlive, server.keepAliveTimeout, onOver);
      take(request, current);
    };
    const onOver = (): void => {
      const isKept = current?.shouldKeepAlive === true;
      current = undefined;
      if (!isKept) {
        // What comes before the end has reached the client could not be answered any more.
        socket.off("data", onData).destroySoon();
        return;
      }
      isIdle = true;
      socket.setTimeout(server.keepAliveTimeout + KEEP_ALIVE_MARGIN_MS);
      if (waiting === undefined) return;
      const chunk = waiting;
      waiting = undefined;
      socket.resume();
      leave(chunk);
    };
    // As in Node: who sends nothing more waits for nothing either.
    const onEnd = (): void => void socket.end();
    const onError = (): void => void socket.destroy();
    const onTimeout = (): void => void server.emit("timeout", socket);
    const onDrain = (): void => void current?.emit("drain");
    const onClose = (): void => {
      this.#open.delete(socket);
      current?.over();
    };
    const leave = (chunk: Buffer): void => {
      this.#open.delete(socket);
      socket.off("data", onData).off("end", onEnd).off("error", onError);
      socket.off("timeout", onTimeout).off("drain", onDrain).off("close", onClose);
      handOver();
      socket.emit("data", chunk);
    };
    this.#open.add(socket);
    socket.on("data", onData).on("end", onEnd).on("error", onError);
    socket.on("timeout", onTimeout).on("drain", onDrain).on("close", onClose);
    socket.setTimeout(server.timeout);
  }
}

const HEAD_END = "\r\n\r\n";
/** Headers of one line each, in ASCII, with a single space before a value that has none around it. */
const HEAD =
  /^POST (\/[\x21-\x7e]*) HTTP\/1\.1(?:\r\n[A-Za-z][A-Za-z0-9-]*: [\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)+$/;
const LENGTH = /^(?:0|[1-9]\d{0,8})$/;
const CONNECTION = /^(?:keep-alive|close)$/i;
/** They say how to read what follows, or what to do with the connection. Of the last, Node makes a list. */
const NOT_PLAIN = [
  "transfer-encoding",
  "upgrade",
  "expect",
  "te",
  "trailer",
  "proxy-connection",
  "http2-settings",
  "set-cookie",
];

/** Undefined for all that node:http is to read. */
function parseWhole(chunk: Buffer, socket: Socket, headerBytes: number): WholeRequest | undefined {
  const end = chunk.indexOf(HEAD_END);
  if (end < 0 || end > headerBytes) return undefined;
  const head = chunk.toString("latin1", 0, end);
  const url = HEAD.exec(head)?.[1];
  if (url === undefined) return undefined;
  const headers: Record<string, string> = {};
  const rawHeaders: string[] = [];
  for (let at = head.indexOf("\r\n"); at >= 0;) {
    const next = head.indexOf("\r\n", at + 2);
    const colon = head.indexOf(":", at);
    const given = head.slice(at + 2, colon);
    const value = head.slice(colon + 2, next < 0 ? head.length : next);
    const name = given.toLowerCase();
    // Twice, or the name of what every object has.
    if (headers[name] !== undefined) return undefined;
    headers[name] = value;
    rawHeaders.push(given, value);
    at = next;
  }
  const { host, connection = "keep-alive", "content-length": length = "" } = headers;
  if (host === undefined || !CONNECTION.test(connection) || !LENGTH.test(length)) return undefined;
  if (NOT_PLAIN.some((name) => headers[name] !== undefined)) return undefined;
  const from = end + HEAD_END.length;
  if (chunk.length - from !== Number(length)) return undefined;
  return { method: "POST", url, headers, rawHeaders, socket, body: chunk.subarray(from) };
}

/** Written as one text where it is whole at once; all else is left to a response of node:http on the same socket. */
class PlainResponse extends EventEmitter implements HttpResponse {
  /** Not the request, whose body would stay for as long as the connection is idle: routes keep the last response of each. */
  readonly req: { readonly socket: Socket };
  readonly #keepAliveMs: number;
  readonly #onOver: () => void;
  #head: { readonly status: number; readonly headers: OutgoingHttpHeaders } | undefined;
  #streamed: ServerResponse | undefined;
  #keepsAlive: boolean;
  writableEnded = false;
  writableFinished = false;
  destroyed = false;
  closed = false;

  /** @param onOver Called when all of it is with the client. */
  constructor(connection: { readonly socket: Socket }, keepsAlive: boolean, keepAliveMs: number, onOver: () => void) {
    super();
    this.req = connection;
    this.#keepsAlive = keepsAlive;
    this.#keepAliveMs = keepAliveMs;
    this.#onOver = onOver;
  }

  get headersSent(): boolean {
    return this.#head !== undefined || this.#streamed?.headersSent === true;
  }

  get writableLength(): number {
    return this.#streamed?.writableLength ?? (this.writableEnded ? this.req.socket.writableLength : 0);
  }

  get writableNeedDrain(): boolean {
    // Where no server of node:http looks after the connection, its response does not learn that there is room again.
    return this.#streamed !== undefined && this.req.socket.writableNeedDrain;
  }

  get shouldKeepAlive(): boolean {
    return this.#keepsAlive;
  }

  set shouldKeepAlive(keepsAlive: boolean) {
    // Its client was told, and may have sent the next request.
    if (this.writableEnded || this.#streamed?.headersSent === true) return;
    this.#keepsAlive = keepsAlive;
    if (this.#streamed !== undefined) this.#streamed.shouldKeepAlive = keepsAlive;
  }

  setHeader(name: string, value: string | number | readonly string[]): void {
    this.#stream()?.setHeader(name, value);
  }

  writeHead(status: number, headers: OutgoingHttpHeaders = {}): this {
    if (!this.headersSent && this.#streamed === undefined) this.#head = { status, headers };
    else this.#stream()?.writeHead(status, headers);
    return this;
  }

  flushHeaders(): void {
    this.#stream()?.flushHeaders();
  }

  write(part: string | Uint8Array, encoding: BufferEncoding = "utf8"): boolean {
    return this.#stream()?.write(part, encoding) ?? false;
  }

  end(text?: string | Uint8Array): void {
    if (this.writableEnded || this.destroyed) return;
    const whole = this.#streamed === undefined && typeof text === "string" ? this.#withHead(text) : undefined;
    if (whole === undefined) this.#stream()?.end(text);
    else this.req.socket.write(whole, (error) => (error ? undefined : this.#finish()));
    this.writableEnded = true;
  }

  cork(): void {
    this.#stream()?.cork();
  }

  uncork(): void {
    this.#stream()?.uncork();
  }

  destroy(): void {
    // The connection may be at its next request.
    if (this.closed) return;
    this.req.socket.destroy();
    this.destroyed = true;
  }

  /** Nothing more of it can reach the client. */
  over(): void {
    if (this.closed) return;
    this.destroyed = this.closed = true;
    this.emit("close");
    this.removeAllListeners();
  }

  #finish(): void {
    if (this.closed) return;
    this.writableFinished = true;
    this.over();
    this.#onOver();
  }

  /** Undefined where its length is not said, or a value needs a closer look. */
  #withHead(body: string): string | undefined {
    if (this.#head === undefined || !hasBody(this.#head.status, body)) return undefined;
    const { status, headers } = this.#head;
    let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n`;
    let hasLength = false;
    for (const name in headers) {
      const value = headers[name];
      if (typeof value !== "number" && (typeof value !== "string" || !PLAIN_VALUE.test(value))) return undefined;
      hasLength ||= name.length === "content-length".length && name.toLowerCase() === "content-length";
      text += `${name}: ${value}\r\n`;
    }
    if (!hasLength) return undefined;
    const seconds = Math.floor(this.#keepAliveMs / 1000);
    const connection = this.#keepsAlive ? `keep-alive\r\nKeep-Alive: timeout=${seconds}` : "close";
    return `${text}Date: ${httpDate()}\r\nConnection: ${connection}\r\n\r\n${body}`;
  }

  /** Undefined once it has ended: more of it would be read as the response to the next request. */
  #stream(): ServerResponse | undefined {
    if (this.writableEnded || this.destroyed) return undefined;
    if (this.#streamed !== undefined) return this.#streamed;
    const { socket } = this.req;
    const streamed: ServerResponse = new StreamedResponse(STREAMED_REQUEST);
    this.#streamed = streamed;
    streamed.shouldKeepAlive = this.#keepsAlive;
    // Node's own name for it: where it has another one, responses do not say how long a connection is kept.
    Object.assign(streamed, { _keepAliveTimeout: this.#keepAliveMs });
    streamed.assignSocket(socket);
    streamed.on("finish", () => {
      streamed.detachSocket(socket);
      this.#finish();
    });
    if (this.#head !== undefined) streamed.writeHead(this.#head.status, this.#head.headers);
    return streamed;
  }
}

/** The parts of a request that a response of node:http reads. */
const STREAMED_REQUEST = { method: "POST", httpVersionMajor: 1, httpVersionMinor: 1 } as IncomingMessage;
const PLAIN_VALUE = /^[\x20-\x7e]*$/;

function hasBody(status: number, body: string): boolean {
  return status >= 200 && status !== 204 && status !== 304 && body !== "";
}

let dateSecond = Number.NaN;
let dateText = "";

/** It changes once a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateText = new Date(second * 1000).toUTCString();
    dateSecond = second;
  }
  return dateText;
}
