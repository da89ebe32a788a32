/**
 * `read`: lists, resources, prompts. `call`: tools. `approve`: answers for calls of others that wait. `admin`: what the
 * operator does, as the owner.
 */
export const SCOPES = ["read", "call", "approve", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** The authenticated caller of a request. */
export interface Caller {
  /** Equal for two requests exactly if they come from the same identity. Only that identity may continue what it started. */
  readonly key: string;
  readonly user?: string;
  /** The role that the identity is bound to; it can choose no other. */
  readonly role?: string;
  /** True for the user who runs the hub. */
  readonly owner: boolean;
  readonly scopes: ReadonlySet<Scope>;
  /** When the credentials end, in milliseconds of the clock; absent for those that do not. */
  readonly expiresAt?: number;
  /** Logged in on the hub's own page. */
  readonly page?: true;
}

/**
 * Must be equal for one request to continue what another one started. A token can lose rights, and get another user or
 * role, while its key stays; what was begun with the old ones ends there.
 */
export function identityOf(caller: Caller): string {
  let identity = identities.get(caller);
  if (identity === undefined) {
    const { key, user, role, owner, scopes } = caller;
    identity = JSON.stringify([key, user ?? null, role ?? null, owner, SCOPES.filter((scope) => scopes.has(scope))]);
    identities.set(caller, identity);
  }
  return identity;
}

/** As audit records have it, without the colon: `token:` and what follows would be masked for a secret, which it is not. */
export function auditKey({ key }: Caller): string {
  return key.replace(":", " ");
}

/** Callers of known tokens are the same objects from request to request. */
const identities = new WeakMap<Caller, string>();
