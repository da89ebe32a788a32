/**
 * The answer that each connection waits for. Kept by connection and looked at when it is asked for: a listener on every
 * answer would be a noticeable share of what a request costs.
 */
import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

export class LastAnswers {
  readonly #bySocket = new Map<Duplex, ServerResponse | undefined>();

  begin(socket: Duplex, response: ServerResponse): void {
    if (!this.#bySocket.has(socket)) socket.once("close", () => this.#bySocket.delete(socket));
    this.#bySocket.set(socket, response);
  }

  /** Undefined once it is complete, or cut. */
  of(socket: Duplex): ServerResponse | undefined {
    const response = this.#bySocket.get(socket);
    return response?.closed === false ? response : undefined;
  }

  /** Those that are complete are let go of here: this is asked for every few seconds. */
  underWay(): ServerResponse[] {
    return [...this.#bySocket].flatMap(([socket, response]) => {
      if (response?.closed === false) return [response];
      this.#bySocket.set(socket, undefined);
      return [];
    });
  }
}
