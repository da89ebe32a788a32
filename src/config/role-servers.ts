import type { ServerSpec } from "../model/server-spec.ts";

/**
 * Servers that belong to one role, as servers of their own: `github` of the role `reviewer` is `github@reviewer`, seen by
 * that role only, and in its eyes in the place of the hub's `github`.
 */
export function roleServers(byRole: Readonly<Record<string, readonly ServerSpec[]>>): ServerSpec[] {
  return Object.entries(byRole).flatMap(([role, specs]) =>
    specs.map((spec) => ({
      ...spec,
      id: `${spec.id}@${role}`,
      name: spec.name ?? spec.id,
      roles: [role],
      replaces: spec.id,
    })),
  );
}
