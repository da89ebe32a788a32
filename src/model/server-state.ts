import type { JsonObject } from "./json.ts";
import type { Era } from "./protocol.ts";
import type { SpecOrigin } from "./server-spec.ts";

export type TransportKind = "stdio" | "http" | "sse";

/** Every state a server can be in; nothing else is a state. */
export type ServerState =
  | { readonly kind: "disabled" }
  /** Known, and not asked to connect yet. */
  | { readonly kind: "idle" }
  | { readonly kind: "connecting" }
  | { readonly kind: "ready"; readonly since: number }
  /** A ping was missed; the third in a row reconnects. */
  | { readonly kind: "degraded"; readonly since: number; readonly missedPings: number; readonly reason: string }
  | { readonly kind: "restarting"; readonly attempt: number; readonly nextAt: number; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string; readonly hint?: string }
  | { readonly kind: "closed" };

/** The coarse word that programs which only want a traffic light use. */
export type ServerStatus = "connecting" | "connected" | "disconnected" | "error";

export function statusOf(state: ServerState): ServerStatus {
  switch (state.kind) {
    case "connecting":
    case "restarting":
      return "connecting";
    case "ready":
    case "degraded":
      return "connected";
    case "failed":
      return "error";
    case "disabled":
    case "idle":
    case "closed":
      return "disconnected";
  }
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
  readonly serverVersion: string | null;
  readonly lastError: string | null;
  /** What a person can do about `lastError`, where that is known. */
  readonly hint?: string;
  /** ISO time of the current connection, or null. */
  readonly connectedAt: string | null;
  readonly origin: SpecOrigin;
  readonly tags: readonly string[];
  readonly era: Era | null;
  readonly warnings: readonly string[];
  /** In state `restarting`: which attempt, and when it starts. */
  readonly restart?: { readonly attempt: number; readonly nextAt: string };
}
