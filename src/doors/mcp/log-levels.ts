/** MCP's log levels, from the most to the least talkative. */
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;
export type LogLevel = (typeof LEVELS)[number];

/** What servers are asked for while no client has said otherwise. */
export const DEFAULT_LEVEL: LogLevel = "info";

export function asLogLevel(value: unknown): LogLevel | undefined {
  return LEVELS.find((level) => level === value);
}

/** A level that nobody knows is let through: better a message too many than one lost. */
export function isAtLeastLevel(level: unknown, least: LogLevel): boolean {
  const known = asLogLevel(level);
  return known === undefined || LEVELS.indexOf(known) >= LEVELS.indexOf(least);
}

export function mostTalkative(levels: Iterable<LogLevel>): LogLevel | undefined {
  let lowest: LogLevel | undefined;
  for (const level of levels) {
    if (lowest === undefined || LEVELS.indexOf(level) < LEVELS.indexOf(lowest)) lowest = level;
  }
  return lowest;
}
