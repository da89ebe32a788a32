/** What stands behind the parts that a session brings: the hub's side, and the session's. */
import type { Catalog } from "../../catalog/catalog.ts";
import type { CageDefaults } from "../../config/effective-cage.ts";
import type { Capability } from "../../model/capability.ts";
import type { Emitter } from "../../model/emitter.ts";
import type { SessionContext } from "../../model/session.ts";
import type { SessionsConfig } from "../../model/agent-config.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";
import type { StderrLog } from "../../upstream/stdio/stderr-log.ts";
import type { OwnEvents } from "./own-parts.ts";
import type { OwnSources } from "./own-sources.ts";

/** What a hub lends. Limits are asked for each time: the config may change. */
export interface OwnHost {
  /** The hub's own, which names of sessions keep clear of. */
  readonly catalog: Catalog;
  readonly sources: OwnSources;
  /** Of these a session's connections take what is not somebody else's. */
  readonly deps: ConnectionDeps & { readonly secrets: Secrets; readonly stderr: StderrLog };
  settings(): SessionsConfig & {
    readonly servers: number;
    readonly tools: number;
    /** A client's programs are in the hub's cage, whatever the client says. */
    readonly cages: CageDefaults;
  };
  /** Whether the port of this machine is a hub's, or one that a cage published. */
  isOwnPort(port: number): boolean;
  /** What in a definition reads like an attack, if anything. */
  suspicion(capability: Capability): string | undefined;
  /** A server is connected, for the first time or again. */
  onReady(connection: ServerConnection): void;
}

/** Narrows the config's limits; it never widens them. */
export interface OwnLimits {
  readonly servers?: number;
  readonly tools?: number;
}

/** The session that brings something. */
export interface Bringer {
  readonly context: SessionContext;
  /** Aborts when the session closes. */
  readonly closing: AbortSignal;
  /** Whether programs that it names are started, and servers of this machine are reached. */
  readonly mayRunCommands: boolean;
  /** Whether its servers are named by the program that runs the hub rather than by a client. */
  readonly fromProgram: boolean;
  readonly limits: OwnLimits;
  readonly events: Emitter<OwnEvents>;
}
