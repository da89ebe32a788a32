import { ToolcribError } from "../../../model/errors.ts";
import type { EventName } from "../../../contract/socket.ts";

export type EventFilter = (type: EventName) => boolean;

/** That something was missed concerns whoever listens to anything. */
const ALWAYS: EventName = "events.lost";

export const ALL_EVENTS: EventFilter = () => true;

/** Names, and `mcp.*` or `mcp.server.*` for a group; all if none is named. */
export function eventFilter(names: readonly string[] | undefined): EventFilter {
  if (names === undefined || names.includes("*")) return ALL_EVENTS;
  for (const name of names) {
    if (/^[a-z]+(?:\.[a-z]+)*(?:\.\*)?$/i.test(name)) continue;
    throw new ToolcribError("invalid_arguments", "That is no name of events.", {
      hint: "Such as mcp.server.connected, or mcp.* for a group.",
    });
  }
  const exact = new Set(names);
  const groups = names.filter((name) => name.endsWith(".*")).map((name) => name.slice(0, -1));
  return (type) => type === ALWAYS || exact.has(type) || groups.some((group) => type.startsWith(group));
}

/** As in an address: `events=mcp.*,call.finished`, once or several times. */
export function filterOfQuery(query: URLSearchParams): EventFilter {
  const given = query.getAll("events").flatMap((text) => text.split(","));
  return eventFilter(given.length === 0 ? undefined : given.map((name) => name.trim()));
}
