/** Who hears of a server or a skill: to a role that may not see it, it does not exist. */
import type { LoadedConfig } from "../../../config/load-config.ts";
import type { ServerSpec } from "../../../model/server-spec.ts";
import { visibleTo } from "../api/visible-servers.ts";

/** A server as it stood when something happened to it: it may be gone from the config when that is sent. */
export interface ServerThen {
  readonly id: string;
  readonly spec?: ServerSpec;
}

export interface Viewer {
  readonly role?: string;
  readonly owner: boolean;
}

type Sees = (id: string) => boolean;

export function serverThen({ servers }: LoadedConfig, id: string): ServerThen {
  const spec = servers.find((each) => each.id === id);
  return spec === undefined ? { id } : { id, spec };
}

export function seesServer(config: LoadedConfig, viewer: Viewer, { id, spec }: ServerThen): boolean {
  if (spec === undefined || config.servers.some((each) => each.id === id)) return rulesFor(config, viewer)(id);
  return visibleTo({ ...config, servers: [...config.servers, spec] }, viewer)(id);
}

/** A role whose servers are listed sees the skills that are listed too. */
export function seesSkill({ config, servers }: LoadedConfig, { role }: Viewer, name: string): boolean {
  if (role === undefined) return true;
  const settings = config.roles[role];
  if (settings === undefined) return servers.some(({ roles }) => roles?.includes(role) === true);
  return settings.servers === undefined || (settings.skills ?? []).includes(name);
}

/** Made once for each kind of viewer, until the config is another. */
const rules = new WeakMap<LoadedConfig, Map<string, Sees>>();
const MOST_KINDS = 256;

function rulesFor(config: LoadedConfig, viewer: Viewer): Sees {
  let known = rules.get(config);
  if (known === undefined) rules.set(config, (known = new Map()));
  const key = JSON.stringify([viewer.owner, viewer.role ?? null]);
  let sees = known.get(key);
  if (sees === undefined) {
    if (known.size >= MOST_KINDS) known.clear();
    known.set(key, (sees = visibleTo(config, viewer)));
  }
  return sees;
}
