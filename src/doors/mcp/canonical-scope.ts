/**
 * Clients write down which part of the catalog they want, and can do so in endless ways. Those that mean the same become
 * one scope here, so that what is kept for each scope follows from the config and not from what somebody invents.
 */
import type { LoadedConfig } from "../../config/load-config.ts";
import { RecentMap } from "../../model/recent-map.ts";
import { scopeKey, type ViewScope } from "./origin.ts";

/** What a scope can name. */
export interface KnownNames {
  readonly servers: ReadonlySet<string>;
  readonly tags: ReadonlySet<string>;
  readonly roles: ReadonlySet<string>;
}

const MOST = 1000;

/** Gives the same object for scopes that mean the same, under the config that holds now. */
export class CanonicalScopes {
  readonly #config: () => LoadedConfig;
  readonly #byKey = new RecentMap<string, ViewScope>(MOST);
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
  // A role that nothing names sees nothing, whatever else is asked for.
  if (role !== undefined && !known.roles.has(role)) return Object.freeze({ role: nobody(known.roles) });
  const narrowed = { servers: knownOf(servers, known.servers), tags: knownOf(tags, known.tags) };
  const seesNothing = narrowed.servers?.length === 0 || narrowed.tags?.length === 0;
  return Object.freeze({
    role,
    ...(seesNothing
      ? { servers: NONE }
      : {
          servers: narrowed.servers,
          tags: narrowed.tags,
        }),
  });
}

/** What the config has names for. */
export function knownNames({ config, servers }: LoadedConfig): KnownNames {
  return {
    // The id of a server also stands for the one that a role has in its place.
    servers: new Set([
      "local",
      ...servers.flatMap(({ id, replaces }) => (replaces === undefined ? id : [id, replaces])),
    ]),
    tags: new Set(servers.flatMap((spec) => spec.tags ?? [])),
    roles: new Set([...Object.keys(config.roles), ...servers.flatMap((spec) => spec.roles ?? [])]),
  };
}

const NONE: readonly string[] = Object.freeze([]);

function knownOf(names: readonly string[] | undefined, known: ReadonlySet<string>): readonly string[] | undefined {
  return names && Object.freeze([...new Set(names)].filter((name) => known.has(name)).toSorted());
}

/** One name for all roles that there are not. */
function nobody(roles: ReadonlySet<string>): string {
  let name = "(unknown)";
  while (roles.has(name)) name = `(${name})`;
  return name;
}
