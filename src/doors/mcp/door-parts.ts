import type { Hub } from "../../hub/hub.ts";
import type { SessionOptions } from "../../sessions/session.ts";
import type { CallCount } from "./call-count.ts";
import type { Listeners } from "./listeners.ts";
import type { LogLevel } from "./log-levels.ts";
import type { Origin } from "./origin.ts";

/** What requests and sessions use of the door that they came through. */
export interface DoorParts {
  readonly hub: Hub;
  readonly calls: CallCount;
  readonly listeners: Listeners;
  /** Resolves when servers have connected at the start, or soon: clients wait only a little for what needs them. */
  soonSettled(): Promise<void>;
  /** The hub's session for this origin, to which an era adds what it knows of the client. */
  sessionOptions(origin: Origin): SessionOptions;
  /** A client asked for log messages of another level, or went away. */
  levelsChanged(): void;
  /** A client without a session asked for log messages of this level with one of its requests. */
  wantsLevel(level: LogLevel): void;
  /** A client that has roots came or went. */
  clientsChanged(): void;
}
