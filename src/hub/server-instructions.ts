/** The servers' own advice on how to use them. */
import type { Session } from "../sessions/session.ts";
import type { ServerConnection } from "../upstream/server-connection.ts";
import type { View } from "./view.ts";

export interface ServerInstructions {
  /** The id of the server. */
  readonly server: string;
  /** Its name for people. */
  readonly name: string;
  readonly text: string;
}

interface Surroundings {
  readonly view: View;
  readonly connections: readonly ServerConnection[];
  /** Whether it is the session of the program that made the hub. */
  readonly isOwn: boolean;
  /** For a text that reads like an attack. */
  readonly withholds: (server: string, text: string) => boolean;
}

/** Of the servers of which the session sees anything, in their order. */
export function serverInstructions(
  session: Session,
  { view, connections, isOwn, withholds }: Surroundings,
): ServerInstructions[] {
  const { tools, resources, templates, prompts } = view;
  const seen = new Set([...tools, ...resources, ...templates, ...prompts].map(({ origin }) => origin.source));
  return connections.flatMap((connection) => {
    const { id, spec } = connection;
    // Where each user has a connection, what was said to the hub's owner is not for a session without a user.
    const isTheirs = spec.isolation !== "user" || session.user !== undefined || isOwn;
    const text = seen.has(id) && isTheirs ? connection.instructions(session.user, session.id) : null;
    if (text === null || text === "" || withholds(id, text)) return [];
    return [{ server: id, name: spec.name ?? id, text }];
  });
}
