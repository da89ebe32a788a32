/** An MCP server in this process, over Streamable HTTP on a loopback port, that can be made to fail. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  type CallToolResult,
  LATEST_LEGACY_VERSION,
  LEGACY_VERSIONS,
  type ToolAnnotations,
  type ToolDefinition,
} from "../model/protocol.ts";
import { readJsonBody, readHeaders } from "./read-request.ts";

export interface FakeServerOptions {
  readonly tools?: FakeTools;
  /** Its name; `fake` by default. */
  readonly name?: string;
  readonly instructions?: string;
  /** Clients that connect have to wait for it. */
  readonly opens?: Promise<unknown>;
}

export interface FakeServer extends AsyncDisposable {
  readonly url: string;
  /** Calls that arrived, in order. */
  readonly calls: readonly { readonly name: string; readonly arguments: JsonObject }[];
  /** Sessions that are open. */
  readonly sessions: number;
  /** Replaces the tools; clients are notified. */
  setTools(tools: FakeTools): void;
  /** Responds to everything with this HTTP status from now on; undefined ends that. */
  refuseWith(status: number | undefined): void;
  /** Breaks all connections, forgets all sessions and accepts no more. */
  crash(): Promise<void>;
  /** Listens again, at the same address. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/**
 * @example
 * await using server = await startFakeServer({ tools: { echo: (args) => String(args["text"]) } });
 * await using hub = await createHub({ mcpServers: { fake: { url: server.url } } });
 */
export async function startFakeServer(options: FakeServerOptions = {}): Promise<FakeServer> {
  const server = new RunningServer(options);
  await server.restart();
  return server;
}

class RunningServer implements FakeServer {
  readonly calls: { name: string; arguments: JsonObject }[] = [];
  readonly #options: FakeServerOptions;
  readonly #sessions = new Map<string, FakeSession>();
  /** Streams on which clients listen for what belongs to no request. */
  readonly #listeners = new Set<ServerResponse>();
  #tools: FakeTools;
  #refusal: number | undefined;
  #server: Server | undefined;
  #port = 0;

  constructor(options: FakeServerOptions) {
    this.#options = options;
    this.#tools = options.tools ?? {};
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/mcp`;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  setTools(tools: FakeTools): void {
    this.#tools = tools;
    const changed = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
    for (const listener of this.#listeners) writeEvent(listener, changed);
  }

  refuseWith(status: number | undefined): void {
    this.#refusal = status;
  }

  async restart(): Promise<void> {
    if (this.#server !== undefined) return;
    this.#server = createServer((request, response) => void this.#handle(request, response));
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    // A TCP server has an address of this shape; a string stands for a pipe.
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  async crash(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const session of this.#sessions.values()) session.end();
    this.#sessions.clear();
    this.#listeners.clear();
    server?.closeAllConnections();
    await new Promise<unknown>((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  }

  close(): Promise<void> {
    return this.crash();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#refusal !== undefined) return end(response, this.#refusal);
    const headers = readHeaders(request);
    const session = this.#sessions.get(headers["mcp-session-id"] ?? "");
    if (request.method === "POST") {
      const message = await readJsonBody(request);
      if (message === undefined) return end(response, 400);
      if (message["method"] === "initialize") return this.#open(message, headers, response);
      if (session !== undefined) return this.#take(session, message, headers, response);
    }
    if (session === undefined) return end(response, headers["mcp-session-id"] === undefined ? 400 : 404);
    if (request.method === "GET") return this.#listen(response);
    if (request.method === "DELETE") {
      session.end();
      this.#sessions.delete(headers["mcp-session-id"] ?? "");
    }
    end(response, request.method === "DELETE" ? 200 : 405);
  }

  async #open(message: JsonObject, headers: Record<string, string>, response: ServerResponse): Promise<void> {
    await this.#options.opens;
    const session = new FakeSession({
      name: this.#options.name ?? "fake",
      instructions: this.#options.instructions,
      tools: () => this.#tools,
      onCall: (name, args) => void this.calls.push({ name, arguments: args }),
    });
    const id = randomUUID();
    this.#sessions.set(id, session);
    const answer = await session.answer(message, headers, () => undefined);
    response.writeHead(200, { "content-type": "application/json", "mcp-session-id": id }).end(JSON.stringify(answer));
  }

  async #take(
    session: FakeSession,
    message: JsonObject,
    headers: Record<string, string>,
    response: ServerResponse,
  ): Promise<void> {
    if (message["method"] === undefined || message["id"] === undefined) {
      session.take(message);
      return end(response, 202);
    }
    openStream(response);
    const cancelled = { method: "notifications/cancelled", params: { requestId: message["id"] } };
    response.once("close", () => session.take(cancelled));
    writeEvent(response, await session.answer(message, headers, (sent) => writeEvent(response, sent)));
    response.end();
  }

  #listen(response: ServerResponse): void {
    openStream(response);
    this.#listeners.add(response);
    response.once("close", () => this.#listeners.delete(response));
  }
}

function openStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  response.flushHeaders();
}

function writeEvent(response: ServerResponse, message: JsonObject): void {
  if (!response.destroyed) response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}

function end(response: ServerResponse, status: number): void {
  response.writeHead(status).end();
}

/** Sends a message to the client, on the stream of the request that it belongs to. */
type Send = (message: JsonObject) => void;

interface FakeSessionParts {
  readonly name: string;
  readonly instructions: string | undefined;
  readonly tools: () => FakeTools;
  readonly onCall: (name: string, args: JsonObject) => void;
}

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

/** One client's session at a fake server: answers its requests, and asks it in turn. */
class FakeSession {
  readonly #parts: FakeSessionParts;
  readonly #asked = new Map<string, (answer: JsonObject) => void>();
  readonly #running = new Map<unknown, AbortController>();
  #questions = 0;

  constructor(parts: FakeSessionParts) {
    this.#parts = parts;
  }

  /** The answer to a request, and what is sent before it. */
  async answer(request: JsonObject, headers: Readonly<Record<string, string>>, send: Send): Promise<JsonObject> {
    const { id, method } = request;
    const params = isJsonObject(request["params"]) ? request["params"] : {};
    const envelope = { jsonrpc: "2.0", id };
    const { name, instructions, tools } = this.#parts;
    switch (method) {
      case "initialize": {
        const wanted = LEGACY_VERSIONS.find((version) => version === params["protocolVersion"]);
        const result = {
          protocolVersion: wanted ?? LATEST_LEGACY_VERSION,
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name, version: "1.0.0" },
          instructions,
        };
        return { ...envelope, result };
      }
      case "ping":
        return { ...envelope, result: {} };
      case "tools/list":
        return { ...envelope, result: { tools: definitions(tools()) } };
      case "tools/call":
        return { ...envelope, ...(await this.#call(id, params, headers, send)) };
      default:
        return { ...envelope, error: { code: METHOD_NOT_FOUND, message: `Method not found: ${String(method)}` } };
    }
  }

  /** A notification, or the answer to one of our questions. */
  take(message: JsonObject): void {
    if (message["method"] === "notifications/cancelled") {
      const params = message["params"];
      if (isJsonObject(params)) this.#running.get(params["requestId"])?.abort();
    }
    if (message["method"] === undefined) this.#asked.get(String(message["id"]))?.(message);
  }

  /** Everything that runs is over. */
  end(): void {
    for (const controller of this.#running.values()) controller.abort();
  }

  async #call(id: unknown, params: JsonObject, headers: FakeCall["headers"], send: Send): Promise<JsonObject> {
    const name = String(params["name"]);
    const args = isJsonObject(params["arguments"]) ? params["arguments"] : {};
    this.#parts.onCall(name, args);
    const controller = new AbortController();
    this.#running.set(id, controller);
    const meta = params["_meta"];
    const progressToken = isJsonObject(meta) ? meta["progressToken"] : undefined;
    try {
      const result = await runTool(this.#parts.tools(), name, args, {
        signal: controller.signal,
        headers,
        progress(progress, total, message) {
          if (progressToken === undefined) return;
          const told = { progressToken, progress, total, message };
          send({ jsonrpc: "2.0", method: "notifications/progress", params: told });
        },
        elicit: (question) => this.#ask("elicitation/create", question, send, controller.signal),
        sample: (question) => this.#ask("sampling/createMessage", question, send, controller.signal),
      });
      return result === undefined ? { error: { code: INVALID_PARAMS, message: `Unknown tool: ${name}` } } : { result };
    } finally {
      this.#running.delete(id);
    }
  }

  async #ask(method: string, params: JsonObject, send: Send, signal: AbortSignal): Promise<JsonObject> {
    const id = `question-${++this.#questions}`;
    const answered = new Promise<JsonObject>((resolve, reject) => {
      this.#asked.set(id, resolve);
      signal.addEventListener("abort", () => reject(new UnansweredQuestion(`${method}: the call has ended`)));
    });
    send({ jsonrpc: "2.0", id, method, params });
    const { result, error } = await answered.finally(() => this.#asked.delete(id));
    if (isJsonObject(result)) return result;
    throw new UnansweredQuestion(`${method}: ${isJsonObject(error) ? String(error["message"]) : "no answer"}`);
  }
}

class UnansweredQuestion extends Error {
  override readonly name = "UnansweredQuestion";
}

export interface FakeCall {
  /** Aborts when the client cancels the call or goes away. */
  readonly signal: AbortSignal;
  /** Of the HTTP request, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  progress(progress: number, total?: number, message?: string): void;
  /** Asks the user: MCP's `elicitation/create`. Rejects if the client does not answer. */
  elicit(params: JsonObject): Promise<JsonObject>;
  /** Asks for a model's answer: MCP's `sampling/createMessage`. */
  sample(params: JsonObject): Promise<JsonObject>;
}

/** Returns text or a whole result. An error that it throws becomes an error result. */
export type RunFakeTool = (args: JsonObject, call: FakeCall) => FakeOutput | Promise<FakeOutput>;
type FakeOutput = string | CallToolResult;

export interface FakeTool {
  readonly run: RunFakeTool;
  readonly description?: string;
  /** Any object if absent. */
  readonly inputSchema?: JsonObject;
  readonly annotations?: ToolAnnotations;
}

export type FakeTools = Readonly<Record<string, FakeTool | RunFakeTool>>;

function definitions(tools: FakeTools): ToolDefinition[] {
  return Object.entries(tools).map(([name, entry]) => {
    const { run: _, inputSchema = { type: "object" }, ...rest } = asTool(entry);
    return { name, inputSchema, ...rest };
  });
}

/** Undefined if there is no such tool. */
async function runTool(
  tools: FakeTools,
  name: string,
  args: unknown,
  call: FakeCall,
): Promise<CallToolResult | undefined> {
  const entry = Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (entry === undefined) return undefined;
  try {
    const output = await asTool(entry).run(isJsonObject(args) ? args : {}, call);
    return typeof output === "string" ? textResult(output) : output;
  } catch (thrown) {
    return { ...textResult(thrown instanceof Error ? thrown.message : String(thrown)), isError: true };
  }
}

function asTool(entry: FakeTool | RunFakeTool): FakeTool {
  return typeof entry === "function" ? { run: entry } : entry;
}

function textResult(text: string): CallToolResult {
  return { content: [{ type: "text", text }] };
}
