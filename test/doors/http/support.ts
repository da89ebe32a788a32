/** A listener for one test, and ways to speak to it that no well-behaved client has. */
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { HttpExchange, HttpRoute } from "../../../src/doors/http/http-exchange.ts";
import { type HttpListener, type ListenerOptions, openListener } from "../../../src/doors/http/listener.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import { type HttpConfig, HttpSchema } from "../../../src/model/config.ts";
import { Redactor } from "../../../src/secrets/redactor.ts";

export function config(http: Record<string, unknown> = {}): HttpConfig {
  return HttpSchema.parse({ port: 0, ...http });
}

/** Says who came and what they sent. */
export const echo: HttpRoute = {
  path: "/mcp",
  access: "read",
  isFrequent: true,
  handle: async (exchange: HttpExchange) => {
    const { request, response, path, query, caller } = exchange;
    const body = await exchange.readBody();
    if (query.get("needs") === "call" && !caller.scopes.has("call")) {
      exchange.refuseScope("call");
      return;
    }
    const seen = {
      method: request.method,
      path,
      query: [...query],
      body: body.length > 1000 ? body.length : body.toString("utf8"),
      caller: { ...caller, scopes: [...caller.scopes] },
    };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(seen));
  },
};

export const admin: HttpRoute = {
  path: "/admin",
  access: "admin",
  handle: ({ response }) => void response.end("in"),
};

export interface Place {
  readonly listener: HttpListener;
  readonly url: string;
  readonly home: string;
  readonly warnings: string[];
  readonly redactor: Redactor;
  ask(path: string, options?: AskOptions): Promise<Answer>;
  open(): Promise<Raw>;
}

export async function place(
  http: Record<string, unknown> = {},
  options: Partial<ListenerOptions> & { readonly secrets?: Readonly<Record<string, string>> } = {},
): Promise<Place> {
  const home = temporaryHome();
  const warnings: string[] = [];
  const redactor = new Redactor();
  const { secrets = {}, ...rest } = options;
  const listener = await openListener({
    http: config(http),
    callsPerMinute: 100,
    routes: [echo, admin],
    resolve: resolver(secrets),
    redactor,
    warn: (message) => warnings.push(message),
    home,
    ...rest,
  });
  onTestFinished(() => listener.close());
  const { url, port } = listener;
  return {
    listener,
    url,
    home,
    warnings,
    redactor,
    ask: (path, askOptions) => ask(url + path, askOptions),
    open: () => Raw.open(port),
  };
}

export function temporaryHome(): string {
  const home = mkdtempSync(join(tmpdir(), "toolcrib-http-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

/** `secret://env/X` alone, and plain text. */
export function resolver(secrets: Readonly<Record<string, string>>): (text: string) => Promise<string> {
  return (text) => {
    const name = /^secret:\/\/env\/(\w+)$/.exec(text)?.[1];
    const value = name === undefined ? text : secrets[name];
    if (value !== undefined) return Promise.resolve(value);
    return Promise.reject(new ToolcribError("invalid_config", `${text} is not set`));
  };
}

export interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly token?: string;
  readonly body?: string | Buffer;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  json<T = { error: { code: string; message: string; hint?: string } }>(): T;
}

/** Not with fetch: it does not let a test set Host or Origin. */
export function ask(url: string, { method = "GET", headers = {}, token, body }: AskOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const request = httpRequest(url, { method, headers: { ...authorization, ...headers }, agent: false });
    request.on("error", reject);
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        // What a test expects of the shape is what it checks next.
        const json = <T>(): T => JSON.parse(text) as T;
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
      });
    });
    request.end(body);
  });
}

/** A bare socket. */
export class Raw {
  readonly socket: Socket;
  #received = "";
  readonly #ended: Promise<void>;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => (this.#received += chunk.toString("latin1")));
    socket.on("error", () => {});
    this.#ended = new Promise((resolve) => socket.once("close", () => resolve()));
  }

  static async open(port: number): Promise<Raw> {
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new Raw(socket);
  }

  send(...lines: string[]): this {
    this.socket.write(lines.join("\r\n"));
    return this;
  }

  get received(): string {
    return this.#received;
  }

  /** Resolves when the other side has hung up. */
  async ended(): Promise<string> {
    await this.#ended;
    return this.#received;
  }

  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#received)) {
      await new Promise((resolve, reject) => {
        this.socket.once("data", resolve);
        this.socket.once("close", () => reject(new Error(`ended after ${JSON.stringify(this.#received)}`)));
      });
    }
    return this.#received;
  }
}
