/** The hub's view of a server, whether one connection serves all sessions, or each user or session has its own. */
import type { Listeners } from "../base/emitter.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { ServerInfo } from "../model/server-state.ts";
import type { SessionContext, Source } from "../model/source.ts";
import { Connection } from "./connection.ts";
import type { ConnectionDeps, ConnectionEvents } from "./connection-deps.ts";
import type { ListMemory } from "./known-lists.ts";
import type { SkillOffer } from "./live-lists.ts";
import { IsolatedConnections } from "./isolated-connections.ts";

export interface ServerConnection extends Source {
  /** The latest that `respec` took over. */
  readonly spec: ServerSpec;
  listen(listeners: Listeners<ConnectionEvents>): () => void;
  info(): ServerInfo;
  /** The server's advice on how to use it, once it is connected: to this user or session, where each has a connection. */
  instructions(user?: string, session?: string): string | null;
  /** Only where users or sessions have connections: the advice of the one whose lists are shown. Not to be handed out. */
  listedInstructions?(): string | null;
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  /** In a cluster: what an operator wants, on all nodes. Never rejects. */
  wish?(connected: boolean): Promise<void>;
  close(): Promise<void>;
  /** Takes no new calls, lets calls in progress finish, for as long as a call may take, and closes. Never rejects. */
  retire(): Promise<void>;
  /** Takes over a spec that differs in nothing that concerns the open link. False: it does, and nothing was done. */
  respec(spec: ServerSpec): boolean;
  /** Where `respec` takes over also what concerns the link: resolves when it has. */
  settled?(): Promise<void>;
  refresh(): Promise<void>;
  /** Asks for log messages from this level on, now and after every reconnect. Never rejects. */
  setLogLevel(level: string): Promise<void>;
  /** Notifies a legacy server that roots changed; a modern one asks each time. Never rejects. */
  rootsChanged(): Promise<void>;
  /** Called for a session before its first call. */
  startSession?(session: SessionContext): void;
  endSession(sessionId: string): void;
  /** The session goes on following these resources, as it did on a connection before this one. */
  resume(session: SessionContext, uris: readonly string[]): void;
  /** The skills that the server offers now; not where users or sessions have connections. */
  skillOffer?(): SkillOffer | undefined;
  /** Only where each user has a connection: connects this user's. */
  connectUser?(user: string): Promise<ServerInfo>;
}

export function serverConnection(spec: ServerSpec, deps: ConnectionDeps, memory?: ListMemory): ServerConnection {
  return spec.isolation === "shared" ? new Connection(spec, deps, memory) : new IsolatedConnections(spec, deps, memory);
}
