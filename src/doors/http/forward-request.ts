/** Requests that another node of the cluster has to answer: forwards them, relays the response, and serves those of other nodes. */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { type Duplex, duplexPair } from "node:stream";
import { endsWithin } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import type { Cluster, IncomingCall } from "../../cluster/cluster.ts";
import { type Caller, type Scope, SCOPES } from "../../model/caller.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import {
  Exchange,
  type ForwardResult,
  type HttpExchange,
  type HttpResponse,
  onceClosed,
  parseTarget,
  type RouteTable,
} from "./http-exchange.ts";
import { sendError } from "./http-responses.ts";

type ForwardableExchange = Pick<HttpExchange, "request" | "response" | "caller" | "readBody" | "refuseScope">;

interface PendingForward {
  readonly relay: ForwardedResponse;
  readonly done: Promise<unknown>;
}

export class RequestForwarder {
  readonly #cluster: Cluster;
  readonly #underWay = new Set<PendingForward>();
  #closed = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  get size(): number {
    return this.#underWay.size;
  }

  async forward(exchange: ForwardableExchange, node: string, lastWords?: string): Promise<ForwardResult> {
    const body = await exchange.readBody();
    if (this.#closed) return "away";
    const relay = new ForwardedResponse(exchange, lastWords);
    const done = this.#run(relay, exchange, node, body);
    const underWay = { relay, done };
    this.#underWay.add(underWay);
    try {
      return await done;
    } finally {
      this.#underWay.delete(underWay);
    }
  }

  /** Waits this long for pending responses, then ends streams that only listen. */
  async close(graceMs: number, clock: Clock): Promise<void> {
    const late = new AbortController();
    const stopTimer = clock.after(graceMs, () => late.abort());
    // Connections that are already open bring more requests in the meantime.
    for (let owed = this.#owed(); owed.length > 0; owed = this.#owed()) {
      if (!(await endsWithin(Promise.allSettled(owed), { signal: late.signal }))) break;
    }
    stopTimer();
    this.#closed = true;
    const left = this.#owed();
    for (const { relay } of this.#underWay) relay.leave();
    await Promise.allSettled(left);
    // The callers of `forward` answer them before connections are closed.
    if (left.length > 0) await new Promise((resolve) => setImmediate(resolve));
  }

  #owed(): Promise<unknown>[] {
    return [...this.#underWay].filter(({ relay }) => !relay.onlyListens).map(({ done }) => done);
  }

  async #run(
    relay: ForwardedResponse,
    { request, caller }: ForwardableExchange,
    node: string,
    body: Buffer,
  ): Promise<ForwardResult> {
    const head = encodeHead({
      method: request.method ?? "GET",
      url: request.url ?? "/",
      headers: forwardedHeaders(request.headers),
      caller,
    });
    try {
      await this.#cluster.call(forwardAddress(node), {
        head,
        ...(body.length === 0 ? {} : { body }),
        signal: relay.ended,
        onEvent: (event, bytes) => relay.take(event, bytes),
        // The only question is whether the client has read what came so far.
        onQuestion: async () => {
          await relay.drained();
          return {};
        },
      });
      relay.finish();
      return "answered";
    } catch (error) {
      if (relay.isClientGone || relay.cut()) return "answered";
      if (relay.ended.aborted) return "away";
      if (!(error instanceof ToolcribError)) throw error;
      if (request.method === "POST" && error.details?.["sent"] !== false) return "lost";
      const isGone = this.#cluster.isUp && !this.#cluster.nodes().some(({ id }) => id === node);
      return isGone ? "gone" : "away";
    }
  }
}

/** The client's side of one request that another node answers. */
class ForwardedResponse {
  readonly #response: HttpResponse;
  readonly #refuseScope: (scope: Scope) => void;
  readonly #ended = new AbortController();
  readonly #isGet: boolean;
  readonly #lastWords: string | undefined;
  #isStream = false;
  #isClientGone = false;
  #wake: () => void = () => {};
  #refused = false;

  constructor({ request, response, refuseScope }: ForwardableExchange, lastWords: string | undefined) {
    this.#isGet = request.method === "GET";
    this.#lastWords = lastWords;
    this.#response = response;
    this.#refuseScope = refuseScope;
    const onClose = (): void => {
      if (!response.writableFinished) {
        this.#isClientGone = true;
        this.#ended.abort();
      }
      this.#wake();
    };
    onceClosed(response, onClose);
    response.on("drain", () => this.#wake());
  }

  /** A stream by GET ends only with its session. */
  get onlyListens(): boolean {
    return this.#isGet && this.#isStream;
  }

  /** The client has closed its connection. */
  get isClientGone(): boolean {
    return this.#isClientGone;
  }

  /** Aborts when the client no longer waits for the response. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  take(event: JsonObject, bytes: Uint8Array | undefined): void {
    const response = this.#response;
    if (this.#refused || response.destroyed || response.writableEnded) return;
    const { status, headers, refusedScope } = event;
    const scope = SCOPES.find((each) => each === refusedScope);
    if (scope !== undefined) {
      this.#refused = true;
      // The other node found the missing scope; the response depends on the credentials, which only this node has seen.
      this.#refuseScope(scope);
      return;
    }
    if (typeof status === "number") {
      const told = decodeHeaders(headers);
      response.writeHead(status, told);
      // A stream is open before its first event.
      this.#isStream = String(told["content-type"]).startsWith("text/event-stream");
      if (this.#isStream) response.flushHeaders();
    }
    if (bytes !== undefined && bytes.length > 0) response.write(bytes);
  }

  finish(): void {
    if (!this.#refused) this.#response.end();
  }

  /** Ends a stream that only listens. A pending request is cut, or refused by the caller of `forward`. */
  leave(): void {
    if (this.onlyListens) this.finish();
    else this.#ended.abort();
  }

  /** True if a response had begun: a partial one must not look complete. */
  cut(): boolean {
    if (!this.#response.headersSent) return false;
    if (this.#refused) return true;
    // The blank line ends an event of which only a part came.
    if (this.#isStream && this.#lastWords !== undefined) this.#response.end(`\n\n${this.#lastWords}`);
    else this.#response.destroy();
    return true;
  }

  async drained(): Promise<void> {
    const response = this.#response;
    while (!response.destroyed && response.writableNeedDrain) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

interface ForwardedHead {
  readonly method: string;
  /** Path and query, as they were sent. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The caller, as authenticated by the first node. Nodes trust each other; credentials are never forwarded. */
  readonly caller: Caller;
}

/** The address at which a node serves forwarded requests. */
export function forwardAddress(node: string): string {
  return `node.${node}.http`;
}

/** The headers that routes read: no credentials, and nothing about the connection. */
const FORWARDED_HEADERS = new Set([
  "accept",
  "content-type",
  "host",
  "if-match",
  "if-none-match",
  "last-event-id",
  "user-agent",
]);

function forwardedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string" && (FORWARDED_HEADERS.has(name) || name.startsWith("mcp-"))) passed[name] = value;
  }
  return passed;
}

/** They describe one connection. */
const CONNECTION_HEADERS = new Set(["connection", "date", "keep-alive", "transfer-encoding"]);

function responseHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const answered: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !CONNECTION_HEADERS.has(name)) answered[name] = value;
  }
  return answered;
}

/** The head of a forwarded request. */
export function encodeHead({ method, url, headers, caller }: ForwardedHead): JsonObject {
  return { method, url, headers: { ...headers }, caller: { ...caller, scopes: [...caller.scopes] } };
}

/** Undefined for an invalid head. */
function decodeHead(head: JsonObject): ForwardedHead | undefined {
  const { method, url, headers, caller } = head;
  if (typeof method !== "string" || typeof url !== "string" || !isJsonObject(headers)) return undefined;
  const known = decodeCaller(caller);
  return known && { method, url, headers: stringValues(headers), caller: known };
}

export function decodeCaller(value: unknown): Caller | undefined {
  if (!isJsonObject(value)) return undefined;
  const { key, user, role, owner, scopes, expiresAt, page } = value;
  if (typeof key !== "string" || typeof owner !== "boolean" || !Array.isArray(scopes)) return undefined;
  return {
    key,
    owner,
    scopes: new Set(SCOPES.filter((scope) => scopes.includes(scope))),
    ...(typeof user === "string" ? { user } : {}),
    ...(typeof role === "string" ? { role } : {}),
    ...(typeof expiresAt === "number" ? { expiresAt } : {}),
    ...(page === true ? { page } : {}),
  };
}

function decodeHeaders(value: unknown): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, text] of Object.entries(isJsonObject(value) ? value : {})) {
    if (typeof text === "string") headers[name] = text;
    else if (Array.isArray(text)) headers[name] = text.map(String);
  }
  return headers;
}

function stringValues(value: JsonObject): Record<string, string> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, text]) => (typeof text === "string" ? [[name, text]] : [])),
  );
}

// Not imported as a module: that loads Node's whole fetch as well.
const { createServer, request: httpRequest } = process.getBuiltinModule("node:http");

/** After this much the other node is asked whether its client has read it. */
const WINDOW_BYTES = 256 * 1024;
const REFUSED_SCOPE = "toolcrib-refused-scope";

interface ServeForwardedOptions {
  readonly cluster: Cluster;
  readonly routes: RouteTable;
  readonly bodyBytes: () => number;
  /** A fault of ours, without secrets. */
  readonly warn: (message: string) => void;
}

/**
 * Serves requests that other nodes forward, until the returned function is called. Each goes through Node's own HTTP code over
 * a pair of streams in memory, so that routes get a request and a response like any other: with flow control, and an end that
 * both sides notice.
 */
export function serveForwarded(options: ServeForwardedOptions): () => void {
  const heads = new WeakMap<Duplex, ForwardedHead>();
  const server = createServer({ keepAlive: false }, (request, response) => {
    const head = heads.get(request.socket);
    if (head === undefined) response.destroy();
    else routeForwarded(options, head, request, response);
  });
  // The node that has the client sets the timeouts.
  server.timeout = server.requestTimeout = server.headersTimeout = server.keepAliveTimeout = 0;
  const { cluster } = options;
  return cluster.serve(forwardAddress(cluster.node.id), async (call) => {
    const head = decodeHead(call.head);
    if (head === undefined) throw new ToolcribError("invalid_arguments", "This is not a request that a node forwards.");
    const [near, far] = duplexPair();
    heads.set(far, head);
    // A complete response is still to be read; a cut one never ends.
    far.once("close", () => (far.writableFinished ? undefined : near.destroy()));
    server.emit("connection", far);
    try {
      await relayResponse(call, await responseTo(head, call, near), call.signal);
      return { head: {} };
    } finally {
      near.destroy();
      far.destroy();
    }
  });
}

/** Never forwards again: the exchange has no `forwardTo`. */
function routeForwarded(
  { routes, bodyBytes, warn }: ServeForwardedOptions,
  { url, caller }: ForwardedHead,
  request: IncomingMessage,
  response: HttpResponse,
): void {
  const fail = (thrown: unknown): void => {
    if (!(thrown instanceof ToolcribError)) warn(`A request of another node could not be answered: ${String(thrown)}`);
    if (response.headersSent) response.destroy();
    else sendError(response, asToolcribError(thrown));
  };
  try {
    const target = parseTarget(url);
    const found = routes.find(target.path);
    if (found === undefined) throw new ToolcribError("not_found", `There is nothing at ${target.path}.`);
    const exchange = new Exchange({
      request,
      response,
      target,
      caller,
      bodyBytes: bodyBytes(),
      refuseScope: (scope) => void response.writeHead(403, { [REFUSED_SCOPE]: scope }).end(),
      // The node that forwarded it has counted it.
      refuseTooMany: () => false,
    });
    const handled = found.handle(exchange);
    if (handled instanceof Promise) handled.catch(fail);
  } catch (error) {
    fail(error);
  }
}

function responseTo(
  { method, url, headers }: ForwardedHead,
  call: IncomingCall,
  connection: Duplex,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { body } = call;
    const length = body === undefined ? {} : { "content-length": body.length };
    const sent = httpRequest({
      method,
      path: url,
      headers: { host: "node", ...headers, ...length, connection: "close" },
      createConnection: () => connection,
    });
    sent.on("response", resolve);
    sent.on("error", reject);
    const giveUp = (): void => void connection.destroy();
    if (call.signal.aborted) giveUp();
    else call.signal.addEventListener("abort", giveUp, { once: true });
    sent.end(body);
  });
}

async function relayResponse({ emit, ask }: IncomingCall, answer: IncomingMessage, signal: AbortSignal): Promise<void> {
  const { [REFUSED_SCOPE]: refusedScope, ...headers } = answer.headers;
  if (typeof refusedScope === "string") {
    answer.resume();
    await emit({ refusedScope });
    return;
  }
  await emit({ status: answer.statusCode ?? 500, headers: responseHeaders(headers) });
  let unread = 0;
  // Rejects if the answer is cut, here or there; the other node then cuts its own. Chunks are bytes, as nothing decodes them.
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    await emit({}, chunk);
    unread += chunk.length;
    if (unread < WINDOW_BYTES) continue;
    await ask({ read: unread }, signal);
    unread = 0;
  }
}
