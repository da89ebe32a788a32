/** All HTTP doors of a hub behind one listener, and how they open, change and end together. */
import { writtenKey } from "../../doors/http/api/recorded-changes.ts";
import type { HttpRoute } from "../../doors/http/exchange.ts";
import { type HttpListener, openListener } from "../../doors/http/listener.ts";
import { McpDoor } from "../../doors/mcp/door.ts";
import { McpHttp, type McpHttpLimits } from "../../doors/mcp/http/mcp-http.ts";
import { type NodeIds, openNodeIds } from "../../hub/cluster/node-ids.ts";
import { troublesOf } from "../../hub/cluster/troubles.ts";
import type { Hub } from "../../hub/hub.ts";
import { systemClock } from "../../model/clock.ts";
import type { HttpConfig } from "../../model/http-config.ts";
import { quotaOf } from "../../policy/quota.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { ApiParts } from "../../doors/http/api/operation.ts";
import { openOperatorDoors } from "./operator-doors.ts";

interface HttpDoorsOptions extends Pick<ApiParts, "commandLine"> {
  readonly hub: Hub;
  /** The one that holds, with what the command line sets. */
  readonly http: () => HttpConfig;
  readonly redactor: Redactor;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
  /** What programs are told at `/`. */
  readonly words: () => string;
  readonly warn: (message: string) => void;
  /** A client asks something of MCP. */
  readonly onMcpRequest?: () => void;
}

export interface HttpDoors {
  readonly listener: HttpListener;
  /** The config has changed. */
  reconfigure(): Promise<void>;
  /** In order: balancers notice first, what is under way finishes in its time, and the rest is told and ended. */
  stop(): Promise<void>;
  /** Ends what is left. Safe to call twice. */
  close(): Promise<void>;
}

/** So long a node that ends says that it is not ready and still serves, for balancers to send requests elsewhere. */
const NOTICE_MS = 1000;

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
  const operator = openOperatorDoors({ ...options, url, ids });
  const close = async (): Promise<void> => {
    door.close();
    await operator.close(0);
    await listener?.close();
    node?.close();
  };
  try {
    listener = await openListener({
      http: http(),
      callsPerMinute: hub.config.config.limits.callsPerMinute,
      routes: [...mcpRoutes(mcp, options.onMcpRequest), ...operator.routes],
      resolve: (text) => hub.resolve(text),
      redactor,
      warn,
      home,
      onLogin: (event, caller) =>
        hub.audit.note({ event, door: "rest", user: caller.user ?? null, details: { by: writtenKey(caller) } }),
      ready: readyOf(hub),
      troubles: () => troublesOf(hub),
      node,
    });
  } catch (error) {
    await close();
    throw error;
  }
  const opened = listener;
  return {
    listener: opened,
    async reconfigure() {
      const now = http();
      mcp.reconfigure(mcpLimits(now));
      await opened.reconfigure(now, hub.config.config.limits.callsPerMinute);
    },
    async stop() {
      const { shutdownMs } = http().limits;
      opened.beginStopping();
      if (node !== undefined) await new Promise((resolve) => setTimeout(resolve, NOTICE_MS));
      opened.stopAccepting();
      await Promise.all([mcp.close(shutdownMs), operator.close(shutdownMs), opened.endHandedOn(shutdownMs)]);
    },
    close,
  };
}

/** In a cluster a server that connects again is no reason to send clients away: others are there, and it may move. */
function readyOf(hub: Hub): () => boolean {
  let hasBegun = false;
  if (hub.cluster !== undefined) void hub.settled().then(() => (hasBegun = true));
  return () => hasBegun || hub.servers().every(({ state }) => state !== "connecting");
}

function mcpLimits(http: HttpConfig): McpHttpLimits {
  const { sessions: maxSessions, streams: maxStreams, sessionIdleMs } = http.limits;
  return {
    ...{ maxSessions, maxStreams, sessionIdleMs },
    perCaller: quotaOf(http, maxSessions),
    streamsPerCaller: quotaOf(http, maxStreams),
  };
}

function mcpRoutes(mcp: McpHttp, onRequest: () => void = () => {}): HttpRoute[] {
  return [
    {
      path: "/mcp",
      access: "read",
      handle(exchange) {
        onRequest();
        return mcp.handleMcp(exchange);
      },
    },
    { path: "/sse", access: "read", handle: (exchange) => mcp.handleSse(exchange) },
    { path: "/messages", access: "read", handle: (exchange) => mcp.handleMessages(exchange) },
  ];
}
