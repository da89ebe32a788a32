/** A wire with the server's end in the test: what is sent goes to a script, which answers through the same object. */
import { Emitter, type Listeners } from "../../src/base/emitter.ts";
import { ToolcribError } from "../../src/model/errors.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { TransportKind } from "../../src/model/server-state.ts";
import type { AgreedProtocol, SendOptions, Wire, WireEvents } from "../../src/upstream/wire.ts";
import type { RequestId, RpcError, RpcMessage } from "../../src/model/protocol.ts";

export interface Sent {
  readonly message: RpcMessage;
  readonly options: SendOptions | undefined;
}

/** Answers one method: a result, an RpcFailure to throw, or `undefined` for no answer. */
export type Handler = (params: JsonObject, call: { id: RequestId; wire: FakeWire }) => unknown;
export type Handlers = Readonly<Record<string, Handler>>;

/** Thrown by a handler, it becomes the error answer. */
export class RpcFailure extends Error {
  readonly rpc: RpcError;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.rpc = { code, message, data };
  }
}

export class FakeWire implements Wire {
  readonly transport: TransportKind;
  readonly sent: Sent[] = [];
  readonly agreements: AgreedProtocol[] = [];
  readonly #events = new Emitter<WireEvents>();
  readonly #handlers: Handlers;
  closed = false;
  openError: ToolcribError | undefined;
  /** While set, nothing can be sent. */
  sendError: ToolcribError | undefined;

  constructor(transport: TransportKind, handlers: Handlers = {}) {
    this.transport = transport;
    this.#handlers = handlers;
  }

  listen(listeners: Listeners<WireEvents>): () => void {
    return this.#events.listen(listeners);
  }

  open(): Promise<void> {
    return this.openError === undefined ? Promise.resolve() : Promise.reject(this.openError);
  }

  agreed(protocol: AgreedProtocol): void {
    this.agreements.push(protocol);
  }

  async send(message: RpcMessage, options?: SendOptions): Promise<void> {
    if (this.sendError !== undefined) throw this.sendError;
    if (this.closed) throw new ToolcribError("server_unavailable", "closed", { details: { sent: false } });
    this.sent.push({ message: structuredClone(message), options });
    if (!("method" in message)) return;
    const handler = this.#handlers[message.method];
    if (!("id" in message)) return void handler?.(message.params ?? {}, { id: -1, wire: this });
    await Promise.resolve();
    await this.#serve(message.id, message.method, handler, message.params ?? {});
  }

  async #serve(id: RequestId, method: string, handler: Handler | undefined, params: JsonObject): Promise<void> {
    if (handler === undefined) return this.answerError(id, { code: -32601, message: `no ${method}` });
    try {
      const result = await handler(params, { id, wire: this });
      // A handler's result is an object by its contract.
      if (result !== undefined) this.answer(id, result as JsonObject);
    } catch (error) {
      // As an HTTP wire does with an error answer: the sending itself fails.
      if (error instanceof ToolcribError) throw error;
      if (error instanceof RpcFailure) return this.answerError(id, error.rpc);
      throw error;
    }
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }

  // The server's end.

  answer(id: RequestId, result: JsonObject): void {
    this.receive({ jsonrpc: "2.0", id, result });
  }

  answerError(id: RequestId | null, error: RpcError): void {
    this.receive({ jsonrpc: "2.0", id, error });
  }

  notify(method: string, params: JsonObject = {}, related?: RequestId): void {
    this.receive({ jsonrpc: "2.0", method, params }, related);
  }

  ask(id: RequestId, method: string, params: JsonObject = {}, related?: RequestId): void {
    this.receive({ jsonrpc: "2.0", id, method, params }, related);
  }

  receive(message: RpcMessage, related?: RequestId): void {
    if (!this.closed) this.#events.emit("message", { message, related });
  }

  fail(id: RequestId, error: ToolcribError): void {
    this.#events.emit("failed", { id, error });
  }

  lose(reason = "exited with code 1", details: JsonObject = {}): void {
    this.#events.emit("lost", new ToolcribError("server_unavailable", reason, { details }));
  }

  // What the test looks at.

  methods(): string[] {
    return this.sent.flatMap(({ message }) => ("method" in message ? [message.method] : []));
  }

  /** The params of the n-th message with this method, counted from the end if negative. */
  params(method: string, index = -1): JsonObject {
    const found = this.sent
      .map(({ message }) => message)
      .filter((message) => "method" in message && message.method === method);
    const message = found.at(index);
    return message !== undefined && "method" in message ? (message.params ?? {}) : {};
  }

  /** Our answers to the server's own requests. */
  answers(): RpcMessage[] {
    return this.sent.map(({ message }) => message).filter((message) => !("method" in message));
  }
}

export interface LegacyServer {
  readonly capabilities?: JsonObject;
  readonly tools?: readonly JsonObject[];
  readonly handlers?: Handlers;
}

/** Handlers of a well-behaved server of the old era. */
export function legacyHandlers({ capabilities, tools = [], handlers = {} }: LegacyServer = {}): Handlers {
  return {
    initialize: () => ({
      protocolVersion: "2025-11-25",
      capabilities: capabilities ?? { tools: { listChanged: true } },
      serverInfo: { name: "fake", version: "1.2.3" },
      instructions: "Be kind.",
    }),
    ping: () => ({}),
    "tools/list": () => ({ tools }),
    ...handlers,
  };
}

/** Handlers of a well-behaved server of the new era. */
export function modernHandlers({ capabilities, tools = [], handlers = {} }: LegacyServer = {}): Handlers {
  return {
    "server/discover": () => ({
      resultType: "complete",
      supportedVersions: ["2026-07-28"],
      capabilities: capabilities ?? { tools: {} },
      _meta: { "io.modelcontextprotocol/serverInfo": { name: "fake", version: "4.5.6" } },
    }),
    "tools/list": () => ({ resultType: "complete", tools }),
    "subscriptions/listen": ({ notifications }, { id, wire }) => {
      const _meta = { "io.modelcontextprotocol/subscriptionId": id };
      wire.notify("notifications/subscriptions/acknowledged", { _meta, notifications });
    },
    ...handlers,
  };
}
