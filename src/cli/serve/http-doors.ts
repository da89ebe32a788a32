/** All HTTP doors of a hub behind one listener, and how they open, change and end together. */
import type { Invocation } from "../command.ts";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { endsWithin } from "../../base/async.ts";
import { systemClock } from "../../base/clock.ts";
import { API_DOCS_PATH, API_DOCUMENT_PATH, API_PATH, EVENTS_PATH, SOCKET_PATH } from "../../contract/rest.ts";
import { CallerSessions } from "../../doors/http/api/caller-sessions.ts";
import type { ApiParts } from "../../doors/http/api/operation-handler.ts";
import type { RestParts } from "../../doors/http/api/rest-routes.ts";
import { requestsPerMinute, tooManyRequests } from "../../doors/http/http-access.ts";
import { refuseUpgrade } from "../../doors/http/http-connections.ts";
import type { HttpRoute, HttpUpgrade } from "../../doors/http/http-exchange.ts";
import { notFoundAt } from "../../doors/http/http-responses.ts";
import { type HttpListener, type ListenerOptions, openListener } from "../../doors/http/listener.ts";
import { EventFeed } from "../../doors/http/live/event-feed.ts";
import type { SocketLimits } from "../../doors/http/live/websocket-door.ts";
import { metricsRoute } from "../../doors/http/status-routes.ts";
import { ApprovalNotices } from "../../doors/http/approval-notices.ts";
import { PageFiles, pageRoutes } from "../../doors/http/web-page.ts";
import { CommandDoor } from "../hub/command-door.ts";
import { BridgeDoor } from "../../doors/mcp/bridge-door.ts";
import { McpHttp, type McpHttpLimits } from "../../doors/mcp/http/mcp-http.ts";
import { McpDoor } from "../../doors/mcp/mcp-door.ts";
import { tokenUses } from "../../hub/activity/token-uses.ts";
import { hubHealth } from "../../hub/cluster/hub-cluster.ts";
import { type NodeIds, openNodeIds } from "../../hub/cluster/routable-ids.ts";
import type { Hub } from "../../hub/hub.ts";
import type { BridgeHello } from "../../doors/mcp/bridge-door.ts";
import { auditKey, type Caller } from "../../model/caller.ts";
import type { HttpConfig } from "../../model/config.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { VERSION } from "../../model/version.ts";
import { quotaOf } from "../../policy/quota.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { Session } from "../../sessions/session.ts";
import { HubMetrics } from "../../telemetry/metrics.ts";
import type { OperatorDoors } from "./operator-doors.ts";

interface HttpDoorsOptions extends Pick<ApiParts, "commandLine">, Pick<Invocation, "runCommandLine"> {
  /** Part of the file in the home by which commands find the hub. */
  readonly record?: ListenerOptions["record"];
  /** A client of another process introduced itself. */
  readonly onBridge?: (hello: BridgeHello) => void;
  /** Ends a hub in the background. */
  readonly endHub?: (() => void) | undefined;
  /** Whether `http.auth` of the config is set, which takes the owner's rights from commands and stdio clients; as `http` says if absent. */
  readonly needsAuth?: () => boolean;
  readonly hub: Hub;
  /** The current settings, with the options of the command line. */
  readonly http: () => HttpConfig;
  readonly redactor: Redactor;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
  /** The text at `/` for programs. */
  readonly indexText: string;
  readonly warn: (message: string) => void;
}

export interface HttpDoors {
  readonly listener: HttpListener;
  /** Calls, commands and requests in progress. */
  busy(): number;
  reconfigure(): Promise<void>;
  /** Load balancers notice first, requests in progress get time to finish, then the rest is closed. */
  stop(): Promise<void>;
  /** Closes what is left. Safe to call twice. */
  close(): Promise<void>;
}

/** A node that stops reports itself as not ready and still serves for this long, so that load balancers move on. */
const DRAIN_NOTICE_MS = 1000;
/** How long the answers to calls that were cut off have to reach their clients. */
const CUT_OFF_MS = 1000;

export async function openHttpDoors(options: HttpDoorsOptions): Promise<HttpDoors> {
  const { hub, http, warn } = options;
  const node = await openNodeIds(hub, { idleMs: http().limits.sessionIdleMs, warn });
  try {
    return await openBehind(options, node);
  } catch (error) {
    node?.close();
    throw error;
  }
}

async function openBehind(options: HttpDoorsOptions, node: NodeIds | undefined): Promise<HttpDoors> {
  const { hub, http, redactor, home, warn } = options;
  let listener: HttpListener | undefined;
  const url = (): string => listener?.url ?? "<url>";
  const ids = node?.ids;
  const door = new McpDoor({ hub, holdsCalls: true, ids });
  const mcp = new McpHttp({
    door,
    clock: systemClock,
    basePath: "/mcp",
    ssePath: "/sse",
    messagesPath: "/messages",
    ...mcpLimits(http()),
    ids,
    warn,
  });
  const needsAuth = options.needsAuth ?? ((): boolean => http().auth !== undefined);
  const isEditor = options.record?.editor === true;
  const bridge = new BridgeDoor({
    door,
    needsAuth,
    hasServer: (id) => hub.servers.list().some((server) => server.id === id),
    clientEnv: () => hub.config.config.hub.clientEnv,
    onHello: options.onBridge,
  });
  const operator = openOperatorSide({ ...options, url, ids });
  // The editor itself asks, and a link to a port that is another one tomorrow helps no one.
  const notices = isEditor
    ? undefined
    : new ApprovalNotices({
        hub,
        base: () => http().publicUrl?.replace(/\/$/, "") ?? url(),
        secret: node?.secret ?? randomBytes(32),
        warn: (message) => warn(redactor.mask(message)),
      });
  const commands = new CommandDoor({ ...options, needsAuth, sessionOf: operator.sessionOf });
  const close = async (): Promise<void> => {
    notices?.close();
    bridge.close();
    door.close();
    await operator.close(0);
    await listener?.close();
    node?.close();
  };
  try {
    listener = await openListener({
      http: http(),
      callsPerMinute: hub.config.config.limits.callsPerMinute,
      routes: [...mcp.routes, bridge.route, commands.route, ...operator.routes, ...(notices?.routes ?? [])],
      resolve: (text) => hub.internals.resolve(text),
      redactor,
      warn,
      home,
      onTokenUse: tokenUses(hub.internals.store, systemClock),
      onLogin: (event, caller) =>
        hub.audit.note({ event, door: "rest", user: caller.user ?? null, details: { by: auditKey(caller) } }),
      record: options.record,
      ready: readyOf(hub),
      troubles: () => hubHealth(hub.internals),
      logins: isEditor ? undefined : hub.internals.store?.settings,
      keySecret: await callerKeySecret(hub, warn),
      node,
    });
  } catch (error) {
    await close();
    throw error;
  }
  const opened = listener;
  if (ids !== undefined) hub.internals.logins.newState = () => ids.issue("login");
  if (!isEditor) hub.internals.logins.pageUrl = http().publicUrl?.replace(/\/$/, "") ?? opened.url;
  let limits = mcpLimits(http());
  return {
    listener: opened,
    busy: () => door.busy + commands.running.count + operator.busy(),
    async reconfigure() {
      const now = http();
      const wanted = mcpLimits(now);
      if (!isDeepStrictEqual(wanted, limits)) mcp.reconfigure(wanted);
      limits = wanted;
      await opened.reconfigure(now, hub.config.config.limits.callsPerMinute);
    },
    async stop() {
      const { shutdownMs } = http().limits;
      opened.beginStopping();
      if (node !== undefined) await new Promise((resolve) => setTimeout(resolve, DRAIN_NOTICE_MS));
      await opened.stopAccepting();
      // Before the doors close: a client whose stream just ends does not know what became of its call, or waits for it in vain.
      const cutOff = systemClock.after(shutdownMs, () =>
        hub.internals.endCalls(new ToolcribError("server_unavailable", "Toolcrib stopped before the call had ended.")),
      );
      const graceMs = shutdownMs + CUT_OFF_MS;
      await Promise.all([
        mcp.close(graceMs),
        operator.close(graceMs),
        opened.endForwarded(graceMs),
        endsWithin(Promise.all([door.whenIdle(), commands.running.whenIdle()]), { ms: graceMs }),
      ]);
      cutOff();
    },
    close,
  };
}

/** The same at every start, so that a login of the page with a token is that token's after a restart too. */
async function callerKeySecret(hub: Hub, warn: (message: string) => void): Promise<Uint8Array | undefined> {
  const settings = hub.internals.store?.settings;
  if (settings === undefined || hub.internals.cluster !== undefined) return undefined;
  try {
    return Buffer.from(await settings.setOnce("http.callerKey", randomBytes(32).toString("hex")), "hex");
  } catch (error) {
    warn(`Logins of the page end with the hub: ${asToolcribError(error).message}`);
    return undefined;
  }
}

/** In a cluster a server that reconnects does not make the node unready: other replicas serve, and it may move. */
function readyOf(hub: Hub): () => boolean {
  let hasBegun = false;
  if (hub.internals.cluster !== undefined) void hub.servers.settled().then(() => (hasBegun = true));
  return () => hasBegun || hub.servers.list().every(({ state }) => state !== "connecting");
}

function mcpLimits(http: HttpConfig): McpHttpLimits {
  const { sessions: maxSessions, streams: maxStreams, sessionIdleMs } = http.limits;
  return {
    ...{ maxSessions, maxStreams, sessionIdleMs },
    perCaller: quotaOf(http, maxSessions),
    streamsPerCaller: quotaOf(http, maxStreams),
  };
}

/** The doors, feed and metrics of operators; the feed and the metrics count from the start on. */
interface OperatorSide {
  readonly routes: readonly HttpRoute[];
  readonly sessionOf: (caller: Caller) => Session;
  busy(): number;
  close(graceMs: number): Promise<void>;
}

/** The doors of operators, metrics and the page. */
function openOperatorSide(
  options: HttpDoorsOptions & Pick<RestParts, "ids"> & { readonly url: () => string },
): OperatorSide {
  const { hub, redactor, http } = options;
  const sessions = new CallerSessions(hub, systemClock, { holdsCalls: true });
  // From the start, although no one may ever ask for it: `?after=0` has all events.
  const feed = new EventFeed(hub, redactor, { nodes: hub.internals.cluster });
  const limits = (): SocketLimits => {
    const now = http();
    const perMinute = requestsPerMinute(now, hub.config.config.limits.callsPerMinute);
    return {
      bodyBytes: now.limits.bodyBytes,
      streams: quotaOf(now, now.limits.streams),
      requestsPerMinute: perMinute,
      tooMany: (waitMs) => tooManyRequests("commands", waitMs, now, perMinute),
    };
  };
  const doors = new LazyDoors(async () => {
    const { openOperatorDoors } = await import("./operator-doors.ts");
    return openOperatorDoors({ ...options, holdsCalls: true, version: VERSION, sessions, feed, limits });
  });
  const metrics = new HubMetrics(
    {
      on: hub.on.bind(hub),
      servers: () => hub.servers.list(),
      sessions: () => hub.internals.sessions(),
      asked: () => hub.approvals.pending(),
      measures: () => hub.internals.measures(),
    },
    VERSION,
  );
  return {
    routes: [...doors.routes, metricsRoute(metrics), ...pageRoutes(new PageFiles(pageDir()), () => options.indexText)],
    sessionOf: (caller) => sessions.of(caller),
    busy: () => doors.busy(),
    async close(graceMs) {
      await doors.close(graceMs);
      sessions.close();
      feed.close();
      metrics.close();
    },
  };
}

/**
 * Loads the doors of operators with the first request for one of them: the contract's schemas and all operations are a quarter of
 * what a hub would load before it answers its first agent.
 */
export class LazyDoors {
  readonly #open: () => Promise<OperatorDoors>;
  #opening: Promise<OperatorDoors> | undefined;
  #opened: OperatorDoors | undefined;
  #isClosed = false;

  constructor(open: () => Promise<OperatorDoors>) {
    this.#open = open;
  }

  readonly routes: readonly HttpRoute[] = [
    ...[API_PATH, EVENTS_PATH].map((path) => this.#route(path, "any")),
    ...[API_DOCUMENT_PATH, API_DOCS_PATH].map((path) => this.#route(path, "public")),
    { ...this.#route(SOCKET_PATH, "any"), upgrade: (upgrade) => void this.#upgrade(upgrade) },
  ];

  busy(): number {
    return this.#opened?.busy() ?? 0;
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    // Doors that could not be opened have nothing to close, but what is closed after them has.
    const doors = await this.#opening?.catch(() => undefined);
    await doors?.close(graceMs);
  }

  #route(path: string, access: HttpRoute["access"]): HttpRoute {
    return { path, access, handle: async (exchange) => (await this.#at(path)).handle(exchange) };
  }

  async #upgrade(upgrade: HttpUpgrade): Promise<void> {
    const { socket } = upgrade;
    // The client may go away meanwhile.
    const onError = (): void => void socket.destroy();
    socket.on("error", onError);
    try {
      (await this.#at(SOCKET_PATH)).upgrade?.(upgrade);
    } catch (error) {
      refuseUpgrade(upgrade, asToolcribError(error));
    } finally {
      socket.off("error", onError);
    }
  }

  async #at(path: string): Promise<HttpRoute> {
    this.#opened ??= await this.#load();
    const route = this.#opened.routes.find((each) => each.path === path);
    if (route === undefined) throw notFoundAt(path);
    return route;
  }

  #load(): Promise<OperatorDoors> {
    if (this.#isClosed && this.#opening === undefined) {
      throw new ToolcribError("server_unavailable", "The hub is shutting down.", { details: { sent: false } });
    }
    this.#opening ??= this.#open().catch((error: unknown) => {
      // The next request tries again.
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }
}

/** Where the built page is: beside the bundle, or in dist for a hub that runs from its sources. */
function pageDir(): string {
  const here = import.meta.dirname;
  const beside = join(here, "..", "web");
  return existsSync(join(beside, "index.html")) ? beside : join(here, "..", "..", "..", "dist", "web");
}
