/** The hub with its HTTP doors, until it is told to stop. */
import { constants } from "node:os";
import { toolcribHome } from "../../config/find-config.ts";
import { writtenKey } from "../../doors/http/api/recorded-changes.ts";
import { openListener, type HttpListener } from "../../doors/http/listener.ts";
import { McpDoor } from "../../doors/mcp/door.ts";
import { McpHttp } from "../../doors/mcp/http/mcp-http.ts";
import { createHub } from "../../hub/create.ts";
import type { Hub } from "../../hub/hub.ts";
import { systemClock } from "../../model/clock.ts";
import { ToolcribError, asToolcribError } from "../../model/errors.ts";
import { type HttpConfig, HttpSchema } from "../../model/http-config.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Invocation } from "../command.ts";
import { loadForCommand } from "../command-config.ts";
import { noteRequest, tidyUp } from "../lean-start.ts";
import { openOperatorDoors } from "../serve/operator-doors.ts";
import { ownCommand } from "../serve/own-command.ts";
import { addresses, printBanner, type Served, serverLine } from "../serve/banner.ts";
import { logFor, logHubEvents, logServer, logWarnings } from "../serve/hub-log.ts";

const INDEX = `This is Toolcrib.

/mcp            MCP, Streamable HTTP; /mcp/<role> for one role
/sse            MCP, the older HTTP+SSE
/api/v1         REST; /api/v1/openapi.json describes it, /api/docs shows it
/ws             WebSocket; /api/v1/events the same events as SSE
/               the web page, in a browser; \`toolcrib login\` prints a link that opens it
/metrics /healthz /readyz
`;

export async function run(invocation: Invocation): Promise<number> {
  const { out, env } = invocation;
  const log = logFor(invocation);
  const config = await loadForCommand(invocation);
  const http = httpOf(config, invocation);
  const stopped = stopSignal();
  const hub = await createHub(config, { wait: false, offers: "all", door: "hub", env, redactor: out.redactor });
  logWarnings(hub, log);
  let listener: HttpListener | undefined;
  const url = (): string => listener?.url ?? "<url>";
  // Clients read it too: it says nothing of this machine.
  const approveCommand = (id: string): string => `toolcrib approve ${id} --hub ${url()}`;
  const door = new McpDoor({ hub, approveCommand });
  const mcp = new McpHttp({
    door,
    clock: systemClock,
    basePath: "/mcp",
    ssePath: "/sse",
    messagesPath: "/messages",
    maxSessions: http.limits.sessions,
    maxStreams: http.limits.streams,
    sessionIdleMs: http.limits.sessionIdleMs,
    warn: (message) => log.warn(message),
  });
  const operator = openOperatorDoors({
    hub,
    redactor: out.redactor,
    http: () => httpOf(hub.config, invocation),
    url,
    approveCommand,
    words: () => INDEX,
    warn: (message) => log.warn(message),
    env,
    commandLine: givenHere(invocation),
  });
  try {
    listener = await openListener({
      http,
      callsPerMinute: config.config.limits.callsPerMinute,
      routes: [
        {
          path: "/mcp",
          access: "read",
          handle(exchange) {
            noteRequest();
            return mcp.handleMcp(exchange);
          },
        },
        { path: "/sse", access: "read", handle: (exchange) => mcp.handleSse(exchange) },
        { path: "/messages", access: "read", handle: (exchange) => mcp.handleMessages(exchange) },
        ...operator.routes,
      ],
      resolve: (text) => hub.resolve(text),
      redactor: out.redactor,
      warn: (message) => log.warn(message),
      home: toolcribHome(env),
      onLogin: (event, caller) =>
        hub.audit.note({ event, door: "rest", user: caller.user ?? null, details: { by: writtenKey(caller) } }),
      ready: () => hub.servers().every(({ state }) => state !== "connecting"),
    });
    const served: Served = { listener, config, needsToken: http.auth !== undefined, command: ownCommand(env) };
    if (out.json) out.value({ ...addresses(served), login: listener.loginLink(), pid: process.pid });
    else printBanner(out, served);
    const stopWatching = goLive(hub, listener, mcp, invocation, log);
    await showServers(hub, invocation, log, stopped.promise);
    logHubEvents(hub, log, listener.url);
    tidyUp();
    const signal = await stopped.promise;
    log.info("stopping", { signal });
    stopWatching();
    listener.stopAccepting();
    await Promise.all([mcp.close(http.limits.shutdownMs), operator.close(http.limits.shutdownMs)]);
    return 128 + constants.signals[signal];
  } finally {
    door.close();
    await operator.close(0);
    await listener?.close();
    await hub.close();
    stopped.dispose();
  }
}

function httpOf(
  { config }: { readonly config: { readonly http: Partial<HttpConfig> } },
  { flags }: Invocation,
): HttpConfig {
  const port = flags.text("port");
  if (port !== undefined && !/^\d{1,5}$/.test(port)) {
    throw new ToolcribError("invalid_arguments", `--port must be a number, not "${port}".`);
  }
  const host = flags.text("host");
  return HttpSchema.parse({
    ...config.http,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: Number(port) }),
  });
}

/** Config keys that options of the command set. */
function givenHere(invocation: Invocation): Record<string, { option: string; value: unknown }> {
  const { host, port } = httpOf({ config: { http: {} } }, invocation);
  const { flags } = invocation;
  return {
    ...(flags.text("host") === undefined ? {} : { "http.host": { option: "--host", value: host } }),
    ...(flags.text("port") === undefined ? {} : { "http.port": { option: "--port", value: port } }),
  };
}

/** Config changes and SIGHUP are taken up while it runs. */
function goLive(hub: Hub, listener: HttpListener, mcp: McpHttp, invocation: Invocation, log: Log): () => void {
  const stopWatching = hub.watch();
  const reload = (): void => {
    hub.reload().catch((error: unknown) => log.error(`The config was not taken up: ${asToolcribError(error).message}`));
  };
  process.on("SIGHUP", reload);
  const stopListening = hub.on("reload", () => {
    const http = httpOf(hub.config, invocation);
    const { sessions: maxSessions, streams: maxStreams, sessionIdleMs } = http.limits;
    mcp.reconfigure({ maxSessions, maxStreams, sessionIdleMs });
    const { callsPerMinute } = hub.config.config.limits;
    listener.reconfigure(http, callsPerMinute).catch((error: unknown) => log.error(asToolcribError(error).message));
  });
  return () => {
    stopWatching();
    stopListening();
    process.off("SIGHUP", reload);
  };
}

/** Says of each server when it is up or has failed, until all are. */
async function showServers(hub: Hub, { out }: Invocation, log: Log, stopped: Promise<unknown>): Promise<void> {
  const shown = new Set<string>();
  const show = (info: ReturnType<Hub["servers"]>[number]): void => {
    const line = serverLine(out, info);
    if (line === undefined || shown.has(info.id)) return;
    shown.add(info.id);
    if (out.json || log.format === "json") logServer(log, info);
    if (!out.json) out.line(line);
  };
  const stop = hub.on("server", ({ info }) => show(info));
  for (const info of hub.servers()) show(info);
  await Promise.race([hub.settled(), stopped]);
  stop();
  for (const { id, state } of hub.servers()) {
    const isLate = !shown.has(id) && state !== "disabled" && state !== "idle";
    if (isLate && !out.json) out.line(`  ${out.paint("yellow", "late  ")}  ${id.padEnd(14)} it joins when it is ready`);
  }
}

interface Stopped {
  readonly promise: Promise<NodeJS.Signals>;
  dispose(): void;
}

/** Resolves with the first of the signals that end it. A second one ends the process at once. */
function stopSignal(): Stopped {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let told = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (told) process.exit(128 + constants.signals[signal]);
    told = true;
    resolve(signal);
  };
  for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, onSignal);
  return {
    promise,
    dispose: () => {
      for (const name of ["SIGINT", "SIGTERM"] as const) process.off(name, onSignal);
    },
  };
}
