/** How sessions of a hub begin and end. */
import { resolve } from "node:path";
import type { Emitter } from "../../base/emitter.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { Tool } from "../../model/tool.ts";
import type { SessionHost } from "../../sessions/session-parts.ts";
import { Session, type SessionOptions } from "../../sessions/session.ts";
import type { HubEvents } from "../hub-events.ts";
import type { HubOptions } from "../hub-options.ts";
import type { HubParts } from "./wiring.ts";

/** The group of the tools that a session is opened with. */
const SESSION_TOOL_GROUP = "session";

interface SessionsOptions {
  readonly parts: HubParts;
  readonly events: Emitter<HubEvents>;
  readonly host: SessionHost;
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
    if (options.tools !== undefined) addSessionTools(session, options.tools);
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

/** The session of the program that makes the hub. */
export function createHubSession(config: LoadedConfig, options: HubOptions, host: SessionHost): Session {
  const workspaceDir = options.workspaceDir ?? configuredWorkspace(config);
  const given: SessionOptions = {
    owner: true,
    door: options.door,
    workspaceDir,
    ...(options.rootsOnRequest === true ? { rootsOnRequest: true } : {}),
    ...(options.role === undefined ? {} : { role: options.role }),
    ...(options.onSample === undefined ? {} : { onSample: options.onSample }),
    ...(options.onElicit === undefined ? {} : { onElicit: options.onElicit }),
  };
  return new Session(given, undefined, host);
}
