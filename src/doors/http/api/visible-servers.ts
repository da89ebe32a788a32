/** Which servers a session may know of, connected or not: those whose capabilities it could see. */
import { nearMatches } from "../../../catalog/near-matches.ts";
import type { LoadedConfig } from "../../../config/load-config.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { ServerInfo } from "../../../model/server-state.ts";
import type { Session } from "../../../sessions/session.ts";

interface ServersOfHub {
  readonly config: LoadedConfig;
  servers(): ServerInfo[];
}

type Who = Pick<Session, "owner"> & { readonly role?: string | undefined };

/** With those that it brought along. */
export function visibleServers(hub: ServersOfHub, session: Session): ServerInfo[] {
  const isVisible = visibleTo(hub.config, session);
  return [...hub.servers().filter(({ id }) => isVisible(id)), ...session.own.servers()];
}

/** Fails with `not_found`, also for one that is there and hidden. */
export function visibleServer(hub: ServersOfHub, session: Session, id: string): ServerInfo {
  const visible = visibleServers(hub, session);
  const found = visible.find((info) => info.id === id);
  if (found !== undefined) return found;
  const near = nearMatches(
    id,
    visible.map((info) => info.id),
  );
  throw new ToolcribError("not_found", `There is no server "${id}".`, {
    hint: near.length === 0 ? "GET /api/v1/mcp/servers lists those there are." : `Did you mean ${near.join(", ")}?`,
  });
}

/** By the same rules that decide on what the servers offer. */
export function visibleTo({ config, servers }: LoadedConfig, { role, owner }: Who): (id: string) => boolean {
  const named = new Map(servers.map((spec) => [spec.id, spec]));
  if (role === undefined) return (id) => owner || named.get(id)?.roles === undefined;
  const rules = config.roles[role];
  const replaced = new Set(servers.flatMap(({ replaces, roles }) => (roles?.includes(role) ? (replaces ?? []) : [])));
  const isKnown = rules !== undefined || servers.some(({ roles }) => roles?.includes(role));
  return (id) => {
    const spec = named.get(id);
    if (!isKnown || replaced.has(id)) return false;
    if (spec?.roles !== undefined && !spec.roles.includes(role)) return false;
    // A role's own server need not stand in its list.
    return rules?.servers === undefined || rules.servers.includes(id) || spec?.replaces !== undefined;
  };
}
