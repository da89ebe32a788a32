/** The hub with its HTTP doors, until it is told to stop. */
import { constants } from "node:os";
import { toolcribHome } from "../../config/find-config.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { approvalRoutes } from "../../doors/http/approvals.ts";
import { openListener, type HttpListener } from "../../doors/http/listener.ts";
import { McpDoor } from "../../doors/mcp/door.ts";
import { McpHttp } from "../../doors/mcp/http/mcp-http.ts";
import { createHub } from "../../hub/create.ts";
import type { Hub } from "../../hub/hub.ts";
import { systemClock } from "../../model/clock.ts";
import { ToolcribError, asToolcribError } from "../../model/errors.ts";
import { type HttpConfig, HttpSchema } from "../../model/http-config.ts";
import { Secrets } from "../../secrets/secrets.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Invocation } from "../command.ts";
import { loadForCommand } from "../command-config.ts";
import { noteRequest, tidyUp } from "../lean-start.ts";
import { addresses, printBanner, type Served, serverLine } from "../serve/banner.ts";
import { logFor, logHubEvents } from "../serve/hub-log.ts";

const INDEX = `This is Toolcrib.

/mcp            MCP, Streamable HTTP; /mcp/<role> for one role
/sse            MCP, the older HTTP+SSE
/api/v1/approvals   calls that wait for a yes (admin token)
/healthz /readyz
`;

export async function run(invocation: Invocation): Promise<number> {
  const { out, env } = invocation;
  const log = logFor(invocation);
  const config = await loadForCommand(invocation);
  const http = httpOf(config, invocation);
  const stopped = stopSignal();
  const hub = await createHub(config, { wait: false, offers: "all", door: "mcp", env, redactor: out.redactor });
  let listener: HttpListener | undefined;
  const door = new McpDoor({ hub, approveCommand: (id) => `toolcrib approve ${id} --hub ${listener?.url ?? "<url>"}` });
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
        ...approvalRoutes(hub, out.redactor),
      ],
      resolve: resolver(config, invocation),
      redactor: out.redactor,
      warn: (message) => log.warn(message),
      home: toolcribHome(env),
      index: () => INDEX,
      ready: () => hub.servers().every(({ state }) => state !== "connecting"),
    });
    const served: Served = { listener, config, needsToken: http.auth !== undefined };
    if (out.json) out.value({ ...addresses(served), pid: process.pid });
    else printBanner(out, served);
    const stopWatching = goLive(hub, listener, mcp, invocation, log);
    await showServers(hub, invocation, log, stopped.promise);
    logHubEvents(hub, log, listener.url);
    tidyUp();
    const signal = await stopped.promise;
    log.info("stopping", { signal });
    stopWatching();
    listener.stopAccepting();
    await mcp.close(http.limits.shutdownMs);
    return 128 + constants.signals[signal];
  } finally {
    door.close();
    await listener?.close();
    await hub.close();
    stopped.dispose();
  }
}

function httpOf(config: LoadedConfig, { flags }: Invocation): HttpConfig {
  const port = flags.text("port");
  if (port !== undefined && !/^\d{1,5}$/.test(port)) {
    throw new ToolcribError("invalid_arguments", `--port must be a number, not "${port}".`);
  }
  const host = flags.text("host");
  return HttpSchema.parse({
    ...config.config.http,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: Number(port) }),
  });
}

function resolver(config: LoadedConfig, { env, out }: Invocation): (text: string) => Promise<string> {
  const secrets = new Secrets({ env, redactor: out.redactor, ...config.config.secrets });
  return async (text) => (await secrets.resolve(text, { baseDir: config.baseDir })).value;
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
    if (out.json) log.info(`server ${info.state}`, { server: info.id });
    else out.line(line);
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
