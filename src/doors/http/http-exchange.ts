/** A request and its response, as every HTTP door gets them: the request is checked and its sender is known. */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Caller, Scope } from "../../model/caller.ts";
import { ToolcribError } from "../../model/errors.ts";

/** One whose body came with its head. */
export interface WholeRequest {
  readonly method: string;
  url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly socket: Socket;
  readonly body: Buffer;
}

/** Routes read its body by `readBody`. */
export type HttpRequest = IncomingMessage | WholeRequest;

/** The part of a response that routes use; `ServerResponse` has all of it. */
export interface HttpResponse {
  readonly req: { readonly socket: Socket };
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly closed: boolean;
  readonly writableEnded: boolean;
  readonly writableFinished: boolean;
  readonly writableLength: number;
  readonly writableNeedDrain: boolean;
  /** False says `Connection: close`. */
  shouldKeepAlive: boolean;
  setHeader(name: string, value: string | number | readonly string[]): unknown;
  writeHead(status: number, headers?: OutgoingHttpHeaders): HttpResponse;
  flushHeaders(): void;
  write(part: string | Uint8Array, encoding?: BufferEncoding): boolean;
  end(text?: string | Uint8Array): unknown;
  cork(): void;
  uncork(): void;
  destroy(): unknown;
  on(event: "close" | "drain", listener: () => void): unknown;
  once(event: "close" | "drain", listener: () => void): unknown;
  emit(event: "close"): boolean;
}

export interface HttpExchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** Decoded and checked; without a slash at its end. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly caller: Caller;
  /** Rejects with ToolcribError: `too_large`, or `cancelled` if the client went away. */
  readBody(): Promise<Buffer>;
  /** Of a route that counts for itself: answers 429 and is true if this bucket is used up, or that of the address without a name. */
  refuseTooMany(bucket?: string): boolean;
  /** Answers 403 with the `WWW-Authenticate` that belongs to a missing scope. */
  refuseScope(scope: Scope): void;
  /**
   * Lets another node of the cluster answer. Absent without a cluster, and where a node has forwarded it already.
   * @param lastWords Ends an event stream that the other node leaves unfinished; without it the connection is cut.
   */
  readonly forwardTo?: ((node: string, lastWords?: string) => Promise<ForwardResult>) | undefined;
}

/**
 * `gone`: that node has ended, and what it had with it. `away`: it may be alive but cannot be reached. `lost`: it had the request,
 * and whether it did what was asked is not known. None of them has answered.
 */
export type ForwardResult = "answered" | "gone" | "away" | "lost";

/**
 * Calls the listener once when nothing more of the response can reach the client. Node reports that only once, and a client may
 * have left before: then it is called in the next tick, when the caller is ready for it.
 */
export function onceClosed(response: HttpResponse, listener: () => void): void {
  if (response.closed || response.destroyed) process.nextTick(listener);
  // It is reported once anyway, and taking a listener off costs as much as putting it on.
  else response.on("close", listener);
}

/** A request to speak another protocol on the same connection, whose sender is known and may. */
export interface HttpUpgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that came after the request. */
  readonly head: Buffer;
  readonly query: URLSearchParams;
  readonly caller: Caller;
  /** Address of the hub as this client knows it. */
  readonly base: string;
  /** The same, if browsers may bring a code there. */
  readonly redirectBase: string | undefined;
  /** Whether its sender would still be admitted. */
  stillAdmitted(): boolean;
}

export interface HttpRoute {
  /** `/mcp` takes `/mcp/…` too; the longest path that fits counts. */
  readonly path: string;
  /** `any`: any scope; the operation says which one it needs. */
  readonly access: Scope | "any" | "public";
  /** An error that it throws is sent, if no response has begun. */
  handle(exchange: HttpExchange): void | Promise<void>;
  /** Of a public one: its handler calls `refuseTooMany`, because something in the body says whose request it is. */
  readonly countsItself?: boolean;
  /** Its small POSTs come all the time: they are read and answered without the streams of node:http. */
  readonly isFrequent?: boolean;
  /** Bytes of a body, below `http.limits.bodyBytes`. */
  readonly bodyBytes?: number;
  /** Takes the connection over. Without it such requests are refused. */
  upgrade?(upgrade: HttpUpgrade): void;
  /** The other protocol; `websocket` if absent. */
  readonly protocol?: string;
}

export interface ExchangeParts {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly target: RequestTarget;
  readonly caller: Caller;
  readonly bodyBytes: number;
  readonly refuseScope: (scope: Scope) => void;
  readonly refuseTooMany: (bucket?: string) => boolean;
  readonly forwardTo?:
    | ((exchange: HttpExchange, node: string, lastWords: string | undefined) => Promise<ForwardResult>)
    | undefined;
}

/** Shared: the query of a request is never changed. */
const NO_QUERY = new URLSearchParams();

export class Exchange implements HttpExchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly path: string;
  readonly caller: Caller;
  readonly refuseScope: (scope: Scope) => void;
  readonly refuseTooMany: (bucket?: string) => boolean;
  readonly forwardTo: HttpExchange["forwardTo"];
  readonly #search: string;
  readonly #bodyBytes: number;
  #query: URLSearchParams | undefined;
  #body: Promise<Buffer> | undefined;

  constructor({ request, response, target, caller, bodyBytes, refuseScope, refuseTooMany, forwardTo }: ExchangeParts) {
    this.request = request;
    this.response = response;
    this.path = target.path;
    this.caller = caller;
    this.refuseScope = refuseScope;
    this.refuseTooMany = refuseTooMany;
    this.forwardTo = forwardTo && ((node, lastWords) => forwardTo(this, node, lastWords));
    this.#search = target.search;
    this.#bodyBytes = bodyBytes;
  }

  /** Made when it is first asked for: most requests have none. */
  get query(): URLSearchParams {
    return (this.#query ??= this.#search === "" ? NO_QUERY : new URLSearchParams(this.#search));
  }

  /** Kept only if it may be forwarded after it was read. */
  readBody(): Promise<Buffer> {
    if (this.forwardTo === undefined) return readBody(this.request, this.#bodyBytes);
    return (this.#body ??= readBody(this.request, this.#bodyBytes));
  }
}

export class RouteTable {
  readonly #byPath: ReadonlyMap<string, HttpRoute>;

  constructor(routes: readonly HttpRoute[]) {
    // Of two routes with the same path the first counts.
    this.#byPath = new Map(routes.toReversed().map((route) => [route.path, route]));
  }

  /** The route of the path or of the nearest path above it. The root covers only itself. */
  find(path: string): HttpRoute | undefined {
    for (let above = path; above !== ""; above = above.slice(0, above.lastIndexOf("/"))) {
      const route = this.#byPath.get(above);
      if (route !== undefined) return route;
    }
    return undefined;
  }

  /** Paths that want credentials. */
  guarded(): string[] {
    return [...this.#byPath.values()].flatMap(({ path, access }) => (access === "public" ? [] : [path]));
  }
}

export interface RequestTarget {
  /** Decoded; without the slash at its end, except for the root. */
  readonly path: string;
  /** With its question mark; empty if there is none. */
  readonly search: string;
}

/**
 * The target without the path that a proxy has put before it, once. What the hub itself is asked for on this machine has none.
 * Undefined for the path alone: without a slash at its end a browser would look for the page's parts one folder up.
 */
export function withoutBase(target: string, base: string | undefined): string | undefined {
  if (base === undefined || !target.startsWith(base)) return target;
  const rest = target.slice(base.length);
  if (rest.startsWith("/")) return rest;
  return rest === "" || rest.startsWith("?") ? undefined : target;
}

/** Nothing to decode and nothing to doubt, once dot segments and empty ones are ruled out. */
const PLAIN = /^(?:\/[A-Za-z0-9_~@-][A-Za-z0-9._~@-]*)*\/?$/;
const BELOW_SPACE_OR_DEL = 0x20;
const DEL = 0x7f;

/** Parses a request's target, and refuses every spelling that two programs could read differently. */
export function parseTarget(target: string): RequestTarget {
  const queryAt = target.indexOf("?");
  const raw = queryAt === -1 ? target : target.slice(0, queryAt);
  const search = queryAt === -1 ? "" : target.slice(queryAt);
  // `http://host/…` and `*` too: what counts is the Host header alone.
  if (!raw.startsWith("/")) throw invalidPath("begin with /");
  const path = PLAIN.test(raw) ? raw : decodePath(raw);
  return { path: path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path, search };
}

function decodePath(raw: string): string {
  if (/%(?:2f|5c|00)/i.test(raw)) throw invalidPath("not have an encoded slash");
  let path: string;
  try {
    path = decodeURIComponent(raw);
  } catch {
    throw invalidPath("be encoded as UTF-8");
  }
  // A path that still looks encoded was encoded twice, and a later program would decode it.
  if (/%[0-9a-f]{2}/i.test(path)) throw invalidPath("be encoded only once");
  if (path.includes("\\") || path.includes("#") || hasControl(path))
    throw invalidPath("not have \\, # or a control character");
  const segments = path.split("/").slice(1);
  if (segments.at(-1) === "") segments.pop();
  // Also with spaces around them, which many cut off.
  if (segments.some((segment) => ["", ".", ".."].includes(segment.trim()))) {
    throw invalidPath("not have an empty segment, . or ..");
  }
  return path;
}

function hasControl(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < BELOW_SPACE_OR_DEL || code === DEL) return true;
  }
  return false;
}

function invalidPath(must: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `The path of a request must ${must}.`);
}

/** How much of an oversized body is read and dropped, so that its sender can read the response. */
const MAX_DISCARDED_BYTES = 32 * 1024 * 1024;

/** The whole body, or a rejection with ToolcribError. Must be called before anything else reads the request. */
function readBody(request: HttpRequest, limit: number): Promise<Buffer> {
  const announced = Number(request.headers["content-length"] ?? 0);
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    return Promise.reject(
      new ToolcribError("invalid_arguments", "Compressed bodies are not supported. Send the body uncompressed."),
    );
  }
  if (announced > limit) {
    if (!("body" in request)) discard(request, MAX_DISCARDED_BYTES);
    return Promise.reject(bodyTooLarge(limit));
  }
  if ("body" in request) return Promise.resolve(request.body);
  return new Promise((resolve, reject) => {
    // Node reports nothing more of a destroyed request, even if it arrived completely.
    if (request.destroyed) {
      reject(cutOff());
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    let isSettled = false;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= limit) {
        chunks.push(chunk);
        return;
      }
      isSettled = true;
      request.off("data", onData);
      discard(request, MAX_DISCARDED_BYTES);
      reject(bodyTooLarge(limit));
    };
    // The listeners go with the request: taking them off again would cost as much as the rest.
    request.on("data", onData);
    request.on("end", () => {
      if (isSettled) return;
      isSettled = true;
      const [only] = chunks;
      resolve(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, size));
      chunks.length = 0;
    });
    request.on("close", () => {
      if (!isSettled) reject(cutOff());
    });
    // "close" follows; an error without a listener would end the process.
    request.on("error", ignore);
  });
}

/** Reads and drops the rest, then cuts the connection. The request timeout bounds the time. */
function discard(request: IncomingMessage, most: number): void {
  let left = most;
  request.on("data", (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
  request.on("error", ignore);
}

function ignore(): void {}

function bodyTooLarge(limit: number): ToolcribError {
  return new ToolcribError("too_large", `The body of the request is larger than ${limit} bytes.`, {
    hint: "http.limits.bodyBytes sets the limit.",
  });
}

function cutOff(): ToolcribError {
  return new ToolcribError("cancelled", "The connection ended before the whole request had arrived.");
}
