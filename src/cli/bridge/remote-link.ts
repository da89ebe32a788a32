/** `toolcrib mcp --hub`: the lines of a stdio client as messages to the MCP endpoint of a hub on another machine. */
import { Duplex } from "node:stream";
import { asToolcribError, ERROR_TABLE, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { RpcMessage, ToolDefinition } from "../../model/protocol.ts";
import { claimedVersion, paramHeaders } from "../../upstream/http/mcp-headers.ts";
import { StreamableWire } from "../../upstream/http/streamable-wire.ts";
import { LineSplitter } from "../../upstream/stdio/line-framing.ts";
import { decodeMessages, isRequest, isResponse } from "../../upstream/wire.ts";
import { checkedUrl, RemoteHub } from "../remote-hub.ts";
import { lostError } from "./bridge.ts";

// The bridge loads what speaks HTTP from here, when it needs it.
export { namedEditorSession } from "../remote-hub.ts";

export interface RemotePlace {
  readonly url: string;
  readonly token: string | undefined;
  readonly role?: string | undefined;
  readonly view?: string | undefined;
  /** Only this server. */
  readonly server?: string | undefined;
  readonly client?: string | undefined;
  /** Of an editor. */
  readonly session?: string | undefined;
}

export interface RemoteConnection {
  readonly link: Duplex;
  /** Of the hub. */
  readonly version: string | undefined;
}

/** Rejects with the hub's own error, or with `server_unavailable` if there is no hub. */
export async function openRemoteLink({
  url,
  token,
  role,
  view,
  server,
  client,
  session,
}: RemotePlace): Promise<RemoteConnection> {
  const base = checkedUrl(url, token !== undefined);
  const { version } = await new RemoteHub(base, token).request("GET", "/api/v1/me");
  if (role !== undefined && view !== undefined) {
    throw new ToolcribError("invalid_arguments", "With --hub, --role and --view cannot be used together.", {
      hint: "Use a token that is bound to the role.",
    });
  }
  const name = role ?? view;
  const address = new URL(`${base}/mcp${name === undefined ? "" : `/${encodeURIComponent(name)}`}`);
  if (server !== undefined) address.searchParams.set("servers", server);
  if (client !== undefined) address.searchParams.set("client", client);
  if (session !== undefined) address.searchParams.set("session", session);
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const wire = new StreamableWire({ url: address.href, headers });
  await wire.open(AbortSignal.timeout(0));
  return { link: new RemoteLink(wire), version: typeof version === "string" ? version : undefined };
}

const MAX_LINE_BYTES = 64 * 1024 * 1024;

interface Running {
  readonly method: string;
  readonly isModern: boolean;
  readonly controller: AbortController;
}

class RemoteLink extends Duplex {
  readonly #wire: StreamableWire;
  readonly #running = new Map<string, Running>();
  /** Tools that want arguments repeated in headers are known from the lists that pass. */
  readonly #tools = new Map<string, ToolDefinition>();
  readonly #lines = new LineSplitter({
    maxBytes: MAX_LINE_BYTES,
    onLine: (line) => {
      for (const message of decodeMessages(line) ?? []) void this.#send(message);
    },
    onOversize: () => {},
  });
  /** The handshake of a legacy client: what follows needs the session that it opens. */
  #opened: Promise<void> | undefined;
  #onOpened: () => void = () => {};
  #isEnding = false;

  constructor(wire: StreamableWire) {
    super();
    this.#wire = wire;
    wire.listen({
      message: ({ message }) => this.#receive(message),
      failed: ({ id }) => {
        const key = JSON.stringify(id);
        const running = this.#running.get(key);
        if (running !== undefined) this.#answer(key, lostError(key, running.method));
      },
      lost: () => this.destroy(),
    });
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#lines.push(chunk);
    done();
  }

  /** Answers to what is in progress are still for the client. */
  override _final(done: () => void): void {
    this.#isEnding = true;
    done();
    this.#endWhenIdle();
  }

  override _destroy(_error: Error | null, done: (error: Error | null) => void): void {
    const closed = (): void => done(null);
    this.#wire.close().then(closed, closed);
  }

  async #send(message: RpcMessage): Promise<void> {
    const isModern = claimedVersion(message) !== undefined;
    const method = "method" in message ? message.method : undefined;
    if (method === "initialize") {
      this.#opened = new Promise((resolve) => (this.#onOpened = resolve));
    } else if (!isModern) await this.#opened;
    if (method === "notifications/cancelled" && this.#cancel(message)) return;
    const controller = new AbortController();
    const key = isRequest(message) ? JSON.stringify(message.id) : undefined;
    if (key !== undefined) this.#running.set(key, { method: method ?? "", isModern, controller });
    try {
      await this.#wire.send(message, { signal: controller.signal, headers: this.#paramHeaders(message) });
    } catch (thrown) {
      this.#failed(key, method ?? "", asToolcribError(thrown));
    }
  }

  /** The modern era cancels a request by closing its connection. */
  #cancel(message: RpcMessage): boolean {
    const params = "params" in message ? message.params : undefined;
    const key = JSON.stringify(params?.["requestId"]);
    const running = this.#running.get(key);
    if (running?.isModern !== true) return false;
    running.controller.abort();
    this.#running.delete(key);
    this.#endWhenIdle();
    return true;
  }

  #receive(message: RpcMessage): void {
    const line = Buffer.from(JSON.stringify(message));
    if (!isResponse(message)) {
      this.push(`${line.toString()}\n`);
      return;
    }
    const key = JSON.stringify(message.id);
    const result = "result" in message && isJsonObject(message.result) ? message.result : undefined;
    const method = this.#running.get(key)?.method;
    if (method === "tools/list") this.#remember(result?.["tools"]);
    if (method === "initialize") {
      const version = result?.["protocolVersion"];
      if (typeof version === "string") this.#wire.agreed({ era: "legacy", version });
      this.#onOpened();
    }
    this.#answer(key, line);
  }

  #failed(key: string | undefined, method: string, error: ToolcribError): void {
    const { sessionLost, status, rpc, sent } = error.details ?? {};
    const isGone = sessionLost === true || (status === undefined && rpc === undefined);
    if (method === "initialize") this.#onOpened();
    if (key !== undefined && this.#running.has(key)) {
      // What the hub has got is answered when the link is lost, as for any hub.
      if (!isGone) this.#answer(key, refusal(key, error, rpc));
      else if (sent === false && method === "tools/call") this.#answer(key, lostError(key, method, false));
    }
    if (isGone) this.destroy();
  }

  #answer(key: string, line: Buffer): void {
    this.#running.delete(key);
    this.push(`${line.toString()}\n`);
    this.#endWhenIdle();
  }

  #endWhenIdle(): void {
    if (!this.#isEnding || this.#running.size > 0 || this.destroyed) return;
    this.push(null);
    // Once the reader has got all of it.
    if (this.readableLength === 0) this.destroy();
    else this.once("end", () => this.destroy());
  }

  #remember(tools: unknown): void {
    for (const tool of Array.isArray(tools) ? tools : []) {
      // Only its schema is looked at, which is checked there.
      if (isJsonObject(tool) && typeof tool["name"] === "string") this.#tools.set(tool["name"], tool as ToolDefinition);
    }
  }

  #paramHeaders(message: RpcMessage): Record<string, string> | undefined {
    if (!("method" in message) || message.method !== "tools/call") return undefined;
    const tool = this.#tools.get(String(message.params?.["name"]));
    const args = message.params?.["arguments"];
    return tool === undefined ? undefined : paramHeaders(tool, isJsonObject(args) ? args : {});
  }
}

function refusal(key: string, { code, message, hint }: ToolcribError, rpc: unknown): Buffer {
  const own: JsonObject = { code: ERROR_TABLE[code].rpc, message, data: { code, message, ...(hint && { hint }) } };
  return Buffer.from(`{"jsonrpc":"2.0","id":${key},"error":${JSON.stringify(isJsonObject(rpc) ? rpc : own)}}`);
}
