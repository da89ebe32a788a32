/** A client of the HTTP+SSE transport: everything comes to it on the one stream that is its session. */
import type { ServerResponse } from "node:http";
import { type Caller, identityOf } from "../../../model/caller.ts";
import type { Clock } from "../../../model/clock.ts";
import type { Encoded, Outlet } from "../encoded.ts";
import type { OpenStreams, Owed } from "./open-streams.ts";
import type { OpenSession } from "./session-table.ts";
import { SseConnection } from "./sse-connection.ts";
import type { EngineSession } from "./transport.ts";

export interface SseSessionOptions {
  readonly id: string;
  /** No one else finds the session. */
  readonly caller: Caller;
  readonly clock: Clock;
  readonly streams: OpenStreams;
  readonly response: ServerResponse;
  /** Opens the engine's session; may throw. */
  readonly open: (outlet: Outlet) => EngineSession;
  /** Where to post to, as the client is to resolve it against the address of the stream. */
  readonly endpoint: string;
}

export class SseSession implements OpenSession, Outlet {
  readonly id: string;
  readonly caller: Caller;
  readonly key: string;
  readonly legacy: EngineSession;
  /** The stream is open as long as the session is. */
  readonly isBusy = true;
  usedAt: number;
  readonly #connection: SseConnection;
  readonly #streams: OpenStreams;

  constructor({ id, caller, clock, streams, response, open, endpoint }: SseSessionOptions) {
    this.id = id;
    this.caller = caller;
    this.key = identityOf(caller);
    this.usedAt = clock.now();
    this.#streams = streams;
    // First, because as long as nothing is written it can be refused.
    this.legacy = open(this);
    this.#connection = new SseConnection(response);
    streams.add(this.#connection, caller);
    this.#connection.named("endpoint", endpoint);
  }

  get isOver(): boolean {
    return this.legacy.isOver === true;
  }

  send(message: Encoded): void {
    this.#connection.send(message);
  }

  /** The answer goes onto the stream, whenever it comes. */
  async answer(ask: (outlet: Outlet) => Promise<Encoded | null>): Promise<void> {
    const owed: Owed = { stillOwed: () => {} };
    this.#streams.owe(owed);
    const answer = await ask(this);
    if (answer !== null) this.send(answer);
    this.#streams.settle(owed);
  }

  sweep(): void {}

  close(): void {
    this.legacy.close();
    this.#connection.end();
  }
}
