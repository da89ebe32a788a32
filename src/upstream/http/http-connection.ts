/**
 * HTTP/1.1 on a socket, one request at a time. For each request node:http makes two streams, takes a parser, and puts a dozen
 * listeners on and off the socket: most of what a small call over HTTP cost. What comes back is never passed on as HTTP, so only
 * its framing matters here: whatever is not framed clearly is refused.
 */
import type { Socket } from "node:net";

/** Names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | undefined>>;

/** Takes a body as it comes. */
export interface BodyReader {
  /** The next chunk overwrites this one. */
  readonly onData: (chunk: Buffer) => void;
  readonly onEnd: () => void;
  /** Instead of `onEnd`: the body was cut off, or destroyed by its reader. */
  readonly onCut: (error: Error) => void;
}

export interface Exchange {
  readonly onResponse: (status: number, headers: ResponseHeaders, body: ResponseBody) => void;
  /** Instead of a response. */
  readonly onFailure: (error: Error) => void;
  /** Once, when nothing is left to end: after the body, or after a failure. */
  readonly onOver: () => void;
}

/** The state that connections to one origin leave to later ones. */
export interface Pool {
  /** Open, and without a request. */
  readonly idle: HttpConnection[];
  /** Makes the next handshake of TLS a short one. */
  session: Buffer | undefined;
}

export interface Endpoint {
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  readonly lookup: import("node:net").LookupFunction | undefined;
}

const CONNECT_TIMEOUT_MS = 10_000;
const READ_BYTES = 64 * 1024;
/** Of a body that is not read yet. */
const MAX_UNREAD_BYTES = 64 * 1024;
/** Of a body that is not used. */
const MAX_DISCARDED_BYTES = 256 * 1024;
const MAX_DISCARD_MS = 5000;
/** Of one request. */
const MAX_INTERIM_RESPONSES = 1000;
/** As node:http has it. */
const MAX_HEAD_BYTES = 16 * 1024;
/** Of each origin; as many as node:http keeps. */
const MAX_IDLE = 256;
/** A server that announces when it closes an idle connection gets no request in the last second before that. */
const CLOSING_MS = 1000;

export class HttpConnection {
  readonly #socket: Socket;
  readonly #pool: Pool;
  readonly #responses: ResponseParser;
  #exchange: Exchange | undefined;
  #body: ResponseBody | undefined;
  #error: Error | undefined;
  #usableUntil = Number.POSITIVE_INFINITY;
  #isConnected = false;
  #uses = 0;

  /** @param onClosed Called once, whoever closed it. */
  constructor(endpoint: Endpoint, pool: Pool, onClosed: () => void) {
    this.#pool = pool;
    this.#responses = new ResponseParser({
      onHead: (status, headers) => this.#begin(status, headers),
      onData: (chunk) => this.#body?.push(chunk),
      onEnd: (isKept) => this.#finish(isKept),
    });
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    const onread = { buffer, callback: (bytes: number) => this.#read(buffer.subarray(0, bytes)) };
    this.#socket = connect(endpoint, pool, onread);
    const noConnection = setTimeout(() => {
      this.#socket.destroy(Object.assign(new Error("connect timeout"), { code: "ETIMEDOUT" }));
    }, CONNECT_TIMEOUT_MS);
    this.#socket.on(endpoint.secure ? "secureConnect" : "connect", () => {
      this.#isConnected = true;
      clearTimeout(noConnection);
    });
    this.#socket.on("error", (error) => (this.#error = error));
    this.#socket.on("end", () => {
      this.#responses.endInput();
      // Not when all is sent: a server that reads nothing more would be waited for.
      this.destroy();
    });
    this.#socket.on("close", () => {
      clearTimeout(noConnection);
      if (this.#error !== undefined) pool.session = undefined;
      const place = pool.idle.indexOf(this);
      if (place >= 0) pool.idle.splice(place, 1);
      onClosed();
      this.#fail(this.#error ?? connectionCut());
    });
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** It was open before its current request. */
  get isReused(): boolean {
    return this.#uses > 1;
  }

  get isUsable(): boolean {
    return !this.#socket.destroyed && performance.now() < this.#usableUntil;
  }

  /** @param text The whole request. */
  send(text: string, exchange: Exchange): void {
    this.#exchange = exchange;
    this.#uses += 1;
    this.#socket.ref();
    this.#socket.write(text);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** False to pause. */
  #read(chunk: Buffer): boolean {
    try {
      // Nothing was asked for.
      if (this.#exchange === undefined) this.destroy();
      else this.#responses.push(chunk);
    } catch (error) {
      if (!(error instanceof MalformedResponse)) throw error;
      this.#socket.destroy(error);
    }
    return this.#body?.isReady ?? true;
  }

  #begin(status: number, headers: ResponseHeaders): void {
    const seconds = /^timeout=(\d+)/.exec(headers["keep-alive"] ?? "")?.[1];
    if (seconds !== undefined) this.#usableUntil = performance.now() + Number(seconds) * 1000 - CLOSING_MS;
    this.#body = new ResponseBody(this);
    this.#exchange?.onResponse(status, headers, this.#body);
  }

  #finish(isKept: boolean): void {
    const [exchange, body] = [this.#exchange, this.#body];
    this.#exchange = this.#body = undefined;
    // A response may come before the whole request was sent.
    if (isKept && this.#socket.writableLength === 0 && this.#pool.idle.length < MAX_IDLE) {
      this.#socket.unref();
      this.#pool.idle.push(this);
    } else {
      this.destroy();
    }
    exchange?.onOver();
    body?.end();
  }

  #fail(error: Error): void {
    const [exchange, body] = [this.#exchange, this.#body];
    this.#exchange = this.#body = undefined;
    exchange?.onOver();
    if (body === undefined) exchange?.onFailure(error);
    else body.end(error);
  }
}

function connect(
  { secure, host, port, lookup }: Endpoint,
  pool: Pool,
  onread: { buffer: Buffer; callback: (bytes: number) => boolean },
): Socket {
  const net = process.getBuiltinModule("node:net");
  const options = { host, port, lookup, onread, noDelay: true, keepAlive: true, keepAliveInitialDelay: 1000 };
  if (!secure) return net.connect(options);
  // Loaded for the first address that needs it: TLS is 4 MB that a hub of local servers never uses.
  const tls = process.getBuiltinModule("node:tls");
  // An address is not a server name.
  const servername = net.isIP(host) === 0 ? host : "";
  const socket = tls.connect({ ...options, servername, ALPNProtocols: ["http/1.1"], session: pool.session });
  return socket.on("session", (session) => (pool.session = session));
}

/** In place of an error where a connection only ended. */
export function connectionCut(): Error {
  return Object.assign(new Error("ended"), { code: "ECONNRESET" });
}

/** Must be read or destroyed. What comes before it is read is kept. */
export class ResponseBody {
  #connection: HttpConnection | undefined;
  #reader: BodyReader | undefined;
  #unread: Buffer[] = [];
  #ended: { readonly error: Error | undefined } | undefined;
  #isPaused = false;
  unreadBytes = 0;

  constructor(connection: HttpConnection) {
    this.#connection = connection;
  }

  /** Whether it takes more now. */
  get isReady(): boolean {
    return !this.#isPaused && this.unreadBytes < MAX_UNREAD_BYTES;
  }

  /** Its reader has enough for now; what has been received already still comes. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#connection?.resume();
  }

  read(reader: BodyReader): void {
    this.#reader = reader;
    const unread = this.#unread;
    this.#unread = [];
    this.unreadBytes = 0;
    for (const chunk of unread) reader.onData(chunk);
    if (this.#ended !== undefined) this.#tellEnd(this.#ended.error);
    else if (this.isReady) this.#connection?.resume();
  }

  /**
   * Reads it to its end without keeping it, so that its connection can be used again. One that is long, or takes long, is not worth
   * it: a server could have one more connection open after each request. Resolves when it is over.
   */
  discard(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    let bytes = 0;
    let late: NodeJS.Timeout | undefined;
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > MAX_DISCARDED_BYTES) this.destroy();
    };
    const onOver = (): void => {
      clearTimeout(late);
      resolve();
    };
    this.read({ onData, onEnd: onOver, onCut: onOver });
    if (this.#ended === undefined) late = setTimeout(() => this.destroy(), MAX_DISCARD_MS).unref();
    return promise;
  }

  /** Ends the connection too, unless everything has come. */
  destroy(): void {
    this.#connection?.destroy();
  }

  push(chunk: Buffer): void {
    if (this.#reader !== undefined) {
      this.#reader.onData(chunk);
    } else {
      this.#unread.push(Buffer.from(chunk));
      this.unreadBytes += chunk.length;
    }
  }

  end(error?: Error): void {
    this.#connection = undefined;
    this.#ended = { error };
    if (this.#reader !== undefined) this.#tellEnd(error);
  }

  #tellEnd(error: Error | undefined): void {
    if (error === undefined) this.#reader?.onEnd();
    else this.#reader?.onCut(error);
  }
}

/** The code is that of Node's own parser, by which errors are explained. */
class MalformedResponse extends Error {
  readonly code = "HPE_INVALID_RESPONSE";
}

interface ResponseHandlers {
  readonly onHead: (status: number, headers: ResponseHeaders) => void;
  /** Valid during the call only. */
  readonly onData: (chunk: Buffer) => void;
  /** @param isKept Whether the connection can be used for another request. */
  readonly onEnd: (isKept: boolean) => void;
}

const HEAD_END = Buffer.from("\r\n\r\n");
const LINE_END = Buffer.from("\r\n");
const PROTOCOL = "HTTP/1.";
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Line breaks that are none, and other controls: what some programs take for the end of a line or a value. */
// oxlint-disable-next-line no-control-regex -- they are looked for
const NOT_IN_LINES = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/;
/** Nothing else is white space there. Looking back keeps it from trying each place of a run that does not end the value. */
const OUTER_BLANKS = /^[\t ]+|(?<![\t ])[\t ]+$/g;
const CHUNK_SIZE = /^([0-9a-fA-F]{1,12})[\t ]*(?:;.*)?$/;
/** Of these the first one counts, as in Node; others that come twice are a list. */
const SINGLE_HEADERS = new Set(["content-type", "location"]);

/** Takes bytes as they come, cut anywhere. Throws `MalformedResponse`. */
export class ResponseParser {
  readonly #handlers: ResponseHandlers;
  #step: "head" | "body" | "rest" | "chunk size" | "chunk" | "chunk end" | "trailers" = "head";
  /** The beginning of what ends with a separator that has not come. */
  #text = "";
  /** Bytes of the body, or of its current chunk. */
  #left = 0;
  #trailerBytes = 0;
  #interim = 0;
  #isKept = false;
  /** Of the chunks in what is being read, moved together: a server may send a body in a chunk for each byte. */
  #data: Buffer | undefined;

  constructor(handlers: ResponseHandlers) {
    this.#handlers = handlers;
  }

  /** @param chunk Is overwritten. */
  push(chunk: Buffer): void {
    let at = 0;
    try {
      while (at < chunk.length) {
        if (this.#step === "rest") return this.#handlers.onData(at === 0 ? chunk : chunk.subarray(at));
        if (this.#step === "body") at = this.#takeData(chunk, at);
        else if (this.#step === "chunk") at = this.#takeChunk(chunk, at);
        else at = this.#takeText(chunk, at);
      }
    } finally {
      this.#giveData();
    }
  }

  /** The server has said everything: the end of a body whose length it did not say. */
  endInput(): void {
    if (this.#step === "rest") this.#end(false);
  }

  #takeData(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left);
    this.#left -= end - at;
    this.#handlers.onData(chunk.subarray(at, end));
    if (this.#left > 0) return end;
    this.#end(end === chunk.length);
    // More than was asked for belongs to nothing.
    return chunk.length;
  }

  #takeChunk(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left);
    this.#left -= end - at;
    if (this.#left === 0) this.#step = "chunk end";
    const before = this.#data;
    if (before === undefined) {
      this.#data = chunk.subarray(at, end);
    } else {
      const start = before.byteOffset - chunk.byteOffset;
      chunk.copyWithin(start + before.length, at, end);
      this.#data = chunk.subarray(start, start + before.length + end - at);
    }
    return end;
  }

  #giveData(): void {
    const data = this.#data;
    this.#data = undefined;
    if (data !== undefined) this.#handlers.onData(data);
  }

  #takeText(chunk: Buffer, at: number): number {
    const separator = this.#step === "head" ? HEAD_END : LINE_END;
    const before = this.#text;
    let [text, next] = [before, -1];
    if (before === "") {
      const end = chunk.indexOf(separator, at);
      if (end >= 0) [text, next] = [chunk.toString("latin1", at, end), end + separator.length];
      else text = chunk.toString("latin1", at);
    } else {
      // The separator may have begun in the chunk before.
      text += chunk.toString("latin1", at, at + MAX_HEAD_BYTES);
      const end = text.indexOf(separator.toString("latin1"), Math.max(0, before.length - separator.length + 1));
      if (end >= 0) [text, next] = [text.slice(0, end), at + end + separator.length - before.length];
    }
    if (text.length > MAX_HEAD_BYTES) throw new MalformedResponse("the head of the response is too long");
    // What is not HTTP may never send the end of a head, and never close.
    if (this.#step === "head" && !PROTOCOL.startsWith(text.slice(0, PROTOCOL.length)))
      throw new MalformedResponse("the response is not HTTP");
    this.#text = next < 0 ? text : "";
    if (next < 0) return chunk.length;
    const isOver = this.#takeLine(text, next === chunk.length);
    return isOver ? chunk.length : next;
  }

  /** @returns Whether the response has ended. */
  #takeLine(text: string, isLast: boolean): boolean {
    switch (this.#step) {
      case "head":
        return this.#takeHead(text, isLast);
      case "chunk size": {
        const size = CHUNK_SIZE.exec(text)?.[1];
        if (size === undefined) throw new MalformedResponse("a chunk without a size");
        this.#left = Number.parseInt(size, 16);
        this.#step = this.#left > 0 ? "chunk" : "trailers";
        return false;
      }
      case "chunk end":
        if (text !== "") throw new MalformedResponse("a chunk that is longer than its size");
        this.#step = "chunk size";
        return false;
      default:
        this.#trailerBytes += text.length;
        if (NOT_IN_LINES.test(text)) throw new MalformedResponse("a trailer cannot be read");
        if (this.#trailerBytes > MAX_HEAD_BYTES) throw new MalformedResponse("the trailers are too long");
        if (text === "") this.#end(isLast);
        return text === "";
    }
  }

  #takeHead(text: string, isLast: boolean): boolean {
    if (NOT_IN_LINES.test(text))
      throw new MalformedResponse("the head of the response has a character that it may not");
    const [first = "", ...lines] = text.split("\r\n");
    const [, minor, digits] = STATUS_LINE.exec(first) ?? [];
    if (digits === undefined) throw new MalformedResponse("the response has no status");
    const status = Number(digits);
    // Without a prototype: a header may be called `constructor`.
    const headers: Record<string, string> = Object.create(null);
    for (const line of lines) {
      const colon = line.indexOf(":");
      const name = line.slice(0, Math.max(0, colon));
      if (!HEADER_NAME.test(name)) throw new MalformedResponse("a header cannot be read");
      const value = line.slice(colon + 1).replaceAll(OUTER_BLANKS, "");
      const key = name.toLowerCase();
      const known = headers[key];
      if (known === undefined) headers[key] = value;
      else if (!SINGLE_HEADERS.has(key)) headers[key] = `${known}, ${value}`;
    }
    // Something else is spoken from here on, which was not asked for.
    if (status === 101) throw new MalformedResponse("the server switched to another protocol");
    // The response itself comes later.
    if (status < 200) {
      if ((this.#interim += 1) > MAX_INTERIM_RESPONSES) throw new MalformedResponse("the response never comes");
      return false;
    }
    const connection = headers["connection"]?.toLowerCase();
    this.#isKept = minor === "1" ? connection?.includes("close") !== true : connection?.includes("keep-alive") === true;
    const hasBody = status !== 204 && status !== 304;
    const [coding, length] = [headers["transfer-encoding"]?.toLowerCase(), headers["content-length"]];
    if (hasBody && coding !== undefined) {
      if (coding !== "chunked" || length !== undefined)
        throw new MalformedResponse("the length of the body is unclear");
      this.#step = "chunk size";
    } else if (hasBody && length !== undefined) {
      this.#left = /^\d+$/.test(length) ? Number(length) : Number.NaN;
      if (!Number.isSafeInteger(this.#left)) throw new MalformedResponse("the length of the body is unclear");
      this.#step = "body";
    } else if (hasBody) {
      this.#step = "rest";
    }
    this.#handlers.onHead(status, headers);
    const isOver = this.#step === "head" || (this.#step === "body" && this.#left === 0);
    if (isOver) this.#end(isLast);
    return isOver;
  }

  #end(isLast: boolean): void {
    this.#giveData();
    this.#step = "head";
    this.#trailerBytes = this.#interim = 0;
    this.#handlers.onEnd(this.#isKept && isLast);
  }
}
