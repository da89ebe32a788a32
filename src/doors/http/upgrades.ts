/** Requests that want another protocol on their connection. Where nobody speaks it they are answered like any other. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { LastAnswers } from "./last-answers.ts";

// Not imported as a module: that loads Node's whole fetch as well.
const { ServerResponse: Response } = process.getBuiltinModule("node:http");

/** The connection of a request that wants to speak another protocol. */
export interface Takeover {
  readonly socket: Duplex;
  readonly head: Buffer;
}

interface UpgradeParts {
  /** What connections still wait for. */
  readonly answers: LastAnswers;
  /** Whether a route takes over connections at the place that is asked for. */
  readonly takesOver: (request: IncomingMessage) => boolean;
  /** Checks the request, and answers it or hands the connection on. */
  readonly take: (request: IncomingMessage, response: ServerResponse, takeover: Takeover) => void;
}

export class Upgrades {
  readonly #parts: UpgradeParts;
  readonly #open = new Set<Duplex>();

  constructor(parts: UpgradeParts) {
    this.#parts = parts;
  }

  /** For `createServer`. Nodes before 24.9 do not ask, and give us every request that has an `Upgrade`. */
  readonly shouldUpgrade = (request: IncomingMessage): boolean => {
    const { method, headers } = request;
    const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
    const isSocket = headers.upgrade?.toLowerCase() === "websocket";
    return method === "GET" && isSocket && !hasBody && this.#parts.takesOver(request);
  };

  listen(server: Server): void {
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#take(server, request, socket, head);
    });
  }

  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #take(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const onError = (): void => void socket.destroy();
    const onClose = (): void => void this.#open.delete(socket);
    this.#open.add(socket);
    socket.on("error", onError).once("close", onClose);
    const go = (): void => {
      try {
        if (socket.destroyed) return;
        if (this.shouldUpgrade(request)) {
          this.#parts.take(request, this.#refusal(request), { socket, head });
          return;
        }
        socket.off("error", onError).off("close", onClose);
        this.#open.delete(socket);
        takeBack(server, request, request.socket, head);
      } catch {
        // Thrown from here it would end the process, for one connection.
        socket.destroy();
      }
    };
    // An answer to a request before this one may still be on its way.
    const earlier = this.#parts.answers.of(socket);
    if (earlier === undefined) go();
    else earlier.once("close", go);
  }

  /** Refusals are answered as those of any other request, and end the connection. */
  #refusal(request: IncomingMessage): ServerResponse {
    const response: ServerResponse = new Response(request);
    response.shouldKeepAlive = false;
    response.assignSocket(request.socket);
    response.once("finish", () => {
      // Nobody reads it any more, so nobody would notice that the other side has gone.
      request.socket.resume();
      request.socket.destroySoon();
    });
    return response;
  }
}

/** Puts a request back on its connection without its wish, for Node to read it as any other. */
export function takeBack(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = "", value = ""] = rawHeaders.slice(index, index + 2);
    const kept = name.toLowerCase() === "connection" ? withoutWish(value) : value;
    if (!WISH.has(name.toLowerCase())) lines.push(`${name}: ${kept}`);
  }
  // Node adds its own anew.
  socket.removeAllListeners("timeout");
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
}

/** The second is what HTTP/2 in clear text adds to the first. */
const WISH = new Set(["upgrade", "http2-settings"]);

function withoutWish(connection: string): string {
  const names = connection.split(",").map((name) => name.trim());
  return names.filter((name) => !WISH.has(name.toLowerCase())).join(", ");
}
