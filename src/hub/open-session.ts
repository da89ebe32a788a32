/** How sessions of a hub begin and end. */
import type { Emitter } from "../model/emitter.ts";
import type { Tool } from "../model/tool.ts";
import type { OwnHost } from "../sessions/own/own-host.ts";
import { Session, type SessionOptions } from "../sessions/session.ts";
import type { HubEvents } from "./events.ts";
import type { LastingParts } from "./wiring.ts";

/** The group of the tools that a session is opened with. */
const GIVEN = "session";

interface SessionsOptions {
  readonly parts: LastingParts;
  readonly events: Emitter<HubEvents>;
  readonly host: OwnHost;
}

/** Those that were opened, and what is left of those that were closed. */
export class OpenSessions {
  readonly #options: SessionsOptions;
  readonly #open = new Set<Session>();
  readonly #ending = new Set<Promise<void>>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  get list(): readonly Session[] {
    return [...this.#open];
  }

  open(options: SessionOptions): Session {
    const { parts, events, host } = this.#options;
    const session = new Session(options, (closed) => this.#ended(closed), host);
    if (options.tools !== undefined) offerTools(session, options.tools);
    this.#open.add(session);
    for (const connection of parts.servers.list()) connection.startSession?.(session);
    events.emit("session", { session, open: true });
    return session;
  }

  /** Resolves when no process of a session is left. */
  async closeAll(): Promise<void> {
    for (const session of this.#open) session.close();
    await Promise.all(this.#ending);
  }

  #ended(session: Session): void {
    const { parts, events } = this.#options;
    if (!this.#open.delete(session)) return;
    parts.limits.forget(session.id);
    parts.registry.forgetContext(session.id);
    for (const connection of parts.servers.all()) connection.endSession(session.id);
    events.emit("session", { session, open: false });
    const ending = session.over;
    this.#ending.add(ending);
    void ending.finally(() => this.#ending.delete(ending));
  }
}

function offerTools(session: Session, tools: readonly Tool[]): void {
  try {
    session.own.setTools(GIVEN, tools);
  } catch (error) {
    session.close();
    throw error;
  }
}
