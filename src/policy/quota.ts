/**
 * How many sessions, event streams and sockets each caller may have, so that none can take them all. Each
 * node of a cluster counts its own.
 */
import type { Caller } from "../model/caller.ts";
import { ToolcribError } from "../model/errors.ts";
import type { HttpConfig } from "../model/config.ts";

/** On top of the places for everyone, for callers with `admin`: whoever has to look after a full hub gets in. */
const RESERVED_FOR_OPERATORS = 10;
/** With several callers, one may have this fraction of all places. */
const SHARE_DIVISOR = 5;

export interface CallerQuota {
  /** All callers together. */
  readonly total: number;
  /** As many as `total` if absent. */
  readonly perToken?: number | undefined;
  readonly perUser?: number | undefined;
}

/** Which limit is reached. */
export interface QuotaReached {
  readonly of: "hub" | "token" | "user";
  readonly limit: number;
  /** The caller may have all places, and has them: it is their number that limits it. */
  readonly isTotal?: true;
}

/**
 * With only one caller besides the operator there is nothing to share: without `auth` everyone on the machine
 * is that one caller.
 */
export function quotaOf(http: HttpConfig, total: number): CallerQuota {
  const { sessionsPerToken, sessionsPerUser } = http.limits;
  const guests = http.auth?.tokens?.filter(({ scopes }) => !scopes.includes("admin")).length ?? 0;
  const isShared = http.auth?.oauth !== undefined || guests > 1;
  const share = isShared ? Math.max(1, Math.floor(total / SHARE_DIVISOR)) : total;
  return { total, perToken: sessionsPerToken ?? share, perUser: sessionsPerUser ?? share };
}

export class Quota {
  readonly #held = new Map<string, number>();
  #limits: CallerQuota;
  #size = 0;

  constructor(limits: CallerQuota) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** Takes effect for what comes; nothing that is held is taken away. */
  setLimits(limits: CallerQuota): void {
    this.#limits = limits;
  }

  /** Undefined if the caller may take one more. */
  reachedFor(caller: Caller): QuotaReached | undefined {
    const { total, perToken = total, perUser = total } = this.#limits;
    if (caller.scopes.has("admin")) {
      const limit = total + RESERVED_FOR_OPERATORS;
      return this.#size >= limit ? { of: "hub", limit } : undefined;
    }
    const [token, user] = keysOf(caller);
    if (this.#count(token) >= perToken) return reachedBy("token", perToken, total);
    if (user !== undefined && this.#count(user) >= perUser) return reachedBy("user", perUser, total);
    return this.#size >= total ? { of: "hub", limit: total } : undefined;
  }

  /** The returned function releases the place; it may be called twice. Check `reachedFor` first. */
  take(caller: Caller): () => void {
    const keys = keysOf(caller).filter((key) => key !== undefined);
    this.#size += 1;
    for (const key of keys) this.#held.set(key, this.#count(key) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#size -= 1;
      for (const key of keys) {
        const left = this.#count(key) - 1;
        if (left > 0) this.#held.set(key, left);
        else this.#held.delete(key);
      }
    };
  }

  #count(key: string): number {
    return this.#held.get(key) ?? 0;
  }
}

function reachedBy(of: "token" | "user", limit: number, total: number): QuotaReached {
  return limit === total ? { of, limit, isTotal: true } : { of, limit };
}

/** Whether a place that `holder` gives up would help `caller` against the limit that is reached. */
export function makesRoom({ of }: QuotaReached, holder: Caller, caller: Caller): boolean {
  switch (of) {
    case "hub":
      return true;
    case "token":
      return holder.key === caller.key;
    case "user":
      return holder.user === caller.user;
  }
}

/**
 * `rate_limited` where the caller's own quota is used up, `server_unavailable` where the hub is full.
 * @param what In the plural: "sessions".
 */
export function quotaError(what: string, { of, limit, isTotal }: QuotaReached, key: string): ToolcribError {
  const [whose, setting] =
    of === "hub" || isTotal === true
      ? ["", `http.limits.${key}`]
      : of === "token"
        ? [" of this token", "http.limits.sessionsPerToken"]
        : [" of this user", "http.limits.sessionsPerUser"];
  const code = of === "hub" ? "server_unavailable" : "rate_limited";
  return new ToolcribError(code, `Too many ${what}${whose} are open: ${limit} is the limit.`, {
    hint: `Close some, or wait until idle ones are closed. The operator can raise ${setting}.`,
    details: { quota: of, limit },
  });
}

function keysOf({ key, user }: Caller): readonly [token: string, user: string | undefined] {
  return [`token ${key}`, user === undefined ? undefined : `user ${user}`];
}
