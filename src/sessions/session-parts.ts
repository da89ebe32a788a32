/** Servers and tools that a session brings for itself alone: the interfaces of session and hub. */
import type { Emitter } from "../base/emitter.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { ServerDefaults } from "../config/server-defaults.ts";
import type { Capability } from "../model/capability.ts";
import type { SessionsConfig } from "../model/config.ts";
import { ToolcribError } from "../model/errors.ts";
import type { ToolRules } from "../model/tool-rules.ts";
import type { ServerInfo } from "../model/server-state.ts";
import type { SessionContext } from "../model/source.ts";
import type { Tool } from "../model/tool.ts";
import type { Secrets } from "../secrets/secrets.ts";
import type { ConnectionDeps } from "../upstream/connection-deps.ts";
import type { ServerConnection } from "../upstream/server-connection.ts";
import type { ServerLog } from "../upstream/stdio/server-log.ts";

/** Entries by name, or a list as ACP has it, in the words of any dialect. A wrong entry is left out with a notice. */
export type SessionServers = Readonly<Record<string, unknown>> | readonly unknown[];

/** Something that the client and the model should know: a server that failed, an entry that was left out, a name that is taken. */
export interface SessionNotice {
  readonly level: "info" | "warning";
  readonly message: string;
  readonly hint?: string;
  /** As the client named it. */
  readonly server?: string;
}

/** An entry of the last `mount` that is not used. */
export interface LeftOutServer {
  /** As the client named it. */
  readonly name: string;
  /** In Toolcrib's own words alone, for a model; a notice says more. */
  readonly reason: string;
}

export interface SessionPartEvents {
  notice: SessionNotice;
  /** One of its servers changed its state. */
  server: ServerInfo;
  /** Its tools, resources or prompts are other than before. */
  change: Readonly<Record<string, never>>;
  /** A resource that the session follows at one of its servers was updated. */
  resource: { readonly uri: string };
  /** The user has done what the client was asked to have them do at an address. */
  elicited: { readonly elicitationId: string };
}

export interface MountOptions {
  /** Milliseconds to wait for servers; the config's `sessions.wait` if absent. */
  readonly waitMs?: number;
  /** Waits for one server only, and not long for that if the hub's are there; `joined` waits a moment for the others. */
  readonly leavesLate?: boolean;
}

/** The outcome of a list of tools. */
export interface GivenTools {
  /** The names under which the session has them, in the order of the list. */
  readonly names: readonly string[];
}

export interface SessionParts {
  /**
   * Makes these the session's servers: new ones are connected, those that are the same stay as they are, others end. Resolves
   * when all are ready or have failed, or after the wait; who is late joins then. What cannot be used is left out with a
   * notice. Rejects only with `cancelled`, when the session is closed.
   */
  mount(servers: SessionServers, options?: MountOptions): Promise<void>;
  /** Replaces the tools of one group, such as those of one process; an empty list clears it. */
  setTools(group: string, tools: readonly Tool[]): GivenTools;
  /** `id` is unique in the hub, `name` is as the client named it. */
  servers(): readonly ServerInfo[];
  /** Those that should be there and are not. */
  leftOut(): readonly LeftOutServer[];
  /** The latest notices, oldest first. */
  notices(): readonly SessionNotice[];
  /** After a mount with `leavesLate`: resolves when the other servers are ready or have failed, or a moment after the first is. */
  joined(): Promise<void>;
  /** Resolves when no server is connecting for the first time any more. */
  settled(): Promise<void>;
  on<Name extends keyof SessionPartEvents>(name: Name, listener: (event: SessionPartEvents[Name]) => void): () => void;
}

const noHub = (): ToolcribError =>
  new ToolcribError("cancelled", "The session is closed or was not opened by a hub. It cannot bring servers or tools.");

/** Of a session that is closed, or that no hub opened. */
export const NO_PARTS: SessionParts = {
  mount: () => Promise.reject(noHub()),
  setTools() {
    throw noHub();
  },
  servers: () => [],
  leftOut: () => [],
  notices: () => [],
  joined: () => Promise.resolve(),
  settled: () => Promise.resolve(),
  on: () => () => {},
};

/** The hub's side. Limits are read each time, because the config may change. */
export interface SessionHost {
  /** The hub's own, which names of sessions keep clear of. */
  readonly catalog: Catalog;
  readonly sources: SessionSources;
  /** A session's connections use the parts that are not shared with others. */
  readonly deps: ConnectionDeps & { readonly secrets: Secrets; readonly stderr: ServerLog };
  settings(): SessionsConfig & {
    readonly servers: number;
    readonly tools: number;
    /** How long a session waits for further servers once one is ready. */
    readonly lateMs: number;
    /** How long clients wait for servers if others are there. */
    readonly listWaitMs: number;
    /** A client's programs run in the hub's sandbox, whatever the client says. */
    readonly serverDefaults: ServerDefaults;
  };
  /** Whether the port of this machine is a hub's, or one that a sandbox published. */
  isOwnPort(port: number): boolean;
  /** The text in a definition that reads like an attack, if any. */
  suspicion(capability: Capability): string | undefined;
  /** Gets the warnings that a client got, for the log. */
  onWarning(warning: {
    readonly session: string;
    readonly server?: string | undefined;
    readonly message: string;
  }): void;
  /** A server is connected, for the first time or again. */
  onReady(connection: ServerConnection): void;
  /** For the hub's log, not for the client: it shows notices beside a model's answers. */
  warn(message: string): void;
}

/** Narrows the config's limits; it never widens them. */
export interface SessionPartLimits {
  readonly servers?: number;
  readonly tools?: number;
}

/** The session that brings something. */
export interface MountingSession {
  readonly context: SessionContext;
  /** Aborts when the session closes. */
  readonly closing: AbortSignal;
  /** Whether programs that it names are started, and servers of this machine are reached. */
  readonly mayRunCommands: boolean;
  /** Whether its servers are named by the program that runs the hub rather than by a client. */
  readonly fromProgram: boolean;
  readonly limits: SessionPartLimits;
  readonly events: Emitter<SessionPartEvents>;
}

export interface SessionSource {
  /** As the client named it. */
  readonly name: string;
  /** Where its rules are written, for a person. */
  readonly where: string;
  /** Those of its own entry. */
  readonly rules?: ToolRules | undefined;
  /** Not of in-process tools. */
  readonly connection?: ServerConnection | undefined;
  /** Hides the session's secrets, and the hub's. */
  readonly mask: (text: string) => string;
  isOwnerOnly(toolName: string): boolean;
}

/** Sources of sessions by id, for the parts of a hub that know a capability only by its origin. */
export class SessionSources {
  readonly #sources = new Map<string, SessionSource>();
  readonly #suffixes = new Set<string>();

  /** The end of the ids of a session's sources: the shortest unique beginning of the session's id. */
  claim(sessionId: string): string {
    let length = 8;
    while (length < sessionId.length && this.#suffixes.has(sessionId.slice(0, length))) length += 1;
    const suffix = sessionId.slice(0, length);
    this.#suffixes.add(suffix);
    return suffix;
  }

  release(suffix: string): void {
    this.#suffixes.delete(suffix);
  }

  add(id: string, source: SessionSource): void {
    this.#sources.set(id, source);
  }

  delete(id: string): void {
    this.#sources.delete(id);
  }

  get(id: string): SessionSource | undefined {
    return this.#sources.get(id);
  }

  /** How many servers of all sessions are programs of this machine. */
  get programs(): number {
    let count = 0;
    for (const { connection } of this.#sources.values()) if (connection?.spec.command !== undefined) count += 1;
    return count;
  }
}
