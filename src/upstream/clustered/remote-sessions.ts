/** Sessions of other nodes, as the node that runs a server knows them. */
import type { SessionContext } from "../../model/session.ts";
import type { SentSession } from "./messages.ts";

export class RemoteSessions {
  readonly #hubSession: string | undefined;
  readonly #ids = new Map<string, Set<string>>();

  /** @param hubSession What the own sessions of all hubs stand for, where the user who runs them has a connection. */
  constructor(hubSession: string | undefined) {
    this.#hubSession = hubSession;
  }

  /** What it is called here. */
  see(sent: SentSession, node: string): SessionContext {
    const { isHub, ...session } = sent;
    const isShared = isHub && this.#hubSession !== undefined;
    const id = isShared ? this.#hubSession : idOf(sent.id, node);
    return { ...session, id, client: { key: id, capabilities: {} } };
  }

  /** The same for one that something is kept of, until it ends. */
  take(sent: SentSession, node: string): SessionContext {
    const session = this.see(sent, node);
    let ids = this.#ids.get(node);
    if (ids === undefined) this.#ids.set(node, (ids = new Set()));
    if (session.id !== this.#hubSession) ids.add(session.id);
    return session;
  }

  /** What it is called here. */
  drop(sessionId: string, node: string): string {
    const id = idOf(sessionId, node);
    this.#ids.get(node)?.delete(id);
    return id;
  }

  /** Ids as they are called at their nodes. */
  byNode(): Map<string, string[]> {
    const known = [...this.#ids].filter(([, ids]) => ids.size > 0);
    return new Map(known.map(([node, ids]) => [node, [...ids].map((id) => ownSessionId(id, node))]));
  }

  /** Of a node that has gone. */
  dropAll(node: string): string[] {
    const ids = [...(this.#ids.get(node) ?? [])];
    this.#ids.delete(node);
    return ids;
  }
}

function idOf(sessionId: string, node: string): string {
  return `${node}/${sessionId}`;
}

/** What a session is called at its own node; that of another node stays as it is, and means nobody here. */
export function ownSessionId(id: string, node: string): string {
  return id.startsWith(`${node}/`) ? id.slice(node.length + 1) : id;
}
