/** How sessions of a hub begin and end. */
import { resolve } from "node:path";
import type { Emitter } from "../../base/emitter.ts";
import type { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { Tool } from "../../model/tool.ts";
import type { SessionHost } from "../../sessions/session-parts.ts";
import { Session, type SessionOptions } from "../../sessions/session.ts";
import type { Taints } from "../call/taints.ts";
import type { HubEvents } from "../hub-events.ts";
import type { HubOptions } from "../hub-options.ts";

/** The group of the tools that a session is opened with. */
const SESSION_TOOL_GROUP = "session";

/** The sessions of a hub: its own, those that were opened, and what is left of those that were closed. */
export class HubSessions {
  /** The origins of what they have read and anyone may have written. */
  readonly taints: Taints;
  readonly #events: Emitter<HubEvents>;
  readonly #open = new Set<Session>();
  readonly #ending = new Set<Promise<void>>();
  #host: SessionHost | undefined;
  #own: Session | undefined;

  constructor(events: Emitter<HubEvents>, taints: Taints) {
    this.#events = events;
    this.taints = taints;
  }

  /** Opens the hub's own session. From now on others can be opened. */
  begin(options: SessionOptions, host: SessionHost): Session {
    this.#host = host;
    this.#own = new Session(options, undefined, host);
    return this.#own;
  }

  /** The session of the program that made the hub. */
  get own(): Session {
    if (this.#own === undefined) throw new Error("The hub has no session yet.");
    return this.#own;
  }

  /** Those that are open, the hub's own first. */
  all(): readonly Session[] {
    return [this.own, ...this.#open];
  }

  open(options: SessionOptions): Session {
    const session = new Session(options, (closed) => this.#ended(closed), this.#host);
    this.taints.attach(session, { ...options, parent: options.within ?? options.parent });
    if (options.tools !== undefined) addSessionTools(session, options.tools);
    this.#open.add(session);
    this.#events.emit("session", { session, open: true });
    return session;
  }

  /** Ends the calls in progress; this is what their callers are told. */
  endCalls(why: ToolcribError): void {
    for (const session of this.all()) for (const call of session.running) call.abort(why);
  }

  /** Resolves when no process of a session is left. */
  async close(): Promise<void> {
    this.taints.close();
    this.own.close();
    for (const session of this.#open) session.close();
    await Promise.all([this.own.over, ...this.#ending]);
  }

  #ended(session: Session): void {
    if (!this.#open.delete(session)) return;
    this.#events.emit("session", { session, open: false });
    const ending = session.over;
    this.#ending.add(ending);
    void ending.finally(() => this.#ending.delete(ending));
  }
}

function addSessionTools(session: Session, tools: readonly Tool[]): void {
  try {
    session.own.setTools(SESSION_TOOL_GROUP, tools);
  } catch (error) {
    session.close();
    throw error;
  }
}

/** Absolute. */
export function configuredWorkspace({ config, baseDir }: LoadedConfig): string | undefined {
  return config.workspaceDir && resolve(baseDir, config.workspaceDir);
}

/** For the session of the program that makes the hub. */
export function ownSessionOptions(config: LoadedConfig, options: HubOptions): SessionOptions {
  const { door, role, onSample, onElicit, rootsOnRequest, workspaceDir = configuredWorkspace(config) } = options;
  return { owner: true, door, role, onSample, onElicit, rootsOnRequest, workspaceDir };
}
