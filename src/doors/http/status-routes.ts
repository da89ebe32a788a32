/** Routes of the listener itself: health, readiness, metrics, the index and the OAuth resource metadata. */
import { ToolcribError } from "../../model/errors.ts";
import { METADATA_PATH, resourceMetadata } from "./access-tokens.ts";
import type { HttpAccess } from "./http-access.ts";
import type { HttpExchange, HttpResponse, HttpRoute } from "./http-exchange.ts";
import { notFoundAt, readOnlyRoute, refuseUnlessRead, sendJson, sendText } from "./http-responses.ts";
import { baseOf } from "./hosts.ts";

interface StatusRoutesOptions {
  readonly readiness: () => Readiness;
  /** A few lines for people who open the address in a browser. */
  readonly index: (() => string) | undefined;
  readonly httpAccess: () => HttpAccess;
  /** Whether there is something at this path that wants credentials. */
  readonly isGuarded: (path: string) => boolean;
}

export function statusRoutes({ readiness, index, httpAccess, isGuarded }: StatusRoutesOptions): HttpRoute[] {
  const routes: HttpRoute[] = [
    readOnlyRoute("/healthz", ({ response }) => sendJson(response, 200, { status: "ok" })),
    readOnlyRoute("/readyz", ({ response }) => respondReadiness(response, readiness())),
    readOnlyRoute(METADATA_PATH, showMetadata, { below: true }),
  ];
  if (index !== undefined) routes.push(readOnlyRoute("/", ({ response }) => sendText(response, 200, index())));
  return routes;

  function showMetadata({ request, response, path }: HttpExchange): void {
    const settings = httpAccess().http.auth?.oauth;
    const resource = path.slice(METADATA_PATH.length);
    if (settings === undefined || (resource !== "" && !isGuarded(resource))) throw notFoundAt(path);
    sendJson(response, 200, resourceMetadata(baseOf(httpAccess().http, request), resource, settings));
  }
}

/** The state of the hub's dependencies, for `/readyz`. Public: no addresses, no names. */
export interface DependencyHealth {
  readonly problems: readonly string[];
  readonly cluster?: { readonly nodes: number; readonly nats: "up" | "down" };
  readonly store?: "up" | "down";
}

interface Readiness extends DependencyHealth {
  /** `degraded` serves what it can. */
  readonly status: "ready" | "degraded" | "starting" | "stopping";
}

const NOT_READY_MESSAGES = {
  starting: "The hub is not ready: servers are still connecting.",
  stopping: "The hub is not ready: it is shutting down.",
} as const;

function respondReadiness(response: HttpResponse, readiness: Readiness): void {
  const { status, problems, ...rest } = readiness;
  // A hub without dependencies reports only its status.
  const said = problems.length === 0 && Object.keys(rest).length === 0 ? { status } : { status, problems, ...rest };
  if (status === "ready" || status === "degraded") {
    sendJson(response, 200, said);
    return;
  }
  const error = new ToolcribError("server_unavailable", NOT_READY_MESSAGES[status]).toObject();
  sendJson(response, 503, { ...said, error });
}

export function readinessOf(
  state: { readonly isStopping: boolean; readonly isReady: boolean },
  reliance: DependencyHealth,
): Readiness {
  if (state.isStopping) return { status: "stopping", ...reliance };
  if (!state.isReady) return { status: "starting", ...reliance };
  return { status: reliance.problems.length === 0 ? "ready" : "degraded", ...reliance };
}

const METRICS_PATH = "/metrics";

interface Metrics {
  text(): Promise<{ readonly type: string; readonly body: string }>;
}

/** `/metrics` for Prometheus. It names every server, so it is for callers who see all of them. */
export function metricsRoute(metrics: Metrics): HttpRoute {
  return {
    path: METRICS_PATH,
    access: "read",
    async handle(exchange) {
      const { response, caller } = exchange;
      if (exchange.path !== METRICS_PATH) throw notFoundAt(exchange.path);
      if (refuseUnlessRead(exchange)) return;
      if (!caller.scopes.has("admin") && (caller.role !== undefined || !caller.owner)) {
        exchange.refuseScope("admin");
        return;
      }
      const { type, body } = await metrics.text();
      response.writeHead(200, {
        "content-type": type,
        "content-length": Buffer.byteLength(body),
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
      });
      response.end(body);
    },
  };
}
