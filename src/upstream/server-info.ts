import type { ServerSpec } from "../model/server-spec.ts";
import {
  type AuthInfo,
  type ServerInfo,
  type ServerState,
  statusOf,
  type TransportKind,
} from "../model/server-state.ts";
import type { Agreement } from "./handshake.ts";

interface ServerFacts {
  readonly spec: ServerSpec;
  readonly state: ServerState;
  readonly transport: TransportKind;
  readonly agreement: Agreement | null;
  readonly toolCount: number;
  readonly lastError: string | null;
  readonly warnings: readonly string[];
  readonly auth: AuthInfo | undefined;
}

export function serverInfo(facts: ServerFacts): ServerInfo {
  const { spec, state, transport, agreement, toolCount, lastError, warnings, auth } = facts;
  const version = agreement?.serverInfo?.["version"];
  return {
    id: spec.id,
    name: spec.name ?? spec.id,
    transport,
    state: state.kind,
    status: statusOf(state),
    capabilities: agreement?.capabilities ?? {},
    toolCount,
    serverVersion: typeof version === "string" ? version : null,
    lastError: state.kind === "degraded" ? state.reason : lastError,
    ...("hint" in state && state.hint !== undefined ? { hint: state.hint } : {}),
    connectedAt: "since" in state ? new Date(state.since).toISOString() : null,
    origin: spec.origin,
    tags: spec.tags ?? [],
    era: agreement?.era ?? null,
    protocolVersion: agreement?.version ?? null,
    warnings,
    ...(auth === undefined ? {} : { auth }),
    ...(state.kind === "restarting"
      ? { restart: { attempt: state.attempt, nextAt: new Date(state.nextAt).toISOString() } }
      : {}),
  };
}
