import { type Scope, SCOPES } from "../../model/caller.ts";

/** A scope gives those that it needs too: who may call a tool has to find it, and an admin is the owner. */
const IMPLIED: Readonly<Record<Scope, readonly Scope[]>> = {
  read: ["read"],
  call: ["read", "call"],
  // Nothing else: who answers for others need not see what the servers offer.
  approve: ["approve"],
  admin: SCOPES,
};

export const ALL_SCOPES: ReadonlySet<Scope> = new Set(IMPLIED.admin);
export const LOCAL_SCOPES: ReadonlySet<Scope> = new Set(IMPLIED.call);

export function withImplied(scopes: Iterable<Scope>): ReadonlySet<Scope> {
  const all = new Set<Scope>();
  for (const scope of scopes) for (const implied of IMPLIED[scope]) all.add(implied);
  return all;
}
