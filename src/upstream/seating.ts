/** Who has a connection of their own: each user (`isolation: "user"`), or each session (`"session"`). */
import { ToolcribError } from "../model/errors.ts";
import type { SessionContext } from "../model/session.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import type { SeatTerms } from "./seat.ts";

/** Marks what comes over a connection, so that nobody hears what is meant for others. */
export type Mark = { readonly user: string | null } | { readonly session: string };

export interface Holder {
  /** Sessions with the same key share the seat. */
  readonly key: string;
  /** For warnings. */
  readonly called: string;
  readonly mark: Mark;
  /** What its connection has in the place of what all have. */
  readonly deps: Partial<ConnectionDeps>;
}

export interface Seating {
  readonly by: "user" | "session";
  readonly terms: SeatTerms;
  /** Of what comes over the connection of the hub's own session. */
  ownMark(hubSession: SessionContext): Mark;
  /** Undefined for a session that has no seat. */
  holderOf(session: SessionContext): Holder | undefined;
  /** Why a session without a seat cannot use the server. */
  refusal(server: string): ToolcribError;
}

/** A user's next session often follows the last one at once. */
const PER_USER: SeatTerms = { idleMs: 30 * 60_000, graceMs: 60_000 };
const PER_SESSION: SeatTerms = { idleMs: undefined, graceMs: 0 };

export const byUser: Seating = {
  by: "user",
  terms: PER_USER,
  ownMark: () => ({ user: null }),
  holderOf: ({ user }) => (user === undefined || user === "" ? undefined : userHolder(user)),
  refusal: (server) =>
    new ToolcribError(
      "unauthorized",
      `Server ${JSON.stringify(server)} is used with each user's own account, and this session has no user.`,
      { hint: "Open the session with `user`.", details: { server, sent: false } },
    ),
};

export const bySession: Seating = {
  by: "session",
  terms: PER_SESSION,
  ownMark: ({ id }) => ({ session: id }),
  holderOf: (session) => ({
    key: session.id,
    called: "a session",
    mark: { session: session.id },
    // There is one client only that the server can mean, whether a call is in flight or not.
    deps: { hubSession: session, session: session.id, ...(session.user ? { secretsUser: session.user } : {}) },
  }),
  refusal: (server) => new ToolcribError("internal", `Server ${JSON.stringify(server)} has no seat for the session.`),
};

export function userHolder(user: string): Holder {
  // What a server asks on its own while a user's connection is up is no business of the hub owner's session.
  const id = `user:${user}`;
  const hubSession: SessionContext = { id, door: "hub", owner: false, user, client: { key: id, capabilities: {} } };
  return { key: user, called: `the user ${user}`, mark: { user }, deps: { hubSession, user } };
}
