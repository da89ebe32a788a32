/** `/metrics` for Prometheus. It names every server, so it is for those from whom none is hidden. */
import type { HttpRoute } from "./exchange.ts";
import { nothingAt, refuseMethod } from "./own-routes.ts";

export const METRICS_PATH = "/metrics";

interface Metrics {
  text(): Promise<{ readonly type: string; readonly body: string }>;
}

export function metricsRoute(metrics: Metrics): HttpRoute {
  return {
    path: METRICS_PATH,
    access: "read",
    async handle(exchange) {
      const { request, response, caller } = exchange;
      if (exchange.path !== METRICS_PATH) throw nothingAt(exchange.path);
      if (request.method !== "GET" && request.method !== "HEAD") {
        refuseMethod(exchange, ["GET", "HEAD"]);
        return;
      }
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
