/**
 * MCP over HTTP, both eras at one address: `/mcp` for Streamable HTTP, `/sse` and `/messages` for its predecessor. Works on
 * raw exchanges of `node:http`, because each call passes here.
 */
import { endsWithin } from "../../../base/async.ts";
import type { Clock } from "../../../base/clock.ts";
import type { RoutableIds } from "../../../hub/cluster/routable-ids.ts";
import { asToolcribError } from "../../../model/errors.ts";
import { INVALID_REQUEST, MODERN_VERSION, PARSE_ERROR, type RequestId } from "../../../model/protocol.ts";
import { type CallerQuota, quotaError, type QuotaReached } from "../../../policy/quota.ts";
import type { HttpExchange, HttpResponse, HttpRoute } from "../../http/http-exchange.ts";
import { OpenStreams, SseConnection } from "../../http/open-streams.ts";
import { parseMessages } from "../rpc-messages.ts";
import { requestedScope, type ViewScope } from "../view-scope.ts";
import { acceptsOf, headerOf, isJson, refuseRpc, refuseWithError, respondEmpty } from "./http-messages.ts";
import { postModern } from "./modern-post.ts";
import { openSse, postToSse } from "./sse-transport.ts";
import { findSessionOrRefuse, postBatch, postLegacy } from "./streamable-session.ts";
import {
  PendingRequests,
  type Engine,
  forwardToOwner,
  isModern,
  type McpPost,
  SESSION_HEADER,
  SessionTable,
  type Transport,
  VERSION_HEADER,
} from "./transport.ts";

export interface McpHttpLimits {
  readonly maxSessions: number;
  readonly maxStreams: number;
  readonly sessionIdleMs: number;
  /** How many sessions one caller may have; all if absent. */
  readonly perCaller?: Omit<CallerQuota, "total"> | undefined;
  /** The same for streams. */
  readonly streamsPerCaller?: Omit<CallerQuota, "total"> | undefined;
}

export interface McpHttpOptions extends McpHttpLimits {
  readonly door: Engine;
  readonly clock: Clock;
  /** `/mcp` */
  readonly basePath: string;
  /** `/sse` */
  readonly ssePath: string;
  /** `/messages` */
  readonly messagesPath: string;
  /** How often a quiet stream gets a comment. */
  readonly heartbeatMs?: number;
  /** How long a call continues for a legacy client whose resumable stream was cut. */
  readonly resumeGraceMs?: number;
  /** In a cluster: ids of sessions that say which node has them. */
  readonly ids?: RoutableIds | undefined;
  readonly warn: (message: string) => void;
}

const HEARTBEAT_MS = 15_000;
const RESUME_GRACE_MS = 10_000;

export class McpHttp {
  readonly #options: McpHttpOptions;
  readonly #transport: Transport & { isClosing: boolean };
  readonly routes: readonly HttpRoute[];
  /** Limits that were reported already, so that each is reported once. */
  readonly #full = new Set<string>();

  constructor(options: McpHttpOptions) {
    const { door, clock, heartbeatMs = HEARTBEAT_MS, resumeGraceMs = RESUME_GRACE_MS } = options;
    this.#options = options;
    this.routes = [
      { path: options.basePath, access: "read", isFrequent: true, handle: (exchange) => this.#handleMcp(exchange) },
      { path: options.ssePath, access: "read", handle: (exchange) => this.#handleSse(exchange) },
      { path: options.messagesPath, access: "read", handle: (exchange) => this.#handleMessages(exchange) },
    ];
    this.#transport = {
      door,
      clock,
      resumeGraceMs,
      sessions: new SessionTable(clock, options),
      streams: new OpenStreams(clock, heartbeatMs, streamQuota(options)),
      isClosing: false,
      arriving: new PendingRequests(),
      ids: options.ids,
      refuseFull: (response, id, what, reached) => this.#refuseFull(response, id, what, reached),
      refuseClosing,
    };
  }

  get sessions(): number {
    return this.#transport.sessions.size;
  }

  get streams(): number {
    return this.#transport.streams.size;
  }

  /** Applies to new sessions and streams; open ones stay. */
  reconfigure(limits: McpHttpLimits): void {
    this.#transport.sessions.setLimits(limits);
    this.#transport.streams.setLimits(streamQuota(limits));
    this.#full.clear();
  }

  #handleMcp(exchange: HttpExchange): void | Promise<void> {
    const scope = this.#scopeOf(exchange, this.#options.basePath);
    if (scope === undefined) return;
    switch (exchange.request.method) {
      case "POST":
        return this.#post(exchange, scope);
      case "GET":
        return this.#ofSession(exchange, () => this.#get(exchange, scope));
      case "DELETE":
        return this.#ofSession(exchange, () => this.#delete(exchange, scope));
      default:
        return refuseMethod(exchange, "GET, POST, DELETE");
    }
  }

  async #handleSse(exchange: HttpExchange): Promise<void> {
    if (exchange.request.method !== "GET") return refuseMethod(exchange, "GET");
    const scope = this.#scopeOf(exchange, this.#options.ssePath);
    if (scope !== undefined) openSse(this.#transport, exchange, scope, this.#options.messagesPath);
  }

  async #handleMessages(exchange: HttpExchange): Promise<void> {
    if (exchange.request.method !== "POST") return refuseMethod(exchange, "POST");
    await this.#arriving(exchange, async (value) => {
      const posted = parseMessages(value);
      if (!posted.isBatch && posted.message.kind === "invalid") return refuseMessage(exchange, posted.message.id);
      if (await forwardToOwner(this.#options.ids, exchange, "sse", exchange.query.get("sessionId"), null)) return;
      postToSse(this.#transport, exchange, posted);
    });
  }

  /** @param handle Gets the body. */
  async #arriving(exchange: HttpExchange, handle: (value: unknown) => void | Promise<void>): Promise<void> {
    const { arriving, isClosing } = this.#transport;
    if (!isClosing) arriving.begin(exchange);
    try {
      const body = await readJson(exchange);
      if (body !== undefined) await handle(body.value);
    } finally {
      arriving.end(exchange);
    }
  }

  /**
   * Refuses new sessions and requests. Requests that have begun, if only to arrive, may finish within `graceMs`; then the door and
   * all streams are closed.
   */
  async close(graceMs: number): Promise<void> {
    const { clock, sessions, streams, arriving } = this.#transport;
    this.#transport.isClosing = true;
    const done = arriving.whenIdle().then(() => streams.whenRepliesSent());
    await endsWithin(done, { ms: graceMs, clock });
    this.#options.door.close();
    // The final answers of listening streams are still to be written.
    await new Promise((resolve) => setImmediate(resolve));
    streams.endAll("the gateway is shutting down");
    sessions.endAll();
  }

  #post(exchange: HttpExchange, scope: ViewScope): void | Promise<void> {
    const { request, response } = exchange;
    const accepts = acceptsOf(request.headers.accept);
    if (accepts === undefined) {
      const message = "Accept must allow application/json and text/event-stream.";
      return refuseRpc(response, 406, null, { code: INVALID_REQUEST, message });
    }
    const post: McpPost = { transport: this.#transport, exchange, accepts, scope };
    return this.#arriving(exchange, (value) => this.#answerPost(post, value));
  }

  /** Not an async function: one more would be a promise and some turns of the queue for every call. */
  #answerPost(post: McpPost, value: unknown): void | Promise<void> {
    const { exchange } = post;
    const { request, response } = exchange;
    const all = parseMessages(value);
    const version = headerOf(request.headers[VERSION_HEADER]);
    if (all.isBatch) {
      if (version !== MODERN_VERSION) return postBatch(post, all.batch);
      const message = "This protocol version has no batches.";
      return refuseRpc(response, 400, null, { code: INVALID_REQUEST, message });
    }
    const posted = all.message;
    switch (posted.kind) {
      case "invalid":
        return refuseMessage(exchange, posted.id);
      case "response":
        if (version !== MODERN_VERSION) return postLegacy(post, posted);
        return refuseMessage(exchange, null);
      case "notification":
        // The modern era has no client notifications over HTTP: closing the connection cancels a request.
        if (isModern(posted.message, version)) return respondEmpty(response, 202);
        return postLegacy(post, posted);
      case "request":
        if (isModern(posted.message, version)) return postModern(post, posted.message);
        return postLegacy(post, posted);
    }
  }

  #ofSession(exchange: HttpExchange, handle: () => void): void | Promise<void> {
    const { ids } = this.#options;
    if (ids === undefined) return handle();
    const id = headerOf(exchange.request.headers[SESSION_HEADER]);
    return forwardToOwner(ids, exchange, "mcp", id, null).then((isAnswered) => (isAnswered ? undefined : handle()));
  }

  #get(exchange: HttpExchange, scope: ViewScope): void {
    const { request, response } = exchange;
    if (headerOf(request.headers[VERSION_HEADER]) === MODERN_VERSION) return refuseMethod(exchange, "POST");
    if (acceptsOf(request.headers.accept)?.stream !== true) {
      const message = "Accept must allow text/event-stream.";
      return refuseRpc(response, 406, null, { code: INVALID_REQUEST, message });
    }
    const session = findSessionOrRefuse(this.#transport, exchange, scope, null);
    if (session === undefined) return;
    if (!exchange.caller.scopes.has("read")) return exchange.refuseScope("read");
    const { streams, isClosing } = this.#transport;
    const lastEventId = headerOf(request.headers["last-event-id"]);
    if (isClosing && lastEventId === undefined) return refuseClosing(response, null);
    const { caller } = exchange;
    const full = streams.reachedFor(caller);
    if (full !== undefined) return this.#refuseFull(response, null, "streams", full);
    const isKnown = session.listen(lastEventId, () => {
      const connection = new SseConnection(response);
      streams.add(connection, caller);
      return connection;
    });
    if (isKnown) return;
    const message = "Last-Event-ID does not name an event of this session to resume from.";
    refuseRpc(response, 400, null, { code: INVALID_REQUEST, message });
  }

  #delete(exchange: HttpExchange, scope: ViewScope): void {
    if (headerOf(exchange.request.headers[VERSION_HEADER]) === MODERN_VERSION) return refuseMethod(exchange, "POST");
    const session = findSessionOrRefuse(this.#transport, exchange, scope, null);
    if (session === undefined) return;
    this.#transport.sessions.end(session);
    respondEmpty(exchange.response, 204);
  }

  #scopeOf({ path, query, caller, response }: HttpExchange, base: string): ViewScope | undefined {
    const choice = requestedScope(base, path, query, caller, this.#transport.door.scopeNames);
    if (choice.ok) return choice.scope;
    if (choice.reason === "no such path") {
      refuseWithError(response, null, { code: "not_found", message: `There is nothing at ${path}.` });
    } else {
      const message = "The credentials are bound to a different role than the one in the address.";
      refuseWithError(response, null, { code: "denied", message, hint: `Use ${base} without a role.` });
    }
    return undefined;
  }

  #refuseFull(response: HttpResponse, id: RequestId | null, what: "sessions" | "streams", reached: QuotaReached): void {
    const error = quotaError(what, reached, what);
    const limit = `${what} ${reached.of}`;
    if (!this.#full.has(limit)) {
      this.#full.add(limit);
      this.#options.warn(`${error.message} New ones are refused.`);
    }
    refuseWithError(response, id, { ...error.toObject(), code: "rate_limited" }, 503);
  }
}

function streamQuota({ maxStreams, streamsPerCaller }: McpHttpLimits): CallerQuota {
  return { ...streamsPerCaller, total: maxStreams };
}

function refuseClosing(response: HttpResponse, id: RequestId | null): void {
  refuseWithError(response, id, { code: "server_unavailable", message: "The gateway is shutting down." });
}

function refuseMethod({ response, request }: HttpExchange, allow: string): void {
  const message = `${request.method ?? "This method"} is not allowed here.`;
  refuseRpc(response, 405, null, { code: INVALID_REQUEST, message }, { Allow: allow });
}

function refuseMessage({ response }: HttpExchange, id: RequestId | null): void {
  refuseRpc(response, 400, id, {
    code: INVALID_REQUEST,
    message: "The body is not a JSON-RPC 2.0 message of a client.",
  });
}

/** The parsed body, or undefined if there is none and that has been answered. */
async function readJson(exchange: HttpExchange): Promise<{ readonly value: unknown } | undefined> {
  const { request, response } = exchange;
  if (!isJson(request.headers["content-type"])) {
    refuseRpc(response, 415, null, { code: INVALID_REQUEST, message: "Content-Type must be application/json." });
    return undefined;
  }
  let body: Buffer;
  try {
    body = await exchange.readBody();
  } catch (error) {
    refuseWithError(response, null, asToolcribError(error).toObject());
    return undefined;
  }
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return { value };
  } catch {
    refuseRpc(response, 400, null, { code: PARSE_ERROR, message: "Parse error: the body is not JSON." });
    return undefined;
  }
}
