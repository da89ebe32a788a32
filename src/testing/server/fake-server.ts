/** An MCP server in this process, over Streamable HTTP on a loopback port, that can be made to fail. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { JsonObject } from "../../model/json.ts";
import { bodyOf, headersOf } from "../incoming.ts";
import { FakeSession } from "./fake-session.ts";
import type { FakeTools } from "./fake-tool.ts";

export interface FakeServerOptions {
  readonly tools?: FakeTools;
  /** What it calls itself; `fake` by default. */
  readonly name?: string;
  readonly instructions?: string;
  /** Connecting is not answered before. */
  readonly opens?: Promise<unknown>;
}

export interface FakeServer extends AsyncDisposable {
  readonly url: string;
  /** Calls that arrived, in order. */
  readonly calls: readonly { readonly name: string; readonly arguments: JsonObject }[];
  /** Sessions that are open. */
  readonly sessions: number;
  /** Other tools from now on; clients are told. */
  setTools(tools: FakeTools): void;
  /** Answers everything with this HTTP status from now on; as usual with undefined. */
  refuseWith(status: number | undefined): void;
  /** Breaks all connections, forgets all sessions and takes no more. */
  crash(): Promise<void>;
  /** Is there again, at the same address. */
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
    const headers = headersOf(request);
    const session = this.#sessions.get(headers["mcp-session-id"] ?? "");
    if (request.method === "POST") {
      const message = await bodyOf(request);
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
