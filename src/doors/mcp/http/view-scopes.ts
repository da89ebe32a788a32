/** The part of the catalog that a client asks for by its URL: `/mcp/<role>?servers=a,b&tags=x`. */
import type { Caller } from "../../../model/caller.ts";
import { scopeKey, type ViewScope } from "../origin.ts";

export type ScopeChoice =
  | { readonly ok: true; readonly scope: ViewScope }
  | { readonly ok: false; readonly reason: "no such path" | "other role" };

const MOST = 1000;
const WHOLE: ViewScope = Object.freeze({});

/** Views are kept by the scope object, so equal scopes must be the same one; how many are kept is bounded. */
export class ViewScopes {
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
    if (role === undefined && query.size === 0) return { ok: true, scope: WHOLE };
    return { ok: true, scope: this.#shared(role, listIn(query, "servers"), listIn(query, "tags")) };
  }

  #shared(role: string | undefined, servers: string[] | undefined, tags: string[] | undefined): ViewScope {
    if (role === undefined && servers === undefined && tags === undefined) return WHOLE;
    const scope: ViewScope = Object.freeze({
      role,
      ...(servers === undefined ? {} : { servers: Object.freeze(servers) }),
      ...(tags === undefined ? {} : { tags: Object.freeze(tags) }),
    });
    const key = scopeKey(scope);
    const known = this.#scopes.get(key);
    if (known !== undefined) return known;
    for (const oldest of this.#scopes.keys()) {
      if (this.#scopes.size < MOST) break;
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
function listIn(query: URLSearchParams, key: string): string[] | undefined {
  const names = query.getAll(key).flatMap((value) => value.split(",").flatMap((name) => name.trim() || []));
  return names.length === 0 ? undefined : [...new Set(names)].toSorted();
}
