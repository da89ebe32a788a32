/** The part of the catalog that a client asked for: by its URL, and in canonical form, so that equivalent scopes are equal. */
import type { Caller } from "../../model/caller.ts";
import { type ClientInfo, clientInfoOf } from "../../model/client-info.ts";
import type { ClientEnv } from "../../model/source.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";

/** The part of the catalog that a client asked for. */
export interface ViewScope {
  readonly role?: string;
  readonly servers?: readonly string[];
  readonly tags?: readonly string[];
}

/** The caller, and the scope it asked for. */
export interface RequestOrigin {
  readonly caller: Caller;
  readonly scope: ViewScope;
  /** The client as its transport knows it. */
  readonly peer?: Omit<ClientInfo, "name">;
  readonly clientEnv?: ClientEnv | undefined;
  /** Finds its process. */
  readonly locate?: () => Promise<Pick<ClientInfo, "pid" | "program"> | undefined>;
}

/** @param said Its `clientInfo`. */
export function clientOf({ peer }: RequestOrigin, said: unknown): ClientInfo | undefined {
  const client = clientInfoOf(said);
  return client && { ...client, ...peer };
}

/** Equal for equal scopes. */
export function scopeKey({ role, servers, tags }: ViewScope): string {
  return JSON.stringify([role ?? null, servers ?? null, tags ?? null]);
}

type ScopeChoice =
  | { readonly ok: true; readonly scope: ViewScope }
  | { readonly ok: false; readonly reason: "no such path" | "other role" };

/**
 * The scope of a URL such as `/mcp/<role>?servers=a,b&tags=x`.
 * @param base The path above the role, such as `/mcp`.
 * @param path Decoded.
 */
export function requestedScope(base: string, path: string, query: URLSearchParams, caller: Caller): ScopeChoice {
  const asked = path === base ? null : roleIn(base, path);
  if (asked === undefined) return { ok: false, reason: "no such path" };
  if (caller.role !== undefined && asked !== null && asked !== caller.role) return { ok: false, reason: "other role" };
  const role = caller.role ?? asked ?? undefined;
  if (query.size === 0) return { ok: true, scope: { role } };
  return { ok: true, scope: { role, servers: namesIn(query, "servers"), tags: namesIn(query, "tags") } };
}

/** Null for no role, undefined for a path that is not below the base. */
function roleIn(base: string, path: string): string | null | undefined {
  if (!path.startsWith(`${base}/`)) return undefined;
  const rest = path.slice(base.length + 1);
  if (rest === "") return null;
  return rest.includes("/") ? undefined : rest;
}

/** Sorted and without duplicates; a list without any name does not narrow. */
function namesIn(query: URLSearchParams, key: string): string[] | undefined {
  const names = query.getAll(key).flatMap((value) => value.split(",").flatMap((name) => name.trim() || []));
  return names.length === 0 ? undefined : [...new Set(names)].toSorted();
}

/** The names that a scope can use. */
interface KnownNames {
  readonly servers: ReadonlySet<string>;
  readonly tags: ReadonlySet<string>;
  readonly roles: ReadonlySet<string>;
}

/** Makes equivalent scopes equal under the current config, so that the number of sessions per caller is bounded by it. */
export class CanonicalScopes {
  readonly #config: () => LoadedConfig;
  #known: { readonly config: LoadedConfig; readonly names: KnownNames } | undefined;

  constructor(config: () => LoadedConfig) {
    this.#config = config;
  }

  of(scope: ViewScope): ViewScope {
    if (scope.role === undefined && scope.servers === undefined && scope.tags === undefined) return scope;
    const config = this.#config();
    if (this.#known?.config !== config) this.#known = { config, names: knownNames(config) };
    return canonicalScope(scope, this.#known.names);
  }
}

/** Shows exactly what the scope shows: without unknown names, and in one order. */
export function canonicalScope({ role, servers, tags }: ViewScope, known: KnownNames): ViewScope {
  // An unknown role sees nothing, whatever else is asked for.
  if (role !== undefined && !known.roles.has(role)) return { role: unknownRole(known.roles) };
  const narrowed = { servers: onlyKnown(servers, known.servers), tags: onlyKnown(tags, known.tags) };
  const seesNothing = narrowed.servers?.length === 0 || narrowed.tags?.length === 0;
  return seesNothing ? { role, servers: [] } : { role, ...narrowed };
}

/** The names that the config has. */
export function knownNames({ config, servers }: LoadedConfig): KnownNames {
  return {
    // The id of a server also names the one that replaces it for a role.
    servers: new Set([
      "local",
      ...servers.flatMap(({ id, replaces }) => (replaces === undefined ? id : [id, replaces])),
    ]),
    tags: new Set(servers.flatMap((spec) => spec.tags ?? [])),
    roles: new Set([...Object.keys(config.roles), ...servers.flatMap((spec) => spec.roles ?? [])]),
  };
}

function onlyKnown(names: readonly string[] | undefined, known: ReadonlySet<string>): readonly string[] | undefined {
  return names && [...new Set(names)].filter((name) => known.has(name)).toSorted();
}

/** One name for all unknown roles. */
function unknownRole(roles: ReadonlySet<string>): string {
  let name = "(unknown)";
  while (roles.has(name)) name = `(${name})`;
  return name;
}
