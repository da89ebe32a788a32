/** The dependencies of a Connection, and its events. Tests use their own clock and wires. */
import type { Clock } from "../base/clock.ts";
import type { JsonObject } from "../model/json.ts";
import type { LogMessage, Root } from "../model/protocol.ts";
import type { ContainersConfig, ServerSpec } from "../model/server-spec.ts";
import type { ServerState, TransportKind } from "../model/server-state.ts";
import type { ClientEnv, ClientSide, SessionContext } from "../model/source.ts";
import type { OAuth } from "../secrets/oauth/oauth.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { ResolvedSpec } from "../secrets/resolve-spec.ts";
import type { Secrets } from "../secrets/secrets.ts";
import type { EraMemory } from "./era-memory.ts";
import type { AddressPolicy } from "./http/address-policy.ts";
import type { WireCredentials } from "./http/http-client.ts";
import type { SandboxDeps } from "./sandbox/sandbox-settings.ts";
import type { PidRecords } from "./stdio/pid-records.ts";
import type { ServerLog } from "./stdio/server-log.ts";
import type { Wire } from "./wire.ts";

export interface ConnectionDeps {
  readonly clock: Clock;
  /** Where references are looked up and what a child's minimal environment is taken from. */
  readonly env: NodeJS.ProcessEnv;
  readonly eras: EraMemory;
  readonly pids: PidRecords;
  readonly redactor: Redactor;
  /** Looks references up, with this redactor; one of its own for each attempt if absent. */
  readonly secrets?: Secrets;
  /** Answers servers that ask something while no call is in flight. */
  readonly hubSession: SessionContext;
  /** Who answers instead of the hub's own session, if one may. */
  readonly idleClient?: (server: string, user: string | undefined, session?: string) => ClientSide | undefined;
  /** The client with the guard before it, for questions of a server outside of any call. */
  readonly guarded?: (server: string, client: ClientSide) => ClientSide;
  /** The client capabilities that a server gets where it cannot get those of each caller. */
  readonly offers: Readonly<JsonObject>;
  /** The hub's workspace, for servers whose entries do not set roots. */
  readonly workspaceRoots?: readonly Root[];
  readonly clientVersion: string;
  /** Asks servers for log messages from this level on; they choose for themselves if absent. */
  readonly logLevel?: string;
  /** How long a server that has been ready is still listed after it failed for good; 5 minutes by default. */
  readonly graceMs?: number;
  /** From the wish to end a process to SIGKILL, asked when it is ended; 5 s if absent or undefined. */
  readonly closeGraceMs?: () => number | undefined;
  /** Gets what children write to stderr. */
  readonly stderr?: ServerLog;
  readonly openWire?: OpenWire;
  /** Gives servers their access tokens; without it none can be logged in to. */
  readonly oauth?: OAuth;
  /** Where remote servers may be; anywhere if absent. */
  readonly reach?: AddressPolicy;
  /** Needed to make sandboxes; without it a spec with a sandbox is refused. */
  readonly sandboxes?: Pick<SandboxDeps, "home" | "userHome"> & { readonly containers: () => ContainersConfig };
  /** Whose credentials it uses, where each user has a connection of their own. */
  readonly user?: string;
  /** Whose it is, where each session has a connection of its own. */
  readonly session?: string;
  /** The user of that session, whose `secret://user/…` values it gets. */
  readonly secretsUser?: string;
  /** Variables of the session's client, which references use first. */
  readonly clientEnv?: ClientEnv | undefined;
  /** How many sessions may have a connection of their own at one server; any number if absent. */
  readonly maxSessionConnections?: () => number;
}

/** Makes an unopened wire of the given kind. */
export type OpenWire = (
  kind: TransportKind,
  spec: ServerSpec,
  resolved: ResolvedSpec,
  deps: ConnectionDeps,
  credentials?: WireCredentials,
) => Wire;

export interface ConnectionEvents {
  state: { readonly previous: ServerState; readonly state: ServerState };
  /** The definitions are new. */
  changed: undefined;
  /**
   * `user`: whose connection it came on, where each user has one; null for the hub owner's own. `session`: the same where
   * each session has one. Not for others.
   */
  log: {
    readonly message: LogMessage;
    readonly user?: string | null;
    readonly session?: string;
    /** The call that it belongs to and whose caller has had it already. */
    readonly callId?: string;
  };
  /** A notification that is none of the others and belongs to no call. */
  notice: {
    readonly method: string;
    readonly params: JsonObject;
    readonly user?: string | null;
    readonly session?: string;
  };
  warning: string;
  /** A warning about a list that could not be read, or not as a whole. */
  "list-warning": string;
  /** `params` as the server sent them, `uri` included. */
  "resource-updated": {
    readonly uri: string;
    readonly params: JsonObject;
    readonly user?: string | null;
    readonly session?: string;
  };
}
