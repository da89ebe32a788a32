import type { Clock } from "../../model/clock.ts";
import type { Emitter } from "../../model/emitter.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { HubEvents } from "../events.ts";

const EVENTS_KEPT = 50;

export interface ServerEvent {
  /** ISO time. */
  readonly at: string;
  readonly state: ServerInfo["state"];
  readonly reason?: string;
}

/** The last changes of state of each server, for whoever wants to know why one is red. Reasons are masked already. */
export class ServerHistory {
  readonly #events = new Map<string, ServerEvent[]>();
  readonly #stops: readonly (() => void)[];

  constructor(events: Emitter<HubEvents>, clock: Clock, onForget: (id: string) => void = () => {}) {
    this.#stops = [
      events.on("server", ({ info }) => this.#add(info, new Date(clock.now()).toISOString())),
      events.on("reload", ({ report }) => {
        for (const id of report.removed) {
          this.#events.delete(id);
          onForget(id);
        }
      }),
    ];
  }

  of(id: string): ServerEvent[] {
    return [...(this.#events.get(id) ?? [])];
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  #add({ id, state, lastError }: ServerInfo, at: string): void {
    // A removed server ends its last calls first, and nobody asks for it any more.
    if (state === "closed") return;
    const events = this.#events.get(id) ?? [];
    const isDown = state === "failed" || state === "restarting" || state === "degraded";
    events.push({ at, state, ...(isDown && lastError !== null ? { reason: lastError } : {}) });
    if (events.length > EVENTS_KEPT) events.shift();
    this.#events.set(id, events);
  }
}
