/** What all parts of MCP over HTTP share. */
import type { ServerResponse } from "node:http";
import type { OwnedIds } from "../../../hub/cluster/owned-ids.ts";
import type { Clock } from "../../../model/clock.ts";
import type { RequestId } from "../../../model/rpc.ts";
import type { QuotaReached } from "../../../policy/quota.ts";
import type { McpDoor } from "../door.ts";
import type { Origin } from "../origin.ts";
import type { Outlet } from "../encoded.ts";
import type { LegacySession } from "../legacy-session.ts";
import type { OpenStreams } from "./open-streams.ts";
import type { SessionTable } from "./session-table.ts";

export type EngineSession = Pick<LegacySession, "version" | "request" | "notify" | "answer" | "abandon" | "close"> &
  Partial<Pick<LegacySession, "isOver">>;

/** What a transport needs of the door. */
export interface Engine extends Pick<McpDoor, "modern" | "toolDefinition" | "close"> {
  openSession(origin: Origin, outlet: Outlet): EngineSession;
}

export interface Transport {
  readonly door: Engine;
  readonly clock: Clock;
  readonly sessions: SessionTable;
  readonly streams: OpenStreams;
  /** How long a call waits for a client whose resumable stream was cut. */
  readonly resumeGraceMs: number;
  readonly isClosing: boolean;
  /** Of sessions, in a cluster: they say which node has what they stand for. */
  readonly ids?: OwnedIds | undefined;
  refuseFull(response: ServerResponse, id: RequestId | null, what: "sessions" | "streams", reached: QuotaReached): void;
  refuseClosing(response: ServerResponse, id: RequestId | null): void;
}
