/** Finds the operation behind a method and a path. */
import { REST_ROUTES, type RestRoute } from "../../../../contract/rest.ts";

export type RouteMatch =
  | { readonly route: RestRoute; readonly params: Readonly<Record<string, string>> }
  /** Something is there, for other methods. */
  | { readonly allowed: readonly string[] };

interface Pattern {
  readonly route: RestRoute;
  readonly segments: readonly string[];
}

/** Those with fewer parameters first: `/skills/places` is no skill. */
const PATTERNS: readonly Pattern[] = REST_ROUTES.map((route) => ({
  route,
  segments: route.path.slice(1).split("/"),
})).toSorted((a, b) => parameterCount(a) - parameterCount(b));

/** @param path Below `/api/v1`, decoded. Undefined if nothing is there. */
export function matchRoute(method: string, path: string): RouteMatch | undefined {
  const given = path.slice(1).split("/");
  const wanted = method === "HEAD" ? "GET" : method;
  const allowed = new Set<string>();
  for (const { route, segments } of PATTERNS) {
    const params = paramsOf(segments, given);
    if (params === undefined) continue;
    if (route.method === wanted) return { route, params };
    allowed.add(route.method);
    if (route.method === "GET") allowed.add("HEAD");
  }
  return allowed.size === 0 ? undefined : { allowed: [...allowed] };
}

function paramsOf(segments: readonly string[], given: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const text = given[index] ?? "";
    const name = parameterName(segment);
    if (name !== undefined) params[name] = text;
    else if (segment !== text) return undefined;
  }
  return params;
}

function parameterCount({ segments }: Pattern): number {
  return segments.filter((segment) => parameterName(segment) !== undefined).length;
}

function parameterName(segment: string): string | undefined {
  return /^\{(\w+)\}$/.exec(segment)?.[1];
}
