import type { Hub } from "../../hub/hub.ts";
import type { Session } from "../../sessions/session.ts";

/** Names of the hub's servers that connect still, by their id. What a session brings itself it tells of by itself. */
export function lateServers(hub: Hub, session: Session): ReadonlyMap<string, string> {
  // What servers there are is told to whoever sees all of them.
  if (!session.owner || session.role !== undefined) return new Map();
  return new Map(hub.servers().flatMap(({ id, name, state }) => (state === "connecting" ? [[id, name]] : [])));
}
