/**
 * The modern era has no sessions, but limits, grants, taint and kept results need one: requests of one caller for one part
 * of the catalog share a hub session, which ends when it has not been used for a while.
 */
import { type Caller, identityOf } from "../../model/caller.ts";
import type { Clock } from "../../base/clock.ts";
import type { Session } from "../../sessions/session.ts";
import { type RequestOrigin, scopeKey, type ViewScope } from "./view-scope.ts";

const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
/** Above these limits unused sessions end, the longest unused first. */
const MAX_SESSIONS = 10_000;
const MAX_SESSIONS_PER_CALLER = 100;

interface Principal {
  readonly key: string;
  readonly caller: string;
  readonly session: Session;
  usedAt: number;
  /** Requests that rely on it now. */
  inUse: number;
}

export class PrincipalSessions {
  readonly #clock: Clock;
  readonly #open: (origin: RequestOrigin, key: string) => Session;
  /** In the order of their last use. */
  readonly #principals = new Map<string, Principal>();
  /** Where it is already, it is not put again: V8 allocates a table for a map every few times. */
  #newest: Principal | undefined;
  /** The keys of each caller's, in the same order. */
  readonly #callers = new Map<string, Set<string>>();
  readonly #scopes: ScopeNormalizer;
  #stopSweep: (() => void) | undefined;

  /**
   * @param open Gets a key that is the same for the same caller and scope at every node of a cluster.
   * @param scopes Makes equivalent scopes equal.
   */
  constructor(
    clock: Clock,
    open: (origin: RequestOrigin, key: string) => Session,
    scopes: ScopeNormalizer = UNCHANGED_SCOPES,
  ) {
    this.#clock = clock;
    this.#open = open;
    this.#scopes = scopes;
  }

  get size(): number {
    return this.#principals.size;
  }

  of(origin: RequestOrigin): Session {
    return this.#use(origin).session;
  }

  /** The session, held open until `release` is called. */
  hold(origin: RequestOrigin): { readonly session: Session; release(): void } {
    const principal = this.#use(origin);
    principal.inUse += 1;
    return {
      session: principal.session,
      release: () => {
        principal.inUse -= 1;
        if (this.#principals.get(principal.key) === principal) this.#touch(principal);
      },
    };
  }

  /** The caller has left, and does not come back under this key. */
  endAllOf({ key: caller }: Caller): void {
    for (const key of [...(this.#callers.get(caller) ?? [])]) {
      const principal = this.#principals.get(key);
      if (principal !== undefined) this.#end(principal);
    }
  }

  close(): void {
    this.#stopSweep?.();
    for (const { session } of this.#principals.values()) session.close();
    this.#principals.clear();
    this.#callers.clear();
  }

  #use(origin: RequestOrigin): Principal {
    const { caller } = origin;
    const scope = this.#scopes.of(origin.scope);
    const key = keyOf(caller, scope);
    let principal = this.#principals.get(key);
    if (principal === undefined || principal.session.closed) {
      if (principal === undefined) this.#makeRoom(caller.key);
      principal = { key, caller: caller.key, session: this.#open({ ...origin, scope }, key), usedAt: 0, inUse: 0 };
    }
    this.#touch(principal);
    this.#stopSweep ??= this.#clock.after(SWEEP_MS, () => this.#sweepLater());
    return principal;
  }

  #touch(principal: Principal): void {
    const { key, caller } = principal;
    principal.usedAt = this.#clock.now();
    if (principal === this.#newest) return;
    this.#newest = principal;
    this.#principals.delete(key);
    this.#principals.set(key, principal);
    const keys = this.#callers.get(caller);
    keys?.delete(key);
    if (keys === undefined) this.#callers.set(caller, new Set([key]));
    else keys.add(key);
  }

  #makeRoom(caller: string): void {
    const own = this.#callers.get(caller);
    if (own !== undefined && own.size >= MAX_SESSIONS_PER_CALLER) this.#endOneOf(own);
    else if (this.#principals.size >= MAX_SESSIONS) this.#endOneOf(this.#principals.keys());
  }

  #endOneOf(keys: Iterable<string>): void {
    for (const key of keys) {
      const principal = this.#principals.get(key);
      if (principal === undefined || principal.inUse > 0) continue;
      this.#end(principal);
      return;
    }
  }

  #end({ key, caller, session }: Principal): void {
    this.#principals.delete(key);
    const keys = this.#callers.get(caller);
    keys?.delete(key);
    if (keys?.size === 0) this.#callers.delete(caller);
    session.close();
  }

  #sweepLater(): void {
    this.#sweep();
    this.#stopSweep = this.#principals.size === 0 ? undefined : this.#clock.after(SWEEP_MS, () => this.#sweepLater());
  }

  /** Ends sessions that have been idle for long enough. */
  #sweep(): void {
    const before = this.#clock.now() - IDLE_MS;
    for (const principal of this.#principals.values()) {
      if (principal.usedAt > before) return;
      if (principal.inUse === 0) this.#end(principal);
    }
  }
}

interface ScopeNormalizer {
  of(scope: ViewScope): ViewScope;
}

const UNCHANGED_SCOPES: ScopeNormalizer = { of: (scope) => scope };

function keyOf(caller: Caller, scope: ViewScope): string {
  return JSON.stringify([identityOf(caller), caller.role ?? null]) + scopeKey(scope);
}
