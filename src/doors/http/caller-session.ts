/** The hub sessions of callers of REST and of the WebSocket. */
import { type Caller, identityOf } from "../../model/caller.ts";
import type { Session, SessionOptions } from "../../sessions/session.ts";

export interface SessionExtras {
  /** Whether calls that need approval wait for it; without it they are denied. */
  readonly holdsCalls?: boolean | undefined;
}

export interface SessionOpener {
  openSession(options: SessionOptions): Session;
}

export function openCallerSession(
  hub: SessionOpener,
  caller: Caller,
  door: "rest" | "websocket",
  { holdsCalls }: SessionExtras,
  more: Pick<SessionOptions, "role" | "workspaceDir" | "sharedKey"> = {},
): Session {
  const { key, owner, role, user, scopes } = caller;
  const isOperator = scopes.has("admin");
  const session = hub.openSession({
    door,
    owner,
    // Somebody without a token may be a program that was made to call: it changes nothing that lasts, and starts nothing.
    decidesForAll: isOperator,
    mayRunCommands: isOperator,
    role,
    user,
    holdsCalls,
    caller: key,
    ...more,
  });
  identities.set(session, identityOf(caller));
  return session;
}

const identities = new WeakMap<Session, string>();

export function isOwnSession(session: Session, caller: Caller): boolean {
  return identities.get(session) === identityOf(caller);
}

/** An open session that the caller may name. */
export function namedSession(
  hub: { sessions(): readonly Session[] },
  caller: Caller,
  id: string,
  { anyWithAdmin = false }: { readonly anyWithAdmin?: boolean } = {},
): Session | undefined {
  const session = hub.sessions().find((each) => each.id === id);
  if (session === undefined || session.closed) return undefined;
  return isOwnSession(session, caller) || (anyWithAdmin && caller.scopes.has("admin")) ? session : undefined;
}
