import type { Caller } from "../../model/caller.ts";

/** The part of the catalog that a client asked for. Doors share one object for each distinct part. */
export interface ViewScope {
  readonly role?: string;
  readonly servers?: readonly string[];
  readonly tags?: readonly string[];
}

/** Who asks, and for which part. */
export interface Origin {
  readonly caller: Caller;
  readonly scope: ViewScope;
}

const keys = new WeakMap<ViewScope, string>();

/** Equal for equal parts. */
export function scopeKey(scope: ViewScope): string {
  let key = keys.get(scope);
  if (key === undefined) {
    key = JSON.stringify([scope.role ?? null, scope.servers ?? null, scope.tags ?? null]);
    keys.set(scope, key);
  }
  return key;
}
