/** Which servers and skills a session may know of: those whose capabilities it could see. */
import { nearMatches } from "../../../base/near-matches.ts";
import type { ToolInfo } from "../../../contract/catalog-schemas.ts";
import type { CapabilityOrigin } from "../../../model/capability.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { LoadedConfig } from "../../../model/loaded-config.ts";
import type { ServerSpec } from "../../../model/server-spec.ts";
import type { ServerInfo } from "../../../model/server-state.ts";
import type { Session } from "../../../sessions/session.ts";

interface ServerSource {
  readonly config: LoadedConfig;
  readonly servers: { list(): ServerInfo[] };
}

type Viewer = Pick<Session, "owner"> & { readonly role?: string };

/** The hub's servers that the session may see, and its own. */
export function visibleServers(hub: ServerSource, session: Session): ServerInfo[] {
  const isVisible = serverVisibility(hub.config, session);
  return [...hub.servers.list().filter(({ id }) => isVisible(id)), ...session.own.servers()];
}

/** Throws `not_found`, also for a hidden one. */
export function visibleServer(hub: ServerSource, session: Session, id: string): ServerInfo {
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
function serverVisibility({ config, servers }: LoadedConfig, { role, owner }: Viewer): ServerPredicate {
  const named = new Map(servers.map((spec) => [spec.id, spec]));
  if (role === undefined) return (id) => owner || named.get(id)?.roles === undefined;
  const rules = config.roles[role];
  const replaced = new Set(servers.flatMap(({ replaces, roles }) => (roles?.includes(role) ? (replaces ?? []) : [])));
  const isKnown = rules !== undefined || servers.some(({ roles }) => roles?.includes(role));
  return (id) => {
    const spec = named.get(id);
    if (!isKnown || replaced.has(id)) return false;
    if (spec?.roles !== undefined && !spec.roles.includes(role)) return false;
    // A role's own server need not be in its list.
    return rules?.servers === undefined || rules.servers.includes(id) || spec?.replaces !== undefined;
  };
}

/** A server at the time of an event: it may be removed from the config before the event is sent. */
export interface ServerSnapshot {
  readonly id: string;
  readonly spec?: ServerSpec;
}

type ServerPredicate = (id: string) => boolean;

export function serverSnapshot({ servers }: LoadedConfig, id: string): ServerSnapshot {
  return { id, spec: servers.find((each) => each.id === id) };
}

export function canSeeServer(config: LoadedConfig, viewer: Viewer, { id, spec }: ServerSnapshot): boolean {
  if (spec === undefined || config.servers.some((each) => each.id === id)) return rulesFor(config, viewer)(id);
  return serverVisibility({ ...config, servers: [...config.servers, spec] }, viewer)(id);
}

/** A role whose servers are listed sees the skills that are listed too. */
export function canSeeSkill({ config, servers }: LoadedConfig, { role }: Viewer, name: string): boolean {
  if (role === undefined) return true;
  const settings = config.roles[role];
  if (settings === undefined) return servers.some(({ roles }) => roles?.includes(role) === true);
  return settings.servers === undefined || (settings.skills ?? []).includes(name);
}

/** Cached for each kind of viewer until the config changes. */
const rulesByConfig = new WeakMap<LoadedConfig, Map<string, ServerPredicate>>();
const MAX_VIEWERS = 256;

function rulesFor(config: LoadedConfig, viewer: Viewer): ServerPredicate {
  let known = rulesByConfig.get(config);
  if (known === undefined) rulesByConfig.set(config, (known = new Map()));
  const key = JSON.stringify([viewer.owner, viewer.role ?? null]);
  let sees = known.get(key);
  if (sees === undefined) {
    if (known.size >= MAX_VIEWERS) known.clear();
    known.set(key, (sees = serverVisibility(config, viewer)));
  }
  return sees;
}

/** In the words of commands and events, and in those that the lists had before. */
export function originFields({
  source,
  name,
}: CapabilityOrigin): Pick<ToolInfo, "serverId" | "mcpName" | "server" | "tool"> {
  return { serverId: source, mcpName: name, server: source, tool: name };
}
