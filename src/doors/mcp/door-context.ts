/** The parts of a door that its requests and sessions use, and MCP's log levels. */
import type { InFlight } from "../../base/async.ts";
import type { Hub } from "../../hub/hub.ts";
import type { SessionOptions } from "../../sessions/session.ts";
import type { ChangeListeners } from "./change-listeners.ts";
import type { RequestOrigin } from "./view-scope.ts";

export interface DoorContext {
  readonly hub: Hub;
  /** Calls in progress, for a shutdown that lets them finish. */
  readonly calls: InFlight;
  readonly listeners: ChangeListeners;
  /**
   * Waits for servers that start, for less than a second. False if some are not listed yet.
   * @param client Whose handshake and lists wait no longer than that together.
   */
  listed(client: object): Promise<boolean>;
  /** The options of a hub session for this origin; each era adds what it knows of the client. */
  sessionOptions(origin: RequestOrigin): SessionOptions;
  /** A client asked for another log level, or disconnected. */
  levelsChanged(): void;
  /** A client without a session asked for log messages of this level with one of its requests. */
  wantsLevel(level: LogLevel): void;
  /** A client that has roots connected or disconnected. */
  clientsChanged(): void;
}

/** MCP's log levels, the most verbose first. */
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;
export type LogLevel = (typeof LEVELS)[number];

/** The level that servers are asked for while no client has set one. */
export const DEFAULT_LEVEL: LogLevel = "info";

export function parseLogLevel(value: unknown): LogLevel | undefined {
  return value === undefined ? undefined : LEVELS.find((level) => level === value);
}

/** An unknown level passes: better one message too many than one lost. */
export function isAtLeastLevel(level: unknown, least: LogLevel): boolean {
  const known = parseLogLevel(level);
  return known === undefined || LEVELS.indexOf(known) >= LEVELS.indexOf(least);
}

export function lowestLevel(levels: Iterable<LogLevel>): LogLevel | undefined {
  let lowest: LogLevel | undefined;
  for (const level of levels) {
    if (lowest === undefined || LEVELS.indexOf(level) < LEVELS.indexOf(lowest)) lowest = level;
  }
  return lowest;
}
