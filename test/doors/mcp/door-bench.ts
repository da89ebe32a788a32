/** The MCP door without a transport: clients that speak to the engine directly, and a hub behind it. */
import { onTestFinished } from "vitest";
import { McpDoor, type McpDoorOptions } from "../../../src/doors/mcp/mcp-door.ts";
import type { RequestOrigin, ViewScope } from "../../../src/doors/mcp/view-scope.ts";
import type { Encoded, MessageSink } from "../../../src/doors/mcp/rpc-messages.ts";
import type { LegacySession } from "../../../src/doors/mcp/legacy-session.ts";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { Caller } from "../../../src/model/caller.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import { isJsonObject, type JsonObject } from "../../../src/model/json.ts";
import type { RequestId, RpcError } from "../../../src/model/protocol.ts";

export const OWNER: Caller = { key: "owner", owner: true, scopes: new Set(["read", "call", "approve", "admin"]) };
export const guest = (user: string, role?: string): Caller => ({
  key: `token:${user}`,
  user,
  owner: false,
  scopes: new Set(["read", "call"]),
  role,
});

export interface Answer {
  readonly id: RequestId;
  readonly result?: JsonObject;
  readonly error?: RpcError;
}

export async function doorOn(
  config: ConfigInput,
  hubOptions: HubOptions = {},
  doorOptions: Partial<McpDoorOptions> = {},
): Promise<{ hub: Hub; door: McpDoor }> {
  const hub = await createHub(config, hubOptions);
  const door = new McpDoor({ hub, ...doorOptions });
  onTestFinished(async () => {
    door.close();
    await hub.close();
  });
  return { hub, door };
}

export function decode(encoded: Encoded): JsonObject {
  const text = encoded.map(String).join("");
  if (text.includes("\n")) throw new Error("a message must be one line");
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value)) throw new Error("a message must be an object");
  return value;
}

type Serve = (method: string, params: JsonObject) => JsonObject | Promise<JsonObject>;

export class LegacyClient {
  readonly session: LegacySession;
  /** Notifications, those of requests and those of the session. */
  readonly notices: { method: string; params: JsonObject }[] = [];
  readonly #serve: Serve;
  #nextId = 1;

  constructor(door: McpDoor, options: { origin?: Partial<RequestOrigin>; serve?: Serve } = {}) {
    this.#serve = options.serve ?? (() => Promise.reject(new Error("nobody serves")));
    const scope: ViewScope = {};
    this.session = door.openSession({ caller: OWNER, scope, ...options.origin }, this.#sink);
  }

  readonly #sink: MessageSink = { send: (message) => this.#receive(decode(message)) };

  async initialize(capabilities: JsonObject = {}, protocolVersion = "2025-11-25", name = "test"): Promise<JsonObject> {
    const clientInfo = { name, version: "1" };
    const { result } = await this.request("initialize", { protocolVersion, capabilities, clientInfo });
    this.session.notify({ jsonrpc: "2.0", method: "notifications/initialized" });
    return result ?? {};
  }

  /** Starts a request and gives its id, for cancelling it. */
  start(method: string, params: JsonObject = {}): { id: RequestId; answer: Promise<Answer | null> } {
    const id = this.#nextId++;
    const answer = this.session
      .request({ jsonrpc: "2.0", id, method, params }, this.#sink)
      .then((encoded) => (encoded === null ? null : (decode(encoded) as unknown as Answer)));
    return { id, answer };
  }

  async request(method: string, params: JsonObject = {}): Promise<Answer> {
    const answer = await this.start(method, params).answer;
    if (answer === null) throw new Error(`${method} was cancelled`);
    return answer;
  }

  call(name: string, args: JsonObject = {}, meta?: JsonObject): Promise<Answer> {
    return this.request("tools/call", { name, arguments: args, _meta: meta });
  }

  noticed(method: string): JsonObject[] {
    return this.notices.filter((notice) => notice.method === method).map(({ params }) => params);
  }

  #receive(message: JsonObject): void {
    const { id, method } = message;
    const params = isJsonObject(message["params"]) ? message["params"] : {};
    if (typeof method !== "string") throw new Error("answers do not come through an sink");
    if (typeof id !== "number" && typeof id !== "string") {
      this.notices.push({ method, params });
      return;
    }
    Promise.resolve()
      .then(() => this.#serve(method, params))
      .then(
        (result) => this.session.answer({ jsonrpc: "2.0", id, result }),
        (error: unknown) =>
          this.session.answer({ jsonrpc: "2.0", id, error: { code: -32000, message: String(error) } }),
      );
  }
}

export class ModernClient {
  readonly #door: McpDoor;
  readonly #origin: RequestOrigin;
  readonly notices: { method: string; params: JsonObject }[] = [];
  #nextId = 1;

  constructor(door: McpDoor, origin: Partial<RequestOrigin> = {}) {
    this.#door = door;
    this.#origin = { caller: OWNER, scope: {}, ...origin };
  }

  async request(
    method: string,
    params: JsonObject = {},
    options: { capabilities?: JsonObject; meta?: JsonObject; signal?: AbortSignal } = {},
  ): Promise<Answer | null> {
    const id = this.#nextId++;
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": options.capabilities ?? {},
      ...options.meta,
    };
    const sink: MessageSink = {
      send: (message) => {
        const { method: name, params: told } = decode(message);
        this.notices.push({ method: String(name), params: isJsonObject(told) ? told : {} });
      },
    };
    const request = { jsonrpc: "2.0", id, method, params: { ...params, _meta } } as const;
    const signal = options.signal ?? new AbortController().signal;
    const encoded = await this.#door.modern(request, this.#origin, sink, signal);
    return encoded === null ? null : (decode(encoded) as unknown as Answer);
  }

  noticed(method: string): JsonObject[] {
    return this.notices.filter((notice) => notice.method === method).map(({ params }) => params);
  }
}
