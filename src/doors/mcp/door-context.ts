import type { Hub } from "../../hub/hub.ts";
import type { SessionOptions } from "../../sessions/session.ts";
import type { ChangeListeners } from "./change-listeners.ts";
import type { RequestOrigin } from "./view-scope.ts";

/** What requests and sessions use of the door that they came through. */
export interface DoorContext {
  readonly hub: Hub;
  readonly calls: CallCount;
  readonly listeners: ChangeListeners;
  /** Resolves when servers have connected at the start, or soon: clients wait only a little for what needs them. */
  waitUntilSettled(): Promise<void>;
  /** The hub's session for this origin, to which an era adds what it knows of the client. */
  sessionOptions(origin: RequestOrigin): SessionOptions;
  /** A client asked for log messages of another level, or went away. */
  levelsChanged(): void;
  /** A client without a session asked for log messages of this level with one of its requests. */
  wantsLevel(level: LogLevel): void;
  /** A client that has roots came or went. */
  clientsChanged(): void;
}

/** How many calls of a door's clients are under way, for a shutdown that lets them finish. */
export class CallCount {
  #size = 0;
  #waiting: (() => void)[] = [];

  get size(): number {
    return this.#size;
  }

  begin(): void {
    this.#size += 1;
  }

  end(): void {
    this.#size -= 1;
    if (this.#size > 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  whenIdle(): Promise<void> {
    return this.#size === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** MCP's log levels, from the most to the least talkative. */
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;
export type LogLevel = (typeof LEVELS)[number];

/** What servers are asked for while no client has said otherwise. */
export const DEFAULT_LEVEL: LogLevel = "info";

export function parseLogLevel(value: unknown): LogLevel | undefined {
  return LEVELS.find((level) => level === value);
}

/** A level that nobody knows is let through: better a message too many than one lost. */
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
