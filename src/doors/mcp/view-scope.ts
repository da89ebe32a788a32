/** The part of the catalog that a client asked for: by its URL, and in canonical form, so that equivalent scopes are equal. */
import { isClientId } from "../../clients/agent-client.ts";
import type { Caller } from "../../model/caller.ts";
import { type ClientInfo, clientInfoOf } from "../../model/client-info.ts";
import type { ClientEnv } from "../../model/source.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";

/** The part of the catalog that a client asked for. */
export interface ViewScope {
  readonly role?: string;
  /** One of the config's views. */
  readonly view?: string;
  readonly servers?: readonly string[];
  readonly tags?: readonly string[];
  /** The session of an editor that it joins. */
  readonly session?: string | undefined;
}

/** The caller, and the scope it asked for. */
export interface RequestOrigin {
  readonly caller: Caller;
  readonly scope: ViewScope;
  /** The client as its transport knows it. */
  readonly peer?: Omit<ClientInfo, "name">;
  readonly clientEnv?: ClientEnv | undefined;
  /** Its taint is known at the next hub too. */
  readonly conversation?: string | undefined;
  /** Finds its process. */
  readonly locate?: () => Promise<Pick<ClientInfo, "pid" | "program"> | undefined>;
}

/** The client of an HTTP request, as its transport and its URL (`?client=grok`, which `connect` writes) say. */
export function httpPeer(transport: "http" | "sse", query: URLSearchParams): Omit<ClientInfo, "name"> {
  const entryOf = query.size === 0 ? null : query.get("client");
  return entryOf === null || !isClientId(entryOf) ? { transport } : { transport, entryOf };
}

/** @param said Its `clientInfo`. */
export function clientOf({ peer }: RequestOrigin, said: unknown): ClientInfo | undefined {
  const client = clientInfoOf(said);
  return client && { ...client, ...peer };
}

const WHOLE_KEY = JSON.stringify([null, null, null, null, null]);

/** Equal for equal scopes. */
export function scopeKey({ role, view, servers, tags, session }: ViewScope): string {
  // Asked for with each request of a client without a session.
  if ((role ?? view ?? servers ?? tags ?? session) === undefined) return WHOLE_KEY;
  return JSON.stringify([role ?? null, view ?? null, servers ?? null, tags ?? null, session ?? null]);
}

type ScopeChoice =
  | { readonly ok: true; readonly scope: ViewScope }
  | { readonly ok: false; readonly reason: "no such path" | "other role" };

/** The same object for each request of most clients, which then need no comparison by parts. */
const WHOLE_CATALOG: ScopeChoice = { ok: true, scope: {} };

/**
 * The scope of a URL such as `/mcp/<name>?servers=a,b&tags=x&session=y`. The name is that of a role, of a view or of a server.
 * @param base The path above the name, such as `/mcp`.
 * @param path Decoded.
 */
export function requestedScope(
  base: string,
  path: string,
  query: URLSearchParams,
  caller: Caller,
  known: KnownNames = NO_NAMES,
): ScopeChoice {
  if (path === base && query.size === 0 && caller.role === undefined) return WHOLE_CATALOG;
  const asked = path === base ? null : nameIn(base, path);
  if (asked === undefined) return { ok: false, reason: "no such path" };
  const named = asked === null ? {} : namedScope(asked, known);
  if (caller.role !== undefined && named.role !== undefined && named.role !== caller.role)
    return { ok: false, reason: "other role" };
  const scope = { ...named, role: caller.role ?? named.role };
  if (query.size === 0) return { ok: true, scope };
  const servers = namesIn(query, "servers");
  // The server of the path is the only one; others may be asked for only where none is named.
  const both = named.servers === undefined ? servers : named.servers.filter((id) => servers?.includes(id) ?? true);
  const session = query.get("session") ?? undefined;
  return { ok: true, scope: { ...scope, servers: both, tags: namesIn(query, "tags"), session } };
}

/** A role comes before a view of the same name, and a view before a server. A name that no one has is a role that sees nothing. */
function namedScope(name: string, { roles, views, servers }: KnownNames): ViewScope {
  if (roles.has(name)) return { role: name };
  if (views.has(name)) return { view: name };
  return servers.has(name) && name !== "local" ? { servers: [name] } : { role: name };
}

/** Null for no name, undefined for a path that is not below the base. */
function nameIn(base: string, path: string): string | null | undefined {
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
export interface KnownNames {
  readonly views: ReadonlySet<string>;
  readonly servers: ReadonlySet<string>;
  readonly tags: ReadonlySet<string>;
  readonly roles: ReadonlySet<string>;
}

const NO_NAMES: KnownNames = { views: new Set(), servers: new Set(), tags: new Set(), roles: new Set() };

/** Makes equivalent scopes equal under the current config, so that the number of sessions per caller is bounded by it. */
export class CanonicalScopes {
  readonly #config: () => LoadedConfig;
  #known: { readonly config: LoadedConfig; readonly names: KnownNames } | undefined;

  constructor(config: () => LoadedConfig) {
    this.#config = config;
  }

  of({ session, ...scope }: ViewScope): ViewScope {
    if ([scope.role, scope.view, scope.servers, scope.tags].every((part) => part === undefined)) return { session };
    return { ...canonicalScope(scope, this.names), session };
  }

  /** Those of the current config. */
  get names(): KnownNames {
    const config = this.#config();
    if (this.#known?.config !== config) this.#known = { config, names: knownNames(config) };
    return this.#known.names;
  }
}

/** Shows exactly what the scope shows: without unknown names, and in one order. */
export function canonicalScope({ role, view, servers, tags }: ViewScope, known: KnownNames): ViewScope {
  // An unknown role or view sees nothing, whatever else is asked for.
  if (role !== undefined && !known.roles.has(role)) return { role: unknownRole(known.roles) };
  if (view !== undefined && !known.views.has(view)) return { role, servers: [] };
  const narrowed = { servers: onlyKnown(servers, known.servers), tags: onlyKnown(tags, known.tags) };
  const seesNothing = narrowed.servers?.length === 0 || narrowed.tags?.length === 0;
  if (seesNothing) return { role, servers: [] };
  return view === undefined ? { role, ...narrowed } : { role, view, ...narrowed };
}

/** The names that the config has. */
export function knownNames({ config, servers }: LoadedConfig): KnownNames {
  return {
    views: new Set(Object.keys(config.views)),
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
