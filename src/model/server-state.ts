import type { JsonObject } from "./json.ts";
import type { Era } from "./protocol.ts";
import type { SpecOrigin } from "./server-spec.ts";

export type TransportKind = "stdio" | "http" | "sse";

/** Every state a server can be in; nothing else is a state. */
export type ServerState =
  | { readonly kind: "disabled" }
  /** Known, and not asked to connect yet, or put to sleep. */
  | { readonly kind: "idle" }
  /** `progress`: what the start waits for, such as a package that is being installed. */
  | { readonly kind: "connecting"; readonly progress?: string }
  | { readonly kind: "ready"; readonly since: number }
  /** A ping was missed; the third in a row reconnects. */
  | { readonly kind: "degraded"; readonly since: number; readonly missedPings: number; readonly reason: string }
  | {
      readonly kind: "restarting";
      readonly attempt: number;
      readonly nextAt: number;
      /** From the loss, or the failed attempt, to this one. */
      readonly delayMs: number;
      readonly reason: string;
      readonly hint?: string;
      readonly problem?: string;
    }
  /** `problem`: a code for programs, where the cause is known as one of several. */
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly hint?: string;
      readonly problem?: string;
      /** Restarts in a row before it was given up; absent if none was tried. */
      readonly attempts?: number;
    }
  | { readonly kind: "closed" };

/** The coarse word that programs which only want a traffic light use. */
export type ServerStatus = "connecting" | "connected" | "disconnected" | "error";

export const STATUS_OF = {
  disabled: "disconnected",
  idle: "disconnected",
  connecting: "connecting",
  ready: "connected",
  degraded: "connected",
  restarting: "connecting",
  failed: "error",
  closed: "disconnected",
} as const satisfies Record<ServerState["kind"], ServerStatus>;

/** The state of the login at a remote server. */
export interface AuthInfo {
  readonly type: "oauth" | "client-credentials";
  /** ISO time at which the access token ends. It is renewed automatically before that, unless `state` says otherwise. */
  readonly expiresAt?: string;
  /** expires_soon: it cannot be renewed without a person. login_needed: nothing works until a person logs in. */
  readonly state: "ok" | "expires_soon" | "login_needed";
}

/** A server as every door shows it. */
export interface ServerInfo {
  readonly id: string;
  readonly name: string;
  readonly transport: TransportKind;
  readonly state: ServerState["kind"];
  readonly status: ServerStatus;
  readonly capabilities: JsonObject;
  readonly toolCount: number;
  /** Its own name for itself. */
  readonly serverName: string | null;
  readonly serverVersion: string | null;
  readonly lastError: string | null;
  /** How to fix `lastError`, if that is known. */
  readonly hint?: string;
  /** The cause of `lastError` as a code that stays the same, such as `registry_certificate`, if it is a known one. */
  readonly problem?: string;
  /** In state `connecting`: what the start waits for, such as `installing @scope/name …`. */
  readonly progress?: string;
  /** In state `idle`: its lists are shown, and the next use of one of them starts it. */
  readonly sleeping?: true | undefined;
  /** ISO time of the current connection, or null. */
  readonly connectedAt: string | null;
  readonly origin: SpecOrigin;
  readonly tags: readonly string[];
  readonly era: Era | null;
  /** The protocol version agreed on, or null. */
  readonly protocolVersion: string | null;
  readonly warnings: readonly string[];
  /** Only of remote servers that are used with OAuth. */
  readonly auth?: AuthInfo;
  /** Only with `isolation: "user"`: how many users have a connection of their own, and for how many it is up. */
  readonly users?: { readonly connections: number; readonly connected: number };
  /** Only with `isolation: "session"`: the same for sessions. */
  readonly sessions?: { readonly connections: number; readonly connected: number };
  /** In a cluster, of a server with a program: the name of the node that runs it, or of several. */
  readonly node?: string;
  /** In state `restarting`: which attempt, and when it starts. */
  readonly restart?: { readonly attempt: number; readonly nextAt: string; readonly delayMs: number };
  /** In state `failed`: after how many attempts to restart it was given up; absent if none was made. */
  readonly attempts?: number;
}
