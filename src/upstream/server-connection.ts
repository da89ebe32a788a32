/** What the hub knows of a server, whether one connection serves all sessions or each user has one. */
import type { ServerSpec } from "../model/server-spec.ts";
import type { ServerInfo } from "../model/server-state.ts";
import type { SessionContext } from "../model/session.ts";
import type { Source } from "../model/source.ts";
import { Connection } from "./connection.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import type { ConnectionEvents } from "./connection-events.ts";
import { UserConnections } from "./user-connections.ts";

export interface ServerConnection extends Source {
  readonly spec: ServerSpec;
  on<Name extends keyof ConnectionEvents>(name: Name, listener: (event: ConnectionEvents[Name]) => void): () => void;
  info(): ServerInfo;
  /** The server's advice on how to use it, once it is connected. */
  instructions?(): string | null;
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  close(): Promise<void>;
  refresh(): Promise<void>;
  /** Told of a session of a user before its first call. */
  startSession?(session: SessionContext): void;
  endSession(sessionId: string): void;
  /** Only where each user has a connection: connects this user's. */
  connectUser?(user: string): Promise<ServerInfo>;
}

export function serverConnection(spec: ServerSpec, deps: ConnectionDeps): ServerConnection {
  return spec.isolation === "user" ? new UserConnections(spec, deps) : new Connection(spec, deps);
}
