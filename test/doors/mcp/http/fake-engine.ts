/** An engine that does what the test says, so that the transport alone is looked at. */
import type { RequestOrigin } from "../../../../src/doors/mcp/view-scope.ts";
import {
  type Encoded,
  encodeError,
  encodeNotification,
  encodeRequest,
  encodeResult,
  type MessageSink,
} from "../../../../src/doors/mcp/rpc-messages.ts";
import type { Engine, EngineSession } from "../../../../src/doors/mcp/http/transport.ts";
import type { JsonObject } from "../../../../src/model/json.ts";
import {
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  type RequestId,
  type RpcNotification,
  type RpcRequest,
  type RpcResponse,
  type ToolDefinition,
} from "../../../../src/model/protocol.ts";

interface Held {
  readonly sink: MessageSink;
  readonly end: (answer: Encoded | null) => void;
}

/** `tools/call` by name: `echo` answers, `progress` sends one notification before, `hold` waits for the test. */
export class FakeEngine implements Engine {
  readonly sessions: FakeSession[] = [];
  readonly held = new Map<RequestId, Held>();
  readonly origins: RequestOrigin[] = [];
  readonly tools = new Map<string, ToolDefinition>();
  readonly aborted: RequestId[] = [];
  readonly #listening = new Set<() => void>();

  openSession(origin: RequestOrigin, sink: MessageSink): FakeSession {
    const session = new FakeSession(this, sink);
    this.origins.push(origin);
    this.sessions.push(session);
    return session;
  }

  modern(request: RpcRequest, origin: RequestOrigin, sink: MessageSink, signal: AbortSignal): Promise<Encoded | null> {
    this.origins.push(origin);
    const { id, method } = request;
    if (method === "subscriptions/listen") {
      sink.send(encodeNotification("notifications/subscriptions/acknowledged", {}));
      return new Promise((resolve) => {
        this.#listening.add(() => resolve(encodeResult(id, { ended: true })));
        signal.addEventListener("abort", () => resolve(null));
      });
    }
    if (method === "tools/call" && request.params?.["name"] === "needs-sampling") {
      return Promise.resolve(encodeError(id, { code: MISSING_CAPABILITY, message: "no sampling" }));
    }
    signal.addEventListener("abort", () => {
      this.aborted.push(id);
      this.held.get(id)?.end(null);
    });
    return this.answer(request, sink);
  }

  readonly scopeNames = {
    views: new Set<string>(),
    servers: new Set<string>(),
    tags: new Set<string>(),
    roles: new Set<string>(),
  };

  toolDefinition(_origin: RequestOrigin, name: string): ToolDefinition | undefined {
    return this.tools.get(name);
  }

  close(): void {
    for (const end of this.#listening) end();
    for (const session of this.sessions) session.close();
  }

  answer({ id, method, params }: RpcRequest, sink: MessageSink): Promise<Encoded | null> {
    if (method !== "tools/call") {
      return Promise.resolve(encodeError(id, { code: METHOD_NOT_FOUND, message: `Method not found: ${method}` }));
    }
    switch (params?.["name"]) {
      case "hold":
        return new Promise((resolve) => this.held.set(id, { sink, end: resolve }));
      case "bytes":
        return Promise.resolve([`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`, Buffer.from('{"ü":1}'), "}"]);
      case "progress":
        sink.send(encodeNotification("notifications/progress", { progressToken: id, progress: 1 }));
        return Promise.resolve(encodeResult(id, { done: true }));
      default:
        return Promise.resolve(encodeResult(id, { echo: params?.["arguments"] ?? null }));
    }
  }
}

export class FakeSession implements EngineSession {
  version: string | undefined;
  readonly notified: string[] = [];
  readonly answered: RpcResponse[] = [];
  readonly abandoned: RequestId[] = [];
  closed = false;
  readonly #engine: FakeEngine;
  readonly #sink: MessageSink;
  readonly #running = new Set<RequestId>();

  constructor(engine: FakeEngine, sink: MessageSink) {
    this.#engine = engine;
    this.#sink = sink;
  }

  async request(message: RpcRequest, sink: MessageSink): Promise<Encoded | null> {
    const { id, method, params } = message;
    if (method === "initialize") {
      if (params?.["refuse"] === true) return encodeError(id, { code: -1, message: "no" });
      const version = params?.["protocolVersion"];
      this.version = typeof version === "string" ? version : "2025-11-25";
      return encodeResult(id, { protocolVersion: this.version });
    }
    this.#running.add(id);
    const answer = await this.#engine.answer(message, sink);
    this.#running.delete(id);
    return answer;
  }

  notify({ method }: RpcNotification): void {
    this.notified.push(method);
  }

  answer(message: RpcResponse): void {
    this.answered.push(message);
  }

  abandon(id: RequestId): void {
    this.abandoned.push(id);
    this.#engine.held.get(id)?.end(null);
  }

  close(): void {
    this.closed = true;
    for (const id of this.#running) this.#engine.held.get(id)?.end(null);
  }

  tell(method: string, params?: JsonObject): void {
    this.#sink.send(encodeNotification(method, params));
  }

  ask(id: RequestId, method: string): void {
    this.#sink.send(encodeRequest(id, method, {}));
  }
}
