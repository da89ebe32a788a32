import type { Scope } from "../../model/caller.ts";

/** A scope gives those below it too: who may call a tool has to find it, and an admin is the owner. */
const IMPLIED: Readonly<Record<Scope, readonly Scope[]>> = {
  read: ["read"],
  call: ["read", "call"],
  admin: ["read", "call", "admin"],
};

export const ALL_SCOPES: ReadonlySet<Scope> = new Set(IMPLIED.admin);
export const LOCAL_SCOPES: ReadonlySet<Scope> = new Set(IMPLIED.call);

export function withImplied(scopes: Iterable<Scope>): ReadonlySet<Scope> {
  const all = new Set<Scope>();
  for (const scope of scopes) for (const implied of IMPLIED[scope]) all.add(implied);
  return all;
}
