/** HTTP+SSE of 2024-11-05: one stream for all answers, requests by POST. Some peers have nothing newer. */
import { Agent, type IncomingMessage, request as httpRequest } from "node:http";
import { EventText } from "./answer-text.ts";
import { type Answer, initializeParams, type McpClient, type Params } from "./protocol.ts";

export class HttpSseClient implements McpClient {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #waiting = new Map<number, { resolve(answer: Answer): void; reject(error: Error): void }>();
  readonly #base: string;
  #stream: IncomingMessage | undefined;
  #messages = "";
  #lastId = 0;

  private constructor(base: string) {
    this.#base = base;
  }

  static async open(url: string): Promise<HttpSseClient> {
    const client = new HttpSseClient(url);
    await client.#listen();
    const answer = await client.request("initialize", initializeParams());
    if (answer.error !== undefined) throw new Error(`initialize: ${answer.error.message}`);
    await client.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
    return client;
  }

  request(method: string, params: Params = {}): Promise<Answer> {
    const id = (this.#lastId += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ jsonrpc: "2.0", id, method, params }).catch(reject);
    });
  }

  async close(): Promise<void> {
    this.#stream?.destroy();
    this.#agent.destroy();
  }

  /** Resolves when the server has said where requests go. */
  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      const events = new EventText((data, type) => {
        if (type !== "endpoint") return this.#receive(JSON.parse(data));
        this.#messages = new URL(data, this.#base).href;
        resolve();
      });
      const outgoing = httpRequest(this.#base, { agent: this.#agent, headers: { accept: "text/event-stream" } });
      outgoing.on("error", reject);
      outgoing.on("response", (stream) => {
        this.#stream = stream;
        if (stream.statusCode !== 200) reject(new Error(`HTTP ${stream.statusCode}`));
        stream.setEncoding("utf8").on("data", (text: string) => events.push(text));
        stream.on("error", () => {});
        stream.on("close", () => {
          for (const { reject: fail } of this.#waiting.values()) fail(new Error("The stream ended."));
        });
      });
      outgoing.end();
    });
  }

  #receive(message: Answer): void {
    if (typeof message.id !== "number") return;
    this.#waiting.get(message.id)?.resolve(message);
    this.#waiting.delete(message.id);
  }

  #post(message: object): Promise<void> {
    const body = JSON.stringify(message);
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest(this.#messages, { method: "POST", agent: this.#agent, headers });
      outgoing.on("error", reject);
      outgoing.on("response", (response) => {
        response.resume().on("end", resolve);
        if ((response.statusCode ?? 0) >= 300) reject(new Error(`HTTP ${response.statusCode}`));
      });
      outgoing.end(body);
    });
  }
}
