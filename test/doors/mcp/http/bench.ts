/** A listener with the transport behind it, and a client that speaks plain HTTP. */
import {
  type ClientRequest,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { McpHttp, type McpHttpOptions } from "../../../../src/doors/mcp/http/mcp-http.ts";
import type { Engine } from "../../../../src/doors/mcp/http/transport.ts";
import type { Caller, Scope } from "../../../../src/model/caller.ts";
import type { JsonObject } from "../../../../src/model/json.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { ToolcribError } from "../../../../src/model/errors.ts";

const MAX_BODY = 4 * 1024 * 1024;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: JsonObject;
}

export interface SentEvent {
  readonly id?: string;
  readonly event?: string;
  readonly retry?: string;
  readonly data?: string;
  /** The data, parsed. */
  readonly message: JsonObject;
}

type Headers = Readonly<Record<string, string>>;
const BOTH = "application/json, text/event-stream";
const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";

export const ENVELOPE = { [VERSION_KEY]: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };

export class Bench {
  readonly clock = new FakeClock();
  readonly warnings: string[] = [];
  /** Callers by the header `x-caller`. */
  readonly callers = new Map<string, Caller>();
  readonly http: McpHttp;
  /** How many requests have come, and how many of them have reached the transport. */
  arrived = 0;
  handedOver = 0;
  /** Requests are handed over only when their clients have gone, as if that long was needed to know who they are. */
  handsOverLate = false;
  readonly #server = createServer((incoming, response) => {
    this.arrived += 1;
    if (this.handsOverLate) {
      const body = readBody(incoming);
      response.once("close", () => setImmediate(() => this.#handOver(incoming, response, () => body)));
    } else this.#handOver(incoming, response, () => readBody(incoming));
  });
  readonly #requests = new Set<ClientRequest>();

  #handOver(incoming: IncomingMessage, response: ServerResponse, body: () => Promise<Buffer>): void {
    const url = new URL(incoming.url ?? "/", "http://test");
    const named = this.callers.get(String(incoming.headers["x-caller"] ?? "owner"));
    const caller = named ?? callerOf(String(incoming.headers["x-caller"] ?? "owner"));
    const exchange = {
      request: incoming,
      response,
      path: url.pathname.length > 1 ? url.pathname.replace(/\/$/, "") : url.pathname,
      query: url.searchParams,
      caller,
      readBody: body,
      refuseTooMany: () => false,
      refuseScope: (scope: Scope) => {
        response.writeHead(403, { "www-authenticate": `Bearer scope="${scope}"` });
        response.end();
      },
    };
    const [, first] = url.pathname.split("/");
    const route = this.http.routes.find(({ path }) => path === `/${first}`) ?? this.http.routes[0];
    void route?.handle(exchange);
    this.handedOver += 1;
  }

  constructor(door: Engine, options: Partial<McpHttpOptions> = {}) {
    this.http = new McpHttp({
      door,
      clock: this.clock,
      basePath: "/mcp",
      ssePath: "/sse",
      messagesPath: "/messages",
      maxSessions: 100,
      maxStreams: 100,
      sessionIdleMs: 30 * 60_000,
      warn: (message) => void this.warnings.push(message),
      ...options,
    });
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get url(): string {
    // A listener on a port has an address with one.
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const sent of this.#requests) sent.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** The head of the answer, with its body still to come. */
  head(method: string, path: string, headers: Headers = {}, body?: unknown): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = request(`${this.url}${path}`, { method, headers, agent: false }, resolve);
      this.#requests.add(sent);
      sent.on("close", () => this.#requests.delete(sent));
      sent.on("error", reject);
      sent.end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body));
    });
  }

  async send(method: string, path: string, headers: Headers = {}, body?: unknown): Promise<Answer> {
    const incoming = await this.head(method, path, headers, body);
    const text = (await readBody(incoming)).toString();
    const isJson = incoming.headers["content-type"] === "application/json";
    return {
      status: incoming.statusCode ?? 0,
      headers: incoming.headers,
      text,
      json: isJson ? (JSON.parse(text) as JsonObject) : {},
    };
  }

  /** Sends a request that is cut before its answer; resolves when it is on its way. */
  cut(path: string, headers: Headers, body?: unknown): { cut(): void } {
    const options = {
      method: body === undefined ? "GET" : "POST",
      headers: { ...POST_HEADERS, ...headers },
      agent: false,
    };
    const sent = request(`${this.url}${path}`, options);
    sent.on("error", () => {});
    sent.end(body === undefined ? undefined : JSON.stringify(body));
    return { cut: () => sent.destroy() };
  }

  post(body: unknown, headers: Headers = {}, path = "/mcp"): Promise<Answer> {
    return this.send("POST", path, { ...POST_HEADERS, ...headers }, body);
  }

  async postStream(body: unknown, headers: Headers = {}, path = "/mcp"): Promise<EventReader> {
    return new EventReader(await this.head("POST", path, { ...POST_HEADERS, ...headers }, body));
  }

  async getStream(headers: Headers, path = "/mcp"): Promise<EventReader> {
    return new EventReader(await this.head("GET", path, { accept: "text/event-stream", ...headers }));
  }

  /** A session's id, as a header to send on. */
  async initialize(version = "2025-11-25", headers: Headers = {}, path = "/mcp"): Promise<Record<string, string>> {
    const answer = await this.post(initializeRequest(version), headers, path);
    return { ...headers, "mcp-session-id": String(answer.headers["mcp-session-id"]) };
  }

  /** A modern request with all its headers right. */
  modern(method: string, params: JsonObject = {}, headers: Headers = {}, id: string | number = 1): Promise<Answer> {
    return this.post(modernRequest(method, params, id), { ...modernHeaders(method, params), ...headers });
  }
}

const POST_HEADERS = { "content-type": "application/json", accept: BOTH };

export function modernRequest(method: string, params: JsonObject, id: string | number = 1): JsonObject {
  return { jsonrpc: "2.0", id, method, params: { _meta: ENVELOPE, ...params } };
}

export function modernHeaders(method: string, params: JsonObject): Record<string, string> {
  const name = params["name"] ?? params["uri"];
  const named: Record<string, string> = typeof name === "string" ? { "mcp-name": name } : {};
  return { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...named };
}

export function initializeRequest(protocolVersion: string): JsonObject {
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } };
  return { jsonrpc: "2.0", id: "init", method: "initialize", params };
}

export function call(id: string | number, name: string, args: JsonObject = {}): JsonObject {
  return { jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } };
}

export function callerOf(key: string, more: Partial<Caller> = {}): Caller {
  return { key, owner: false, scopes: new Set<Scope>(["read", "call"]), ...more };
}

/** Server-sent events in the order they come. */
export class EventReader {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly comments: string[] = [];
  ended = false;
  readonly #incoming: IncomingMessage;
  readonly #events: SentEvent[] = [];
  #rest = "";
  #wake: () => void = () => {};

  constructor(incoming: IncomingMessage) {
    this.status = incoming.statusCode ?? 0;
    this.headers = incoming.headers;
    this.#incoming = incoming;
    incoming.setEncoding("utf8");
    incoming.on("data", (text: string) => this.#read(text));
    incoming.on("error", () => {});
    incoming.on("close", () => {
      this.ended = true;
      this.#wake();
    });
  }

  /** Undefined when the stream has ended. */
  async next(): Promise<SentEvent | undefined> {
    while (this.#events.length === 0 && !this.ended) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#events.shift();
  }

  async rest(): Promise<SentEvent[]> {
    const all: SentEvent[] = [];
    for (let event = await this.next(); event !== undefined; event = await this.next()) all.push(event);
    return all;
  }

  cut(): void {
    this.#incoming.destroy();
  }

  pauseReading(): void {
    this.#incoming.pause();
  }

  resumeReading(): void {
    this.#incoming.resume();
  }

  #read(text: string): void {
    const blocks = `${this.#rest}${text}`.split("\n\n");
    this.#rest = blocks.pop() ?? "";
    for (const block of blocks) {
      if (block.startsWith(":")) this.comments.push(block.slice(1).trim());
      else this.#events.push(eventIn(block));
    }
    this.#wake();
  }
}

function eventIn(block: string): SentEvent {
  const fields = Object.fromEntries(
    block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
  );
  const data = fields["data"] ?? "";
  return { ...fields, message: data.startsWith("{") ? (JSON.parse(data) as JsonObject) : {} };
}

function readBody(incoming: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    incoming.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BODY) reject(new ToolcribError("too_large", "The body is too large."));
    });
    incoming.on("end", () => resolve(Buffer.concat(chunks)));
    incoming.on("error", reject);
  });
}
