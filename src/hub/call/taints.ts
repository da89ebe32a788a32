/**
 * Content that anyone may have written, and who shares the knowledge of having read it: sessions of one conversation or caller, at this hub and at others on the
 * same store, now and after a restart; and the memory-like servers into which such a session has written.
 */
import type { Clock } from "../../base/clock.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Session, SessionOptions } from "../../sessions/session.ts";
import { type Clearance, type ClearedBy, parseOrigin, type TaintOrigin, TaintScope } from "../../sessions/taint.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import { ANY_SUBJECT } from "../../store/outbox.ts";
import type { Store, StoredTaint } from "../../store/store.ts";

export const CONVERSATION = "conversation ";
export const CALLER = "caller ";
const MEMORY = "memory ";

/** Above this, scopes that no session has are forgotten where there is no store. */
const MAX_UNUSED = 1000;

interface TaintsOptions {
  readonly clock: Clock;
  /** Those that are open at this hub. */
  readonly sessions: () => readonly Session[];
  readonly store: Pick<Store, "taints" | "follow"> | undefined;
  readonly warn: (message: string) => void;
}

/** A memory-like server, and the origins of what the sessions had read that wrote into it. */
export interface TaintedMemory {
  readonly server: string;
  readonly origins: readonly TaintOrigin[];
}

/** The subject of a clearance: all that a session and those of its conversation have read, or the notes of a server. */
export type TaintChoice = { readonly session: string } | { readonly memory: string };

interface SharedScope {
  readonly scope: TaintScope;
  readonly sessions: Set<Session>;
}

export class Taints {
  readonly #options: TaintsOptions;
  readonly #scopes = new Map<string, SharedScope>();
  /** Of each memory-like server; the scope has the servers whose content may be in it. */
  readonly #memories = new Map<string, TaintScope>();
  readonly #stopFollowing: () => void;
  /** Set until the marks of memory-like servers are read. */
  loading: Promise<void> | undefined;
  /** Where it is recorded who cleared what; set as soon as there is one. */
  audit: Pick<AuditLog, "event"> | undefined;
  #closing = false;
  #hasWarned = false;

  constructor(options: TaintsOptions) {
    this.#options = options;
    const { store } = options;
    if (store !== undefined) this.loading = this.#begin(store.taints).finally(() => (this.loading = undefined));
    this.#stopFollowing =
      store?.follow(({ topic, subject }) => {
        if (topic === "taints") void this.#renew(subject);
      }) ?? (() => {});
  }

  /** Gives a new session what others of its conversation or caller know. */
  attach(session: Session, { parent, conversation, sharedKey }: SessionOptions): void {
    if (parent !== undefined) {
      parent.taintScope.isShared = true;
      return session.shareTaint(parent.taintScope);
    }
    if (conversation !== undefined) return this.#share(session, conversationKey(session, conversation));
    if (sharedKey !== undefined) return this.#share(session, CALLER + sharedKey);
    session.shareTaint(new TaintScope(undefined, this.#listener));
  }

  /** The session goes on with a conversation; one that shares its taint with others already only learns what was read in it. */
  join(session: Session, conversation: string): void {
    const key = conversationKey(session, conversation);
    if (session.taintScope.key === key) return;
    if (!session.taintScope.isShared) return this.#share(session, key);
    const { taintScope } = session;
    taintScope.loading = this.#load(taintScope, key);
  }

  /** The origins of what may be in a memory-like server. */
  kept(server: string): readonly TaintOrigin[] {
    return this.#memories.get(server)?.taint?.origins ?? [];
  }

  /** A session that has read this writes into a memory-like server. Undefined if nothing is new. */
  keep(server: string, origins: readonly TaintOrigin[]): Promise<void> | undefined {
    const scope = this.#memory(server);
    const telling = origins.map((origin) => scope.add(origin)).filter((told) => told !== undefined);
    return telling.length === 0 ? undefined : Promise.all(telling).then(() => {});
  }

  memories(): TaintedMemory[] {
    return [...this.#memories].flatMap(([server, { taint }]) =>
      taint === null ? [] : [{ server, origins: taint.origins }],
    );
  }

  /** "I have read it": only what is read from now on counts. Rejects with `not_found` if there is nothing to clear. */
  async clear(choice: TaintChoice, by: ClearedBy = {}): Promise<void> {
    const { sessions, clock } = this.#options;
    if ("memory" in choice) {
      const scope = this.#memories.get(choice.memory);
      if (scope === undefined || scope.taint === null) {
        throw new ToolcribError("not_found", `Nothing from strangers is known to be in "${choice.memory}".`);
      }
      await scope.clear(clock.now(), by);
      return;
    }
    const session = sessions().find(({ id }) => id === choice.session);
    if (session === undefined) {
      throw new ToolcribError("not_found", `No session ${choice.session} is open at this hub.`);
    }
    if (session.taint === null) {
      throw new ToolcribError("not_found", `The session ${choice.session} has read nothing from strangers.`);
    }
    await session.clearTaint(by, clock.now());
  }

  /** From now on sessions end because the hub does: what they know is kept for the next one. */
  close(): void {
    this.#closing = true;
    this.#stopFollowing();
  }

  #share(session: Session, key: string): void {
    const shared = this.#shared(key);
    shared.sessions.add(session);
    session.shareTaint(shared.scope);
    session.closing.addEventListener("abort", () => this.#detach(session, key, shared), { once: true });
  }

  #shared(key: string): SharedScope {
    const known = this.#scopes.get(key);
    if (known !== undefined) return known;
    const scope = new TaintScope(key, this.#listener);
    scope.isShared = true;
    scope.loading = this.#load(scope, key);
    const shared = { scope, sessions: new Set<Session>() };
    this.#scopes.set(key, shared);
    if (this.#options.store === undefined && this.#scopes.size > MAX_UNUSED) this.#forgetUnused();
    return shared;
  }

  #memory(server: string): TaintScope {
    const known = this.#memories.get(server);
    if (known !== undefined) return known;
    const scope = new TaintScope(MEMORY + server, this.#listener);
    this.#memories.set(server, scope);
    return scope;
  }

  /** Without a store, a conversation that comes back finds what was read in it here. */
  #detach(session: Session, key: string, { scope, sessions }: SharedScope): void {
    sessions.delete(session);
    if (sessions.size > 0 || this.#closing) return;
    const ends = key.startsWith(CALLER);
    if (ends || this.#options.store !== undefined) this.#scopes.delete(key);
    if (ends && scope.taint !== null) void this.#options.store?.taints.remove(key).catch(this.#failed);
  }

  #forgetUnused(): void {
    for (const [key, { sessions }] of this.#scopes) {
      if (sessions.size > 0) continue;
      this.#scopes.delete(key);
      return;
    }
  }

  async #begin(stored: Store["taints"]): Promise<void> {
    try {
      for (const row of await stored.list(MEMORY)) apply(row, this.#memory(row.key.slice(MEMORY.length)));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Undefined without a store: there is nothing to wait for. Never rejects. */
  #load(scope: TaintScope, key: string): Promise<void> | undefined {
    const loading = this.#options.store?.taints
      .get(key)
      .then((row) => row && apply(row, scope), this.#failed)
      .then(() => {
        if (scope.loading === loading) scope.loading = undefined;
      });
    return loading;
  }

  /** Another process changed it. */
  async #renew(key: string): Promise<void> {
    if (key === ANY_SUBJECT) {
      const known = [...this.#scopes.keys(), ...Array.from(this.#memories.keys(), (server) => MEMORY + server)];
      return void (await Promise.all(known.map((each) => this.#renew(each))));
    }
    const scope = key.startsWith(MEMORY) ? this.#memory(key.slice(MEMORY.length)) : this.#scopes.get(key)?.scope;
    if (scope !== undefined) await this.#load(scope, key);
  }

  readonly #listener = async ({ key, taint, clearedAt }: TaintScope, cleared?: Clearance): Promise<void> => {
    const { store } = this.#options;
    if (cleared !== undefined) {
      const { origins, ...by } = cleared;
      const memory = key?.startsWith(MEMORY) === true ? { memory: key.slice(MEMORY.length) } : {};
      const details = { ...memory, servers: origins.map(({ server }) => server) };
      this.audit?.event({ event: "taint.cleared", ...by, details });
    }
    if (store === undefined || key === undefined) return;
    try {
      await store.taints.change(key, (before) => {
        // What another process has added meanwhile stays.
        const both = new TaintScope();
        if (before !== undefined) apply(before, both);
        both.clearUntil(clearedAt);
        both.merge(taint?.origins ?? []);
        return { clearedAt: both.clearedAt, origins: (both.taint?.origins ?? []).map(stored) };
      });
    } catch (error) {
      this.#failed(error);
    }
  };

  /** Once: a store that fails does so again and again. */
  readonly #failed = (error: unknown): void => {
    if (this.#hasWarned || this.#closing) return;
    this.#hasWarned = true;
    const { message } = asToolcribError(error);
    this.#options.warn(`What sessions have read cannot be stored, and will not be known after a restart: ${message}`);
  };
}

/** The conversation ids of one user say nothing about those of another. */
function conversationKey({ user }: Session, conversation: string): string {
  return CONVERSATION + JSON.stringify([user ?? null, conversation]);
}

function apply({ origins, clearedAt }: StoredTaint, scope: TaintScope): void {
  scope.clearUntil(clearedAt);
  scope.merge(origins.map(parseOrigin).filter((origin) => origin !== undefined));
}

function stored({ ...origin }: TaintOrigin): JsonObject {
  return origin;
}
