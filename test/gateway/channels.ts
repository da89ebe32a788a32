/** Carries JSON-RPC messages to a server and back, without looking at them more than the transport needs. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";

type Receive = (message: JsonObject) => void;
type Headers = Readonly<Record<string, string>>;

export interface Channel {
  receive: Receive;
  /** Rejects if the transport refused it without an answer to it. */
  post(message: JsonObject): Promise<void>;
  /** Hangs up on a request of the modern era; false where that is no way to cancel. */
  hangUp(id: unknown): boolean;
  close(): Promise<void>;
}

const nobody: Receive = () => {};
const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";

/** The transport's own refusal. */
export class Refused extends Error {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];

  constructor(incoming: IncomingMessage, body: string) {
    super(`${incoming.statusCode}: ${body}`);
    this.status = incoming.statusCode ?? 0;
    this.headers = incoming.headers;
  }
}

export class LineChannel implements Channel {
  receive: Receive = nobody;
  readonly #output: Writable;
  readonly #child: ChildProcess | undefined;

  constructor({ input, output }: { input: Readable; output: Writable }, child?: ChildProcess) {
    this.#output = output;
    this.#child = child;
    let rest = "";
    input.setEncoding("utf8");
    input.on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.receive(JSON.parse(line) as JsonObject);
    });
  }

  static spawn(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): LineChannel {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"], env });
    return new LineChannel({ input: child.stdout, output: child.stdin }, child);
  }

  async post(message: JsonObject): Promise<void> {
    this.#output.write(`${JSON.stringify(message)}\n`);
  }

  hangUp(): boolean {
    return false;
  }

  async close(): Promise<void> {
    const child = this.#child;
    const gone = child === undefined || child.exitCode !== null ? undefined : once(child, "exit");
    this.#output.end();
    await gone;
  }
}

export class HttpChannel implements Channel {
  receive: Receive = nobody;
  readonly #url: string;
  readonly #headers: Headers;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #open = new Map<unknown, ClientRequest>();
  #session: Record<string, string> = {};
  #stream: ClientRequest | undefined;

  constructor(url: string, headers: Headers = {}) {
    this.#url = url;
    this.#headers = headers;
  }

  async post(message: JsonObject): Promise<void> {
    const incoming = await this.#send("POST", modernHeaders(message), message);
    const session = incoming.headers["mcp-session-id"];
    if (typeof session === "string") this.#session = { "mcp-session-id": session };
    if (message["method"] === "notifications/initialized") await this.#listen();
    if (String(incoming.headers["content-type"]).startsWith("text/event-stream"))
      return readEvents(incoming, this.receive);
    const body = await text(incoming);
    const answer: unknown = body.startsWith("{") ? JSON.parse(body) : undefined;
    if (isJsonObject(answer) && answer["id"] === message["id"]) return this.receive(answer);
    if ((incoming.statusCode ?? 0) >= 300) throw new Refused(incoming, body);
  }

  hangUp(id: unknown): boolean {
    this.#open.get(id)?.destroy();
    return this.#open.delete(id);
  }

  /** Goes away without a word. */
  vanish(): void {
    for (const open of [...this.#open.values(), this.#stream]) open?.destroy();
  }

  async close(): Promise<void> {
    if (this.#session["mcp-session-id"] !== undefined)
      await this.#send("DELETE", {}).then((answer) => answer.resume(), nobody);
    this.vanish();
    this.#agent.destroy();
  }

  async #listen(): Promise<void> {
    const headers = { ...this.#headers, ...this.#session, accept: "text/event-stream" };
    await new Promise<void>((resolve, reject) => {
      const sent = (this.#stream = request(this.#url, { method: "GET", headers, agent: false }, (incoming) => {
        void readEvents(incoming, (message) => this.receive(message));
        resolve();
      }));
      sent.on("error", reject);
      sent.end();
    });
  }

  #send(method: string, more: Headers, message?: JsonObject): Promise<IncomingMessage> {
    const headers = {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...this.#headers,
      ...this.#session,
      ...more,
    };
    return new Promise((resolve, reject) => {
      const sent = request(this.#url, { method, headers, agent: this.#agent }, resolve);
      this.#open.set(message?.["id"], sent);
      sent.on("close", () => this.#open.delete(message?.["id"]));
      sent.on("error", reject);
      sent.end(message === undefined ? undefined : JSON.stringify(message));
    });
  }
}

/** The transport before Streamable HTTP: answers come on one stream, messages are posted elsewhere. */
export class SseChannel implements Channel {
  receive: Receive = nobody;
  readonly #headers: Headers;
  readonly #endpoint: Promise<string>;
  #stream: ClientRequest | undefined;

  constructor(url: string, headers: Headers = {}) {
    this.#headers = headers;
    this.#endpoint = new Promise((resolve, reject) => {
      const sent = (this.#stream = request(
        url,
        { headers: { ...headers, accept: "text/event-stream" }, agent: false },
        (incoming) => {
          void readEvents(
            incoming,
            (message) => this.receive(message),
            (path) => resolve(new URL(path, url).href),
          );
        },
      ));
      sent.on("error", reject);
      sent.end();
    });
  }

  async post(message: JsonObject): Promise<void> {
    const url = await this.#endpoint;
    const headers = { ...this.#headers, "content-type": "application/json" };
    const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
      request(url, { method: "POST", headers, agent: false }, resolve).on("error", reject).end(JSON.stringify(message));
    });
    const body = await text(incoming);
    if ((incoming.statusCode ?? 0) >= 300) throw new Refused(incoming, body);
  }

  hangUp(): boolean {
    return false;
  }

  async close(): Promise<void> {
    this.#stream?.destroy();
  }
}

async function readEvents(
  incoming: IncomingMessage,
  receive: Receive,
  onEndpoint: (path: string) => void = () => {},
): Promise<void> {
  let rest = "";
  incoming.setEncoding("utf8");
  try {
    for await (const chunk of incoming) {
      const events = `${rest}${String(chunk)}`.split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) {
        const lines = event.split("\n");
        const data = lines.flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trimStart()] : [])).join("\n");
        if (lines.includes("event: endpoint")) onEndpoint(data);
        else if (data !== "") receive(JSON.parse(data) as JsonObject);
      }
    }
  } catch {
    // Cut streams end the test's wait elsewhere.
  }
}

function modernHeaders({ method, params }: JsonObject): Headers {
  const meta = isJsonObject(params) && isJsonObject(params["_meta"]) ? params["_meta"] : {};
  const version = meta[VERSION_KEY];
  if (typeof version !== "string" || typeof method !== "string" || !isJsonObject(params)) return {};
  const name = params["name"] ?? params["uri"];
  return {
    "mcp-protocol-version": version,
    "mcp-method": method,
    ...(typeof name === "string" && /^(tools|prompts|resources)\/(call|get|read)$/.test(method)
      ? { "mcp-name": headerText(name) }
      : {}),
  };
}

/** As the spec wants text that is no plain header value. */
function headerText(value: string): string {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.startsWith("=?base64?")
    ? value
    : `=?base64?${Buffer.from(value).toString("base64")}?=`;
}
