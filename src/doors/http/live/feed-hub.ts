/** What the live doors need of a hub. */
import type { LoadedConfig } from "../../../config/load-config.ts";
import type { PinInfo } from "../../../contract/catalog.ts";
import type { OutputOf } from "../../../contract/operations.ts";
import type { HubEvents } from "../../../hub/events.ts";
import type { View } from "../../../hub/view.ts";
import type { ServerInfo } from "../../../model/server-state.ts";
import type { Session, SessionOptions } from "../../../sessions/session.ts";
import type { StartRecord } from "../../../telemetry/call-record.ts";

type Known = Pick<HubEvents, "server" | "catalog" | "visibility" | "reload" | "warning" | "ask" | "answer" | "call">;

export interface FeedEvents extends Known {
  "call-start": StartRecord;
  session: { readonly session: Session; readonly open: boolean };
  "skill-import": {
    readonly path: string;
    /** Whether one skill was named, and not a folder of them. */
    readonly single: boolean;
    readonly result: OutputOf<"importSkills">;
  };
  "skill-remove": { readonly skillId: string; readonly name: string };
  skills: object;
  pins: object;
}

export interface FeedHub {
  /** Of the program that made the hub: it sees what anybody may see. */
  readonly session: Session;
  readonly config: LoadedConfig;
  readonly pins?: { stateOf(source: string, tool: string): PinInfo["state"] };
  on<Name extends keyof FeedEvents>(name: Name, listener: (event: FeedEvents[Name]) => void): () => void;
  servers(): readonly ServerInfo[];
  view(session: Session): View;
}

/** What opens a session for each socket, and knows those that are open. */
export interface SessionHub {
  openSession(options: SessionOptions): Session;
  sessions(): readonly Session[];
}
