/** What an operator and their programs use: REST, the WebSocket, event streams, metrics and the page. */
import { CallerSessions } from "../../doors/http/api/caller-sessions.ts";
import { Operations } from "../../doors/http/api/operations.ts";
import type { ApiParts } from "../../doors/http/api/operation.ts";
import { apiRoutes, type RestParts } from "../../doors/http/api/rest/api-routes.ts";
import { requestsPerMinute } from "../../doors/http/entrance.ts";
import type { HttpRoute } from "../../doors/http/exchange.ts";
import { CallCount } from "../../doors/mcp/call-count.ts";
import { EventFeed } from "../../doors/http/live/event-feed.ts";
import { openEventStreams } from "../../doors/http/live/event-streams.ts";
import { openSocket, type SocketLimits } from "../../doors/http/live/open-socket.ts";
import { metricsRoute } from "../../doors/http/metrics-route.ts";
import { PageFiles } from "../../doors/http/page/page-files.ts";
import { pageRoutes } from "../../doors/http/page/page-routes.ts";
import type { Hub } from "../../hub/hub.ts";
import { systemClock } from "../../model/clock.ts";
import type { HttpConfig } from "../../model/http-config.ts";
import { quotaOf } from "../../policy/quota.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { HubMetrics } from "../../telemetry/metrics/hub-metrics.ts";
import { VERSION } from "../../model/version.ts";
import { pageDir } from "./page-dir.ts";

interface OperatorDoorsOptions extends Pick<ApiParts, "commandLine" | "env">, Pick<RestParts, "ids"> {
  readonly hub: Hub;
  readonly redactor: Redactor;
  readonly http: () => HttpConfig;
  readonly url: () => string;
  /** What programs are told at `/`. */
  readonly words: () => string;
  readonly warn: (message: string) => void;
}

export interface OperatorDoors {
  readonly routes: readonly HttpRoute[];
  close(graceMs: number): Promise<void>;
}

export function openOperatorDoors(options: OperatorDoorsOptions): OperatorDoors {
  const { hub, redactor, http, ids, warn } = options;
  const parts: ApiParts = { ...options, holdsCalls: true, version: VERSION };
  const operations = new Operations(parts);
  const sessions = new CallerSessions(hub, systemClock, { holdsCalls: true });
  const feed = new EventFeed(hub, redactor, { nodes: hub.cluster });
  const limits = (): SocketLimits => {
    const now = http();
    return {
      bodyBytes: now.limits.bodyBytes,
      streams: quotaOf(now, now.limits.streams),
      requestsPerMinute: requestsPerMinute(now, hub.config.config.limits.callsPerMinute),
    };
  };
  const socket = openSocket({ hub, feed, operations, ids, redactor, limits, warn, holdsCalls: true });
  const streams = openEventStreams({
    feed,
    sessionOf: (caller) => sessions.of(caller),
    streams: () => quotaOf(http(), http().limits.streams),
  });
  const metrics = new HubMetrics(hub, VERSION);
  const underWay = new CallCount();
  return {
    routes: [
      ...apiRoutes({ ...parts, operations, sessions, ids }).map((route) => counted(route, underWay)),
      ...streams.routes,
      socket.route,
      metricsRoute(metrics),
      ...pageRoutes(new PageFiles(pageDir()), options.words),
    ],
    async close(graceMs) {
      streams.close();
      await Promise.all([socket.close(graceMs), withinGrace(underWay.whenIdle(), graceMs)]);
      sessions.close();
      operations.close();
      feed.close();
      metrics.close();
    },
  };
}

/** Sessions that end take calls with them: those under way are waited for. */
function counted(route: HttpRoute, underWay: CallCount): HttpRoute {
  return {
    ...route,
    async handle(exchange) {
      underWay.begin();
      try {
        await route.handle(exchange);
      } finally {
        underWay.end();
      }
    },
  };
}

async function withinGrace(done: Promise<void>, graceMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, graceMs)));
  await Promise.race([done, late]);
  clearTimeout(timer);
}
