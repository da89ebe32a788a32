/** The sessions of this node that a server keeps something of, wherever it runs: a program that takes over is told of them. */
import type { SessionContext } from "../../model/session.ts";
import type { Place } from "./place.ts";

export class IntroducedSessions {
  /** Where each user or session has a connection: all that are open. */
  readonly #open = new Map<string, SessionContext>();
  /** The server is told when they end. */
  readonly #known = new Set<string>();
  /** Of the programs that know of them. */
  #marks = new Set<string>();

  users(): string[] {
    return [...new Set([...this.#open.values()].flatMap(({ user }) => user ?? []))];
  }

  /** Whether a server may still keep something of it. */
  knows(sessionId: string): boolean {
    return this.#known.has(sessionId);
  }

  start(session: SessionContext, places: readonly Place[]): void {
    this.#open.set(session.id, session);
    this.#known.add(session.id);
    for (const place of places) place.startSession(session);
  }

  /** The server keeps something of it from now on. */
  note(sessionId: string): void {
    this.#known.add(sessionId);
  }

  end(sessionId: string, places: readonly Place[]): void {
    this.#open.delete(sessionId);
    if (!this.#known.delete(sessionId)) return;
    for (const place of places) place.endSession(sessionId);
  }

  /** What they follow is told elsewhere from now on. */
  leave(place: Place): void {
    for (const sessionId of this.#known) place.endSession(sessionId);
  }

  /** This node was away: those that run servers may have counted it as gone, and its sessions with it. */
  introduceAgain(): void {
    this.#marks.clear();
  }

  /** @param places All that there are now. */
  introduce(places: readonly Place[]): void {
    for (const place of places) {
      if (this.#marks.has(place.mark)) continue;
      for (const session of this.#open.values()) place.startSession(session);
    }
    this.#marks = new Set(places.map(({ mark }) => mark));
  }
}
