/** Sessions of other nodes, as the node that runs a server knows them. */
import type { Cluster } from "../../cluster/cluster.ts";
import type { SessionContext } from "../../model/source.ts";
import { type ForwardedSession, readBody, writeBody } from "./forwarded-calls.ts";
import type { Replica } from "./replica.ts";

export class RemoteSessions {
  readonly #hubSession: string | undefined;
  readonly #ids = new Map<string, Set<string>>();

  /** @param hubSession Used for the own sessions of all hubs, where each user has a connection. */
  constructor(hubSession: string | undefined) {
    this.#hubSession = hubSession;
  }

  /** The session as it is known here. */
  see(sent: ForwardedSession, node: string): SessionContext {
    const { isHub, ...session } = sent;
    const isShared = isHub && this.#hubSession !== undefined;
    const id = isShared ? this.#hubSession : remoteSessionId(sent.id, node);
    return { ...session, id, client: { key: id, capabilities: {} } };
  }

  /** The same for one that something is kept of, until it ends. */
  take(sent: ForwardedSession, node: string): SessionContext {
    const session = this.see(sent, node);
    let ids = this.#ids.get(node);
    if (ids === undefined) this.#ids.set(node, (ids = new Set()));
    if (session.id !== this.#hubSession) ids.add(session.id);
    return session;
  }

  /** Returns the id by which it is known here. */
  drop(sessionId: string, node: string): string {
    const id = remoteSessionId(sessionId, node);
    this.#ids.get(node)?.delete(id);
    return id;
  }

  /** Ids as they are called at their nodes. */
  byNode(): Map<string, string[]> {
    const known = [...this.#ids].filter(([, ids]) => ids.size > 0);
    return new Map(known.map(([node, ids]) => [node, [...ids].map((id) => localSessionId(id, node))]));
  }

  /** Of a node that has gone. */
  dropAll(node: string): string[] {
    const ids = [...(this.#ids.get(node) ?? [])];
    this.#ids.delete(node);
    return ids;
  }
}

function remoteSessionId(sessionId: string, node: string): string {
  return `${node}/${sessionId}`;
}

/** The id of a session at its own node; that of another node stays as it is and matches no session here. */
export function localSessionId(id: string, node: string): string {
  return id.startsWith(`${node}/`) ? id.slice(node.length + 1) : id;
}

/** The sessions of this node that a server keeps something of, wherever it runs: a replica that takes over is notified of them. */
export class AnnouncedSessions {
  /** Where each user or session has a connection: all that are open. */
  readonly #open = new Map<string, SessionContext>();
  /** The server is notified when they end. */
  readonly #known = new Set<string>();
  /** Of the programs that know of them. */
  #incarnations = new Set<string>();

  users(): string[] {
    return [...new Set([...this.#open.values()].flatMap(({ user }) => user ?? []))];
  }

  /** Whether a server may still keep something of it. */
  knows(sessionId: string): boolean {
    return this.#known.has(sessionId);
  }

  start(session: SessionContext, replicas: readonly Replica[]): void {
    this.#open.set(session.id, session);
    this.#known.add(session.id);
    for (const replica of replicas) replica.startSession(session);
  }

  /** The server keeps something of it from now on. */
  note(sessionId: string): void {
    this.#known.add(sessionId);
  }

  end(sessionId: string, replicas: readonly Replica[]): void {
    this.#open.delete(sessionId);
    if (!this.#known.delete(sessionId)) return;
    for (const replica of replicas) replica.endSession(sessionId);
  }

  /** Their subscriptions are at another replica from now on. */
  leave(replica: Replica): void {
    for (const sessionId of this.#known) replica.endSession(sessionId);
  }

  /** This node was away: those that run servers may have counted it as gone, and its sessions with it. */
  announceAgain(): void {
    this.#incarnations.clear();
  }

  /** @param replicas All that there are now. */
  announce(replicas: readonly Replica[]): void {
    for (const replica of replicas) {
      if (this.#incarnations.has(replica.incarnation)) continue;
      for (const session of this.#open.values()) replica.startSession(session);
    }
    this.#incarnations = new Set(replicas.map(({ incarnation }) => incarnation));
  }
}

interface LivenessQuestion {
  /** Of the server. */
  readonly word: string;
  readonly ids: readonly string[];
}

/** Whether a session lives, and the server keeps something of it. */
type IsSessionKnown = (sessionId: string) => boolean;

/**
 * Which sessions of a node still live, asked by those that keep processes for them: news of an end may get lost. It is asked
 * and not announced, because an answer cannot be overtaken by a session that has just begun.
 */
export class SessionLiveness {
  readonly #known = new Map<string, Set<IsSessionKnown>>();
  readonly #stop: () => void;

  constructor(cluster: Cluster) {
    this.#stop = cluster.serve(sessionsAddress(cluster.node.id), async ({ body }) => {
      const { word, ids } = readBody<LivenessQuestion>(body);
      const known = [...(this.#known.get(word) ?? [])];
      const ended = ids.filter((id) => !known.some((knows) => knows(id)));
      return { head: { ok: true }, body: writeBody(ended) };
    });
  }

  /** The returned function takes it out. */
  add(token: string, knows: IsSessionKnown): () => void {
    const all = this.#known.get(token) ?? new Set();
    this.#known.set(token, all.add(knows));
    return () => {
      all.delete(knows);
      if (all.size === 0 && this.#known.get(token) === all) this.#known.delete(token);
    };
  }

  close(): void {
    this.#stop();
  }
}

/** Those that have ended; none where the node does not answer. */
export async function endedSessions(cluster: Cluster, node: string, question: LivenessQuestion): Promise<string[]> {
  const asked = cluster.call(sessionsAddress(node), { head: { ok: true }, body: writeBody(question) });
  return asked.then(
    ({ body }) => readBody<string[]>(body),
    () => [],
  );
}

function sessionsAddress(node: string): string {
  return `node.${node}.sessions`;
}
