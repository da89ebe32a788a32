/** The answer to one POST of a modern client: JSON, or an event stream that ends with it. Nothing can be resumed. */
import type { ServerResponse } from "node:http";
import type { Caller } from "../../../model/caller.ts";
import type { Encoded, Outlet } from "../encoded.ts";
import type { Accepts } from "./accepts.ts";
import { answerJson } from "./exchange.ts";
import { type OpenStreams, type Owed, SILENT_TICKS } from "./open-streams.ts";
import { SseConnection } from "./sse-connection.ts";
import { whenClosed } from "./when-closed.ts";

export class ModernReply implements Outlet, Owed {
  readonly #response: ServerResponse;
  readonly #caller: Caller;
  readonly #accepts: Accepts;
  readonly #streams: OpenStreams;
  readonly #gone = new AbortController();
  #connection: SseConnection | undefined;
  #ticks = 0;
  #done = false;

  constructor(
    { response, caller }: { readonly response: ServerResponse; readonly caller: Caller },
    accepts: Accepts,
    streams: OpenStreams,
  ) {
    this.#response = response;
    this.#caller = caller;
    this.#accepts = accepts;
    this.#streams = streams;
    whenClosed(response, () => {
      if (!this.#done) this.#gone.abort();
    });
  }

  /** Aborted when the client has closed the connection, which cancels the request. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** What cannot go before the answer is left out: it only says how far the request has come. */
  send(message: Encoded): void {
    if (!this.#done) (this.#connection ?? this.#open())?.send(message);
  }

  stillOwed(): void {
    this.#ticks += 1;
    if (this.#ticks >= SILENT_TICKS && this.#connection === undefined) this.#open()?.open();
  }

  /** @param status For an answer that comes as JSON. */
  finish(answer: Encoded | null, status: number): void {
    if (answer !== null && !this.#accepts.json) this.#open(true);
    this.#done = true;
    if (this.#connection !== undefined) {
      if (answer !== null) this.#connection.send(answer);
      this.#connection.end();
    } else if (answer !== null) answerJson(this.#response, status, answer);
    else this.#response.destroy();
  }

  #open(isOnlyWay = false): SseConnection | undefined {
    const response = this.#response;
    if (this.#connection !== undefined) return this.#connection;
    if (!this.#accepts.stream || response.headersSent || response.destroyed) return undefined;
    if (!isOnlyWay && this.#streams.reachedFor(this.#caller) !== undefined) return undefined;
    this.#connection = new SseConnection(response);
    this.#streams.add(this.#connection, this.#caller);
    return this.#connection;
  }
}
