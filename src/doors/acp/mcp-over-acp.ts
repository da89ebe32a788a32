/** MCP servers that live in the client and are reached through the ACP connection. */
import {
  type AgentContext,
  isMcpServerAcp,
  type McpOutcome,
  McpOverAcpCaller,
} from "@agentclientprotocol/sdk/unstable";
import type { CancelSignal } from "../../base/async.ts";
import { Emitter } from "../../base/emitter.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { METHOD_NOT_FOUND, type RequestId, type RpcMessage, type RpcRequest } from "../../model/protocol.ts";
import { VERSION } from "../../model/version.ts";
import { WireEntry } from "../../sessions/read-session-servers.ts";
import { notSent, type SendOptions, type Wire, type WireEvents } from "../../upstream/wire.ts";

export class McpOverAcp {
  /** Receives the notifications of running requests. */
  readonly caller = new McpOverAcpCaller({ clientInfo: { name: "toolcrib", version: VERSION } });
  readonly #entries = new Map<string, WireEntry>();

  /** The list with a wire for entries of `type: "acp"`: the same one each time, so that mounting again changes nothing. */
  reachable(client: AgentContext, servers: readonly unknown[]): readonly unknown[] {
    return servers.map((server) => {
      if (!isMcpServerAcp(server)) return server;
      const { name, serverId } = server;
      const key = JSON.stringify([name, serverId]);
      let entry = this.#entries.get(key);
      if (entry === undefined) {
        entry = new WireEntry(name, () => new AcpWire({ client, caller: this.caller, serverId }));
        this.#entries.set(key, entry);
      }
      return entry;
    });
  }
}

/** Whether an entry is worth saving: a server in the client ends with the connection. */
export function outlivesConnection(server: unknown): boolean {
  return !isMcpServerAcp(server);
}

interface AcpWireOptions {
  readonly client: AgentContext;
  readonly caller: McpOverAcpCaller;
  readonly serverId: string;
}

/** A wire through the client's connection: each MCP request is an ACP request. Modern era only. */
class AcpWire implements Wire {
  /** The closest one: requests are independent, each with a stream of its own. */
  readonly transport = "http";
  readonly #options: AcpWireOptions;
  readonly #events = new Emitter<WireEvents>();
  readonly #running = new Set<AbortController>();
  #closed = false;

  constructor(options: AcpWireOptions) {
    this.#options = options;
  }

  on<Name extends keyof WireEvents>(name: Name, listener: (event: WireEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  async open(): Promise<void> {}

  agreed(): void {}

  async send(message: RpcMessage, { signal }: SendOptions = {}): Promise<void> {
    if (this.#closed) throw notSent("server_unavailable", "The connection is closed.");
    // It has no client notifications; a cancelled request ends by its signal.
    if (!("method" in message) || !("id" in message)) return;
    const { id } = message;
    const error = { code: METHOD_NOT_FOUND, message: "MCP over ACP has no initialize." };
    if (message.method === "initialize") this.#respond(id, { jsonrpc: "2.0", id, error });
    else void this.#request(message, signal);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const request of this.#running) request.abort();
  }

  async #request({ id, method, params }: RpcRequest, signal: CancelSignal | undefined): Promise<void> {
    const { client, caller, serverId } = this.#options;
    const controller = new AbortController();
    const cancel = (): void => controller.abort();
    signal?.addEventListener("abort", cancel);
    this.#running.add(controller);
    try {
      const outcome = await caller.request(client, serverId, method, params, {
        signal: controller.signal,
        onNotification: (notice) => {
          this.#respond(id, { jsonrpc: "2.0", method: notice.method, params: notice.params ?? {} });
        },
      });
      if (!controller.signal.aborted) this.#respond(id, toRpcResponse(id, outcome));
    } catch (error) {
      if (!controller.signal.aborted) this.#events.emit("failed", { id, error: forwardFailed(error) });
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#running.delete(controller);
    }
  }

  #respond(id: RequestId, message: RpcMessage): void {
    this.#events.emit("message", { message, related: id });
  }
}

function toRpcResponse(id: RequestId, outcome: McpOutcome): RpcMessage {
  if ("error" in outcome) return { jsonrpc: "2.0", id, error: outcome.error };
  return { jsonrpc: "2.0", id, result: isJsonObject(outcome.result) ? outcome.result : {} };
}

function forwardFailed(error: unknown): ToolcribError {
  const why = error instanceof Error ? error.message : String(error);
  return new ToolcribError("server_unavailable", `The client did not forward the request: ${why}`, { cause: error });
}
