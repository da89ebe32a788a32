/** A local HTTP server that stands in for a service: it records what it is asked and answers as its handler says. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

export interface Asked {
  readonly method: string;
  /** With its query, as it came. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly body?: unknown;
}

/** `never` reads the question and does not answer; `broken` sends the beginning of an answer and hangs up. */
export type Handler = (asked: Asked) => Answer | "never" | "broken";

export class HttpDouble {
  readonly asked: Asked[] = [];
  readonly #server: Server;
  /** Taken instead of the service's own answers while it is set. */
  ill: Handler | undefined;

  constructor(handler: Handler) {
    this.#server = createServer((request, response) => {
      void text(request).then((body) => {
        const asked = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body };
        this.asked.push(asked);
        const answer = (this.ill ?? handler)(asked);
        if (answer === "never") return;
        if (answer === "broken") {
          response.writeHead(200, { "Content-Type": "application/json", "Content-Length": "1000" });
          response.write('{"data": {"da', () => response.destroy());
          return;
        }
        const isText = typeof answer.body === "string" || answer.body === undefined;
        response.writeHead(answer.status, { "Content-Type": "application/json", ...answer.headers });
        response.end(isText ? answer.body : JSON.stringify(answer.body));
      });
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    onTestFinished(() => this.stop());
    return this;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}

/** Ills that any service may have, with whether waiting can help. */
export const ILLS: readonly (readonly [name: string, ill: Handler, passing: boolean])[] = [
  [
    "500",
    () => ({
      status: 500,
      body: {
        errors: ["internal"],
        message: "internal",
        error: { code: 500, message: "internal", status: "INTERNAL" },
      },
    }),
    true,
  ],
  ["503", () => ({ status: 503, body: "upstream connect error" }), true],
  ["garbage", () => ({ status: 200, body: "canary: no JSON" }), false],
  ["JSON that is no object", () => ({ status: 200, body: '"canary"' }), false],
  ["an empty object", () => ({ status: 200, body: {} }), false],
];
