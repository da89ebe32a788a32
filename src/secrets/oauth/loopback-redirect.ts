/** The little web server on this machine to which the browser comes back after a login. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { timingSafeEqual } from "node:crypto";
import { ToolcribError } from "../../model/errors.ts";

// Not imported as a module: that loads Node's whole fetch as well, 12 MB of it.
const { createServer } = process.getBuiltinModule("node:http");

const PATH = "/callback";

interface WaitOptions {
  /** The state that was sent; anything that comes with another one is turned away and forgotten. */
  readonly state: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export class LoopbackRedirect {
  readonly uri: string;
  readonly #server: Server;
  #onCallback: (params: URLSearchParams) => boolean = () => false;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.uri = `http://127.0.0.1:${port}${PATH}`;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => this.#answer(request, response));
  }

  /** On `port`, which must be free; on any free one if undefined. */
  static async open(port: number | undefined): Promise<LoopbackRedirect> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) => {
        const text = `port ${port ?? 0} of 127.0.0.1 cannot be used for the login`;
        const hint = "Another program may use it. Set `auth.redirectPort` to a free one, or leave it out.";
        reject(new ToolcribError("conflict", text, { hint, cause: error }));
      });
      server.listen(port ?? 0, "127.0.0.1", resolve);
    });
    const address = server.address();
    if (address === null || typeof address === "string")
      throw new ToolcribError("internal", "a TCP server has no port");
    return new LoopbackRedirect(server, address.port);
  }

  /** Resolves with the parameters of the first callback that carries the right state. */
  wait({ state, timeoutMs, signal }: WaitOptions): Promise<URLSearchParams> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        this.#onCallback = () => false;
        settle();
      };
      const onAbort = (): void => end(() => reject(new ToolcribError("cancelled", "The login was cancelled.")));
      const timer = setTimeout(() => {
        const minutes = Math.round(timeoutMs / 60_000);
        end(() => reject(new ToolcribError("timeout", `Nobody logged in within ${minutes} minutes.`)));
      }, timeoutMs);
      this.#onCallback = (params) => {
        if (!isSame(params.get("state") ?? "", state)) return false;
        end(() => resolve(params));
        return true;
      };
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
      // The page that says so may still be on its way; a browser that keeps the connection must not keep us.
      setTimeout(() => this.#server.closeAllConnections(), 500).unref();
    });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", this.uri);
    // Another name for this machine in Host is a web page that talks to us through its own domain.
    if (request.method !== "GET" || url.pathname !== PATH || request.headers.host !== new URL(this.uri).host) {
      return send(response, 404, "Nothing here", "This address only takes the end of a login.");
    }
    if (!this.#onCallback(url.searchParams)) {
      return send(
        response,
        400,
        "Not this login",
        "This does not belong to a login that is under way. Start it again.",
      );
    }
    if (url.searchParams.has("error")) {
      return send(response, 200, "Not logged in", "The login was refused. You may close this page.");
    }
    return send(
      response,
      200,
      "Almost done",
      "Toolcrib finishes the login; the terminal says how it went. You may close this page.",
    );
  }
}

function send(response: ServerResponse, status: number, title: string, text: string): void {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    "referrer-policy": "no-referrer",
    connection: "close",
  });
  // Nothing of the request is repeated in it.
  response.end(
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title} – Toolcrib</title>` +
      `<body style="font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem">` +
      `<h1 style="font-size:1.4rem">${title}</h1><p>${text}</p></body></html>\n`,
  );
}

function isSame(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}
