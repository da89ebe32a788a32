import { LruMap } from "../../base/maps.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { Caller } from "../../model/caller.ts";

/** The part of the catalog that a client asked for. Doors share one object for each distinct part. */
export interface ViewScope {
  readonly role?: string;
  readonly servers?: readonly string[];
  readonly tags?: readonly string[];
}

/** The caller, and the scope it asked for. */
export interface RequestOrigin {
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

/** The names that a scope can use. */
interface KnownNames {
  readonly servers: ReadonlySet<string>;
  readonly tags: ReadonlySet<string>;
  readonly roles: ReadonlySet<string>;
}

const MAX_CANONICAL_SCOPES = 1000;

/** Returns the same object for equivalent scopes under the current config, so that caches per scope are bounded by the config. */
export class CanonicalScopes {
  readonly #config: () => LoadedConfig;
  readonly #byKey = new LruMap<string, ViewScope>(MAX_CANONICAL_SCOPES);
  /** Transports share one object for each way of writing. */
  readonly #byWriting = new WeakMap<ViewScope, { readonly names: KnownNames; readonly canonical: ViewScope }>();
  #known: { readonly config: LoadedConfig; readonly names: KnownNames } | undefined;

  constructor(config: () => LoadedConfig) {
    this.#config = config;
  }

  of(scope: ViewScope): ViewScope {
    const { role, servers, tags } = scope;
    if (role === undefined && servers === undefined && tags === undefined) return scope;
    const names = this.#names();
    const seen = this.#byWriting.get(scope);
    if (seen?.names === names) return seen.canonical;
    const canonical = this.#shared(canonicalScope(scope, names));
    this.#byWriting.set(scope, { names, canonical });
    return canonical;
  }

  #shared(scope: ViewScope): ViewScope {
    const key = scopeKey(scope);
    const known = this.#byKey.get(key);
    if (known === undefined) this.#byKey.set(key, scope);
    return known ?? scope;
  }

  #names(): KnownNames {
    const config = this.#config();
    if (this.#known?.config !== config) this.#known = { config, names: knownNames(config) };
    return this.#known.names;
  }
}

/** Shows exactly what the scope shows: names that nothing has are left out, and what is left is in one order. */
export function canonicalScope({ role, servers, tags }: ViewScope, known: KnownNames): ViewScope {
  // An unknown role sees nothing, whatever else is asked for.
  if (role !== undefined && !known.roles.has(role)) return Object.freeze({ role: unknownRole(known.roles) });
  const narrowed = { servers: onlyKnown(servers, known.servers), tags: onlyKnown(tags, known.tags) };
  const seesNothing = narrowed.servers?.length === 0 || narrowed.tags?.length === 0;
  return Object.freeze({
    role,
    ...(seesNothing
      ? { servers: NO_SERVERS }
      : {
          servers: narrowed.servers,
          tags: narrowed.tags,
        }),
  });
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

const NO_SERVERS: readonly string[] = Object.freeze([]);

function onlyKnown(names: readonly string[] | undefined, known: ReadonlySet<string>): readonly string[] | undefined {
  return names && Object.freeze([...new Set(names)].filter((name) => known.has(name)).toSorted());
}

/** One name for all unknown roles. */
function unknownRole(roles: ReadonlySet<string>): string {
  let name = "(unknown)";
  while (roles.has(name)) name = `(${name})`;
  return name;
}

/** The part of the catalog that a client asks for by its URL: `/mcp/<role>?servers=a,b&tags=x`. */
type ScopeChoice =
  | { readonly ok: true; readonly scope: ViewScope }
  | { readonly ok: false; readonly reason: "no such path" | "other role" };

const MAX_REQUESTED_SCOPES = 1000;
const FULL_SCOPE: ViewScope = Object.freeze({});

/** Views are kept by the scope object, so equal scopes must be the same one; how many are kept is bounded. */
export class RequestedScopes {
  readonly #scopes = new Map<string, ViewScope>();

  /**
   * @param base The path above the role, such as `/mcp`.
   * @param path Decoded.
   */
  choose(base: string, path: string, query: URLSearchParams, caller: Caller): ScopeChoice {
    const asked = path === base ? null : roleIn(base, path);
    if (asked === undefined) return { ok: false, reason: "no such path" };
    if (caller.role !== undefined && asked !== null && asked !== caller.role)
      return { ok: false, reason: "other role" };
    const role = caller.role ?? asked ?? undefined;
    if (role === undefined && query.size === 0) return { ok: true, scope: FULL_SCOPE };
    return { ok: true, scope: this.#shared(role, namesIn(query, "servers"), namesIn(query, "tags")) };
  }

  #shared(role: string | undefined, servers: string[] | undefined, tags: string[] | undefined): ViewScope {
    if (role === undefined && servers === undefined && tags === undefined) return FULL_SCOPE;
    const scope: ViewScope = Object.freeze({
      role,
      ...(servers === undefined ? {} : { servers: Object.freeze(servers) }),
      ...(tags === undefined ? {} : { tags: Object.freeze(tags) }),
    });
    const key = scopeKey(scope);
    const known = this.#scopes.get(key);
    if (known !== undefined) return known;
    for (const oldest of this.#scopes.keys()) {
      if (this.#scopes.size < MAX_REQUESTED_SCOPES) break;
      this.#scopes.delete(oldest);
    }
    this.#scopes.set(key, scope);
    return scope;
  }
}

/** Null for no role, undefined for a path that is none of ours. */
function roleIn(base: string, path: string): string | null | undefined {
  if (!path.startsWith(`${base}/`)) return undefined;
  const rest = path.slice(base.length + 1);
  if (rest === "") return null;
  return rest.includes("/") ? undefined : rest;
}

/** Names in one order and once each; a list without any name does not narrow. */
function namesIn(query: URLSearchParams, key: string): string[] | undefined {
  const names = query.getAll(key).flatMap((value) => value.split(",").flatMap((name) => name.trim() || []));
  return names.length === 0 ? undefined : [...new Set(names)].toSorted();
}
