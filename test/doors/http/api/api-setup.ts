/** A real hub on a config file, with real servers, behind the real listener. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CallerSessions } from "../../../../src/doors/http/api/caller-sessions.ts";
import { Operations } from "../../../../src/doors/http/api/run-operation.ts";
import type { ApiParts } from "../../../../src/doors/http/api/operation-handler.ts";
import { apiRoutes } from "../../../../src/doors/http/api/rest-routes.ts";
import { WebSocketDoor } from "../../../../src/doors/http/live/websocket-door.ts";
import { tooManyRequests } from "../../../../src/doors/http/http-access.ts";
import { openListener } from "../../../../src/doors/http/listener.ts";
import { EventFeed } from "../../../../src/doors/http/live/event-feed.ts";
import { EventStreams } from "../../../../src/doors/http/live/event-streams.ts";
import { createHub } from "../../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../../src/hub/hub.ts";
import { type Clock, systemClock } from "../../../../src/base/clock.ts";
import type { ServerEntryInput } from "../../../../src/model/server-spec.ts";
import { Redactor } from "../../../../src/secrets/redactor.ts";
import type { ToolRegistry } from "../../../../src/tools/tool-registry.ts";
import { Talk } from "../live/live-setup.ts";
import { type Answer, ask } from "../support.ts";

export const TOKENS = {
  admin: "t0-0123456789-all",
  call: "t1-0123456789-calls",
  read: "t2-0123456789-reads",
  reviewer: "t3-0123456789-of-rita",
} as const;

export type Who = keyof typeof TOKENS;

export interface ApiScene {
  readonly dir: string;
  readonly home: string;
  readonly file: string;
  readonly hub: Hub;
  readonly url: string;
  /** Nobody at all with `null`. */
  request(who: Who | null, method: string, path: string, options?: RequestOptions): Promise<Answer>;
  connect(who: Who): Promise<Talk>;
  /** Frames of one caller; holds for sockets that come from now on. */
  readonly frames: { perMinute: number };
  close(): Promise<void>;
}

export interface RequestOptions {
  readonly body?: unknown;
  /** Instead of `body`, as it is. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface SceneOptions {
  readonly servers: Readonly<Record<string, ServerEntryInput>>;
  /** Further keys of the config. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env?: NodeJS.ProcessEnv;
  readonly commandLine?: ApiParts["commandLine"];
  /** In-process tools. */
  readonly registry?: ToolRegistry;
  /** Without `http.auth` everybody on the machine is let in. */
  readonly open?: boolean;
  /** Of the doors; the hub has the real one. */
  readonly clock?: Clock;
}

export async function apiScene(options: SceneOptions | ((dir: string) => SceneOptions)): Promise<ApiScene> {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-api-")));
  const {
    servers,
    config = {},
    env = {},
    commandLine,
    registry,
    open = false,
    clock = systemClock,
  } = typeof options === "function" ? options(dir) : options;
  const home = join(dir, "home");
  mkdirSync(home);
  const file = join(dir, "toolcrib.json");
  const tokens = Object.entries(TOKENS).map(([who, token]) =>
    who === "reviewer"
      ? { token, user: "rita", role: "reviewer", scopes: ["call"] }
      : { token, user: who === "admin" ? "ops" : undefined, scopes: [who] },
  );
  const auth = open ? {} : { http: { auth: { tokens } } };
  writeFileSync(file, JSON.stringify({ mcpServers: servers, ...auth, ...config }, null, 2));

  const redactor = new Redactor();
  const whole = { ...process.env, ...env, TOOLCRIB_HOME: home };
  const hub = await createHub(file, { home, env: whole, redactor, wait: true, ...(registry && { registry }) });
  const parts: ApiParts = {
    hub,
    redactor,
    version: "1.2.3",
    env: whole,
    clock,
    commandLine,
  };
  const operations = new Operations(parts);
  const sessions = new CallerSessions(hub, clock, { holdsCalls: true });
  const feed = new EventFeed(hub, redactor);
  operations.notify = (event, to) => feed.notify(event, to);
  const streams = new EventStreams({
    feed,
    sessionOf: (caller) => sessions.of(caller),
    streams: () => ({ total: 10 }),
  });
  const frames = { perMinute: 10_000 };
  const socket = new WebSocketDoor({
    hub,
    feed,
    operations,
    redactor,
    clock,
    limits: () => ({
      ...{ bodyBytes: 100_000, streams: { total: 20 }, requestsPerMinute: frames.perMinute },
      tooMany: (waitMs) => tooManyRequests("commands", waitMs, hub.config.config.http, frames.perMinute),
    }),
    warn: () => {},
  });
  const listener = await openListener({
    http: { ...hub.config.config.http, port: 0 },
    callsPerMinute: 10_000,
    routes: [...apiRoutes({ ...parts, operations, sessions }), ...streams.routes, socket.route],
    resolve: async (text) => text,
    redactor,
    warn: () => {},
  });
  const { url } = listener;
  return {
    dir,
    home,
    file,
    hub,
    url,
    frames,
    request(who, method, path, { body, text, headers = {} } = {}) {
      const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
      return ask(`${url}/api/v1${path}`, {
        method,
        headers: { ...(sent === undefined ? {} : { "content-type": "application/json" }), ...headers },
        body: sent,
        ...(who === null ? {} : { token: TOKENS[who] }),
      });
    },
    connect: (who) => Talk.open(`${url.replace("http", "ws")}/ws`, TOKENS[who]),
    async close() {
      streams.close();
      await socket.close(0);
      operations.close();
      sessions.close();
      await listener.close();
      feed.close();
      await hub.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
