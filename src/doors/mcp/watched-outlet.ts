import { setImmediate as nextTurn } from "node:timers/promises";
import type { Encoded, Outlet } from "./encoded.ts";

/**
 * The outlet of one request. Clients made with the official SDK lose a notification that arrives in one piece with the
 * answer, so an answer that follows one waits for the next turn.
 */
export class WatchedOutlet implements Outlet {
  readonly #outlet: Outlet;
  #used = false;

  constructor(outlet: Outlet) {
    this.#outlet = outlet;
  }

  send(message: Encoded): void {
    this.#used = true;
    this.#outlet.send(message);
  }

  async settle(): Promise<void> {
    if (this.#used) await nextTurn();
  }
}
