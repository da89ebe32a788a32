/** Streamable HTTP by hand on node:http with kept connections, in both eras. */
import { Agent, request as httpRequest } from "node:http";
import { readAnswer } from "./answer-text.ts";
import {
  type Answer,
  CLIENT_INFO,
  type Era,
  initializeParams,
  LEGACY_VERSION,
  type McpClient,
  MODERN_VERSION,
  type Params,
} from "./protocol.ts";

export interface StreamableOptions {
  readonly url: string;
  readonly era?: Era;
  readonly token?: string;
  /** To share connections between many clients. */
  readonly agent?: Agent;
  /** Gets answers that nobody waits for. */
  readonly onStray?: (answer: Answer) => void;
}

const MODERN_META = {
  "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
  "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
  "io.modelcontextprotocol/clientCapabilities": {},
};

export class StreamableClient implements McpClient {
  readonly #era: Era;
  readonly #address: { readonly host: string; readonly port: string; readonly path: string };
  readonly #agent: Agent;
  readonly #ownsAgent: boolean;
  readonly #headers: Record<string, string>;
  readonly #onStray: StreamableOptions["onStray"];
  #lastId = 0;

  private constructor({ url, era = "legacy", token, agent, onStray }: StreamableOptions) {
    this.#onStray = onStray;
    const { hostname, port, pathname, search } = new URL(url);
    this.#era = era;
    this.#address = { host: hostname, port, path: pathname + search };
    this.#ownsAgent = agent === undefined;
    this.#agent = agent ?? new Agent({ keepAlive: true });
    this.#headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(era === "modern" ? { "mcp-protocol-version": MODERN_VERSION } : {}),
    };
  }

  static async open(options: StreamableOptions): Promise<StreamableClient> {
    const client = new StreamableClient(options);
    if (client.#era === "legacy") await client.#initialize();
    return client;
  }

  request(method: string, params: Params = {}, signal?: AbortSignal): Promise<Answer> {
    const id = (this.#lastId += 1);
    const isModern = this.#era === "modern";
    const sent = isModern ? { ...params, _meta: MODERN_META } : params;
    const headers = isModern ? { ...this.#headers, ...mirrored(method, params) } : this.#headers;
    return this.#post({ jsonrpc: "2.0", id, method, params: sent }, headers, signal).then(({ answer }) => {
      if (answer === undefined) throw new Error(`${method}: there was no answer`);
      if (answer.id !== id) throw new Error(`${method}: an answer for ${String(answer.id)} came for ${id}`);
      return answer;
    });
  }

  async notify(method: string, params: Params = {}): Promise<void> {
    await this.#post({ jsonrpc: "2.0", method, params }, this.#headers);
  }

  /** The id that the next request will have, for a cancellation that names it. */
  get nextId(): number {
    return this.#lastId + 1;
  }

  async close(): Promise<void> {
    if (this.#headers["mcp-session-id"] !== undefined) {
      await new Promise<void>((resolve) => {
        const outgoing = httpRequest({
          ...this.#address,
          method: "DELETE",
          agent: this.#agent,
          headers: this.#headers,
        });
        outgoing.on("response", (response) => response.resume().on("close", resolve));
        outgoing.on("error", () => resolve());
        outgoing.end();
      });
    }
    if (this.#ownsAgent) this.#agent.destroy();
  }

  async #initialize(): Promise<void> {
    const first = { jsonrpc: "2.0", id: (this.#lastId += 1), method: "initialize", params: initializeParams() };
    const { answer, session } = await this.#post(first, this.#headers);
    if (answer?.result === undefined) throw new Error(`initialize: ${answer?.error?.message ?? "no answer"}`);
    this.#headers["mcp-protocol-version"] = versionOf(answer.result);
    if (session !== undefined) this.#headers["mcp-session-id"] = session;
    await this.notify("notifications/initialized");
  }

  #post(
    message: object,
    headers: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<{ answer: Answer | undefined; session: string | undefined }> {
    const body = JSON.stringify(message);
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest({
        ...this.#address,
        method: "POST",
        agent: this.#agent,
        headers: { ...headers, "content-length": Buffer.byteLength(body) },
        ...(signal === undefined ? {} : { signal }),
      });
      outgoing.on("response", (response) => {
        const session = response.headers["mcp-session-id"];
        readAnswer(response, this.#onStray).then(
          (answer) => resolve({ answer, session: typeof session === "string" ? session : undefined }),
          reject,
        );
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }
}

/** The headers that the modern era wants beside the body. */
function mirrored(method: string, params: Params): Record<string, string> {
  const name = params["name"] ?? params["uri"];
  return { "mcp-method": method, ...(typeof name === "string" ? { "mcp-name": name } : {}) };
}

function versionOf({ protocolVersion }: NonNullable<Answer["result"]>): string {
  return typeof protocolVersion === "string" ? protocolVersion : LEGACY_VERSION;
}
