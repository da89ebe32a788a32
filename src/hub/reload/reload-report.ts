/** The difference between two configs. */
import { isDeepStrictEqual } from "node:util";
import type { Config } from "../../model/config.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { ServerSpec } from "../../model/server-spec.ts";

export interface ReloadReport {
  /** Ids of servers. Those of roles are named as everywhere: `github@reviewer`. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Same id, other entry; only where the link itself differs is it made again. */
  readonly changed: readonly string[];
  readonly kept: readonly string[];
  /** Other keys of the config that changed and apply from now on, such as `tools` or `roles`. */
  readonly settings: readonly string[];
  /** Keys that changed and apply after a restart only. */
  readonly needsRestart: readonly string[];
}

const LIVE = [
  "plugins",
  "tools",
  "limits",
  "roles",
  "guard",
  "secrets",
  "skills",
] as const satisfies readonly (keyof Config)[];

/** The servers as they are now, by id, against the new config. */
export function reportOf(
  before: LoadedConfig,
  after: LoadedConfig,
  known: ReadonlyMap<string, ServerSpec>,
): ReloadReport {
  const ids = new Set(after.servers.map(({ id }) => id));
  const isKept = (spec: ServerSpec): boolean => isDeepStrictEqual(known.get(spec.id), spec);
  const stayed = after.servers.filter(({ id }) => known.has(id));
  return {
    added: after.servers.filter(({ id }) => !known.has(id)).map(({ id }) => id),
    removed: [...known.keys()].filter((id) => !ids.has(id)),
    changed: stayed.filter((spec) => !isKept(spec)).map(({ id }) => id),
    kept: stayed.filter(isKept).map(({ id }) => id),
    settings: LIVE.filter((key) => !isDeepStrictEqual(before.config[key], after.config[key])),
    needsRestart: [
      ...(isDeepStrictEqual(before.config.audit, after.config.audit) ? [] : ["audit"]),
      ...(before.config.store === after.config.store ? [] : ["store"]),
      // It is a root of the hub's own session, and servers know of it.
      ...(before.config.workspaceDir === after.config.workspaceDir ? [] : ["workspaceDir"]),
      // Connections that are there keep the time that they were made with.
      ...(before.config.limits.graceMs === after.config.limits.graceMs ? [] : ["limits.graceMs"]),
    ],
  };
}

/** Whether sessions may see or be offered something else, apart from what servers come and go. */
export function changesVisibility(before: LoadedConfig, after: LoadedConfig): boolean {
  return !isDeepStrictEqual(visibilityOf(before), visibilityOf(after));
}

function visibilityOf({ config, servers, project }: LoadedConfig): unknown {
  const { tools, roles, guard } = config;
  return [
    project?.rules,
    tools,
    roles,
    guard,
    new Map(servers.map(({ id, tools: rules, roles: seenBy, tags, trust }) => [id, [rules, seenBy, tags, trust]])),
  ];
}

/** Whether everything that a reload compares is equal. */
export function isSameConfig(a: LoadedConfig, b: LoadedConfig): boolean {
  const compared = ({ config, servers, file, files, watched, project }: LoadedConfig): unknown => [
    ...[config, servers, file, files, watched],
    ...[project?.file, project?.rules, project?.roles],
  ];
  return isDeepStrictEqual(compared(a), compared(b));
}
