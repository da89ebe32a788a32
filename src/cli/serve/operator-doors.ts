/** The doors of operators and their programs: REST, the WebSocket and event streams. */
import { endsWithin, InFlight } from "../../base/async.ts";
import type { CallerSessions } from "../../doors/http/api/caller-sessions.ts";
import { apiRoutes, type RestParts } from "../../doors/http/api/rest-routes.ts";
import { Operations } from "../../doors/http/api/run-operation.ts";
import type { HttpRoute } from "../../doors/http/http-exchange.ts";
import type { EventFeed } from "../../doors/http/live/event-feed.ts";
import { EventStreams } from "../../doors/http/live/event-streams.ts";
import { type SocketLimits, WebSocketDoor } from "../../doors/http/live/websocket-door.ts";
import { ToolcribError } from "../../model/errors.ts";

interface OperatorParts extends Omit<RestParts, "operations"> {
  readonly sessions: CallerSessions;
  readonly feed: EventFeed;
  readonly limits: () => SocketLimits;
  readonly warn: (message: string) => void;
}

export interface OperatorDoors {
  readonly routes: readonly HttpRoute[];
  busy(): number;
  close(graceMs: number): Promise<void>;
}

export function openOperatorDoors(parts: OperatorParts): OperatorDoors {
  const { sessions, feed, limits } = parts;
  const operations = new Operations(parts);
  operations.notify = (event, to) => feed.notify(event, to);
  const socket = new WebSocketDoor({ ...parts, operations });
  const streams = new EventStreams({
    feed,
    sessionOf: (caller) => sessions.of(caller),
    streams: () => limits().streams,
  });
  const requests = new InFlight();
  let isClosed = false;
  return {
    routes: [
      // Sessions that end take their calls with them, so requests in progress are waited for.
      ...apiRoutes({ ...parts, operations }).map((route): HttpRoute => ({
        ...route,
        handle: (exchange) => {
          if (!isClosed) return requests.track(async () => route.handle(exchange));
          throw new ToolcribError("server_unavailable", "The hub is shutting down.", { details: { sent: false } });
        },
      })),
      ...streams.routes,
      socket.route,
    ],
    busy: () => requests.count,
    async close(graceMs) {
      streams.close();
      await Promise.all([socket.close(graceMs), endsWithin(requests.whenIdle(), { ms: graceMs })]);
      isClosed = true;
      operations.close();
    },
  };
}
