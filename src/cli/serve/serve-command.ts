/** `toolcrib serve`: the hub with its HTTP doors, until a signal stops it. */
import { once } from "node:events";
import { realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { configFiles, toolcribHome } from "../../config/find-config.ts";
import { shellCommand } from "../../hub/clients/gateway-command.ts";
import { createHub } from "../../hub/create/create-hub.ts";
import type { Hub } from "../../hub/hub.ts";
import { ToolcribError, asToolcribError } from "../../model/errors.ts";
import { type HttpConfig, HttpSchema } from "../../model/config.ts";
import { VERSION } from "../../model/version.ts";
import type { Log } from "../../telemetry/log.ts";
import { endsWithin } from "../../base/async.ts";
import type { Invocation } from "../command.ts";
import { loadCommandConfig } from "../command-config.ts";
import { listenForStopSignals } from "../signals.ts";
import { suggestGuard } from "../suggest-guard.ts";
import type { HttpDoors } from "./http-doors.ts";
import { replaceHub } from "../hub/start-hub.ts";
import { stopBackgroundHub } from "../hub/stop-hub.ts";
import { BackgroundHub } from "./background-hub.ts";
import {
  addresses,
  machineFacts,
  printBanner,
  printOpenLine,
  type Served,
  serverLine,
  sharedMachineWarning,
} from "./banner.ts";
import { logFor, logHubEvents, logServer, logStart, logWarnings, startSummary } from "./hub-log.ts";
import type { ServerInfo } from "../../model/server-state.ts";

const INDEX = `This is Toolcrib.

/mcp            MCP, Streamable HTTP; /mcp/<role> for one role
/sse            MCP, the older HTTP+SSE
/api/v1         REST; /api/v1/openapi.json describes it, /api/docs shows it
/ws             WebSocket; /api/v1/events the same events as SSE
/               the web page, in a browser; \`toolcrib login\` prints a link that opens it
/metrics /healthz /readyz
`;

export async function run(invocation: Invocation): Promise<number> {
  const { out, env, flags, cwd } = invocation;
  const log = logFor(invocation);
  const background = flags.has("background");
  const home = toolcribHome(env);
  const files = configFiles({ config: flags.text("config"), env, cwd, home });
  const config = await loadCommandConfig(invocation, { asks: !background });
  const http = httpOf(config, invocation);
  const stopped = listenForStopSignals({ onSecond: "exit" });
  // Its clients connect again, to this one.
  if (!background) await stopBackgroundHub(home, files);
  const { redactor } = out;
  const hub = await createHub(config, { wait: false, door: "hub", cluster: true, env, redactor, otelExport: true });
  logWarnings(hub, log);
  let doors: HttpDoors | undefined;
  const urlOf = (): string | undefined => doors?.listener.url;
  const logsServers = out.json || log.format === "json";
  if (logsServers) {
    // Before the doors open: servers may fail meanwhile.
    logHubEvents(hub, log, urlOf);
    void logStart(hub, log);
  }
  let life: BackgroundHub | undefined;
  let successor: string | undefined;
  const open = async (port?: number): Promise<HttpDoors> => {
    // Loaded here: the programs of the servers start meanwhile.
    const { openHttpDoors } = await import("./http-doors.ts");
    return openHttpDoors({
      hub,
      http: () => ({ ...httpOf(hub.config, invocation), ...(port === undefined ? {} : { port }) }),
      redactor,
      env,
      home,
      indexText: INDEX,
      warn: (message) => log.warn(message),
      commandLine: overriddenKeys(invocation),
      runCommandLine: invocation.runCommandLine,
      record: { config: files, background, clientEnv: config.config.hub.clientEnv },
      onBridge: (hello) => life?.clientCame(hello),
      endHub: background ? () => stopped.stop() : undefined,
    });
  };
  try {
    doors = await (background ? open().catch((error: unknown) => openElsewhere(error, () => open(0))) : open());
    if (background) {
      const { busy } = doors;
      const entry = process.argv[1] ?? "";
      const end = (reason: string, next?: string): void => {
        log.info("ending", { reason });
        successor = next;
        // The way of a signal: calls in progress finish first.
        stopped.stop();
      };
      life = new BackgroundHub({ hub, busy, end, entry, packageFile: packageFile(entry) });
      log.info("started in the background", { url: doors.listener.url, version: VERSION });
    }
    const { listener } = doors;
    const { cluster } = hub.internals;
    const needsToken = http.auth !== undefined;
    const served: Served = { listener, config, needsToken, cluster, command: shellCommand(env, "here") };
    if (background) await out.flush();
    else if (out.json) out.value(started(served));
    else if (log.format === "json") out.record({ ...listening(), ...started(served) });
    else printBanner(out, served);
    const shared = needsToken ? undefined : sharedMachineWarning(machineFacts());
    if (shared !== undefined) log.warn(shared);
    if (!background) await suggestGuard(hub, (message) => log.warn(message));
    const stopWatching = applyConfigChanges(hub, doors, log);
    if (!logsServers) {
      await showServers(hub, invocation, log, stopped.signal);
      if (!stopped.signal.aborted) printOpenLine(out, served);
      logHubEvents(hub, log, urlOf);
    }
    if (!stopped.signal.aborted) await once(stopped.signal, "abort");
    log.info("stopping", { signal: stopped.name });
    stopWatching();
    await doors.stop();
    return stopped.exitCode ?? 0;
  } finally {
    life?.stop();
    const close = async (): Promise<void> => {
      await doors?.close();
      await hub.close();
      stopped.dispose();
    };
    if (successor === undefined) await close();
    else {
      const place = { home, env, cwd, files, config: flags.text("config"), entry: successor };
      await replaceHub(place, close).catch((error: unknown) => {
        log.error(asToolcribError(error).message);
        return close();
      });
    }
  }
}

function started(served: Served): object {
  return { ...addresses(served), loginCommand: `${served.command} login`, pid: process.pid };
}

/** The start of a line like those of the log, on stdout, whatever the level. */
function listening(): object {
  return { time: new Date().toISOString(), level: "info", message: "listening", version: VERSION };
}

function packageFile(entry: string): string {
  return join(dirname(realpathSync(entry)), "..", "package.json");
}

/** Clients find it by its file; the configured port is for people. */
function openElsewhere(error: unknown, open: () => Promise<HttpDoors>): Promise<HttpDoors> {
  if (asToolcribError(error).code === "conflict") return open();
  throw error;
}

function httpOf(
  { config }: { readonly config: { readonly http: Partial<HttpConfig> } },
  { flags }: Invocation,
): HttpConfig {
  const port = flags.text("port");
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= 65_535)) {
    throw new ToolcribError("invalid_arguments", `--port must be a number from 0 to 65535, not "${port}".`);
  }
  const { http } = config;
  const given = {
    ...http,
    // Nothing that starts by itself is open to other machines.
    host: flags.has("background") ? "127.0.0.1" : (flags.text("host") ?? http.host),
    port: port === undefined ? http.port : Number(port),
  };
  return HttpSchema.parse(given, { jitless: true });
}

/** The config keys that options of the command override. */
function overriddenKeys(invocation: Invocation): Record<string, { option: string; value: unknown }> {
  const { host, port } = httpOf({ config: { http: {} } }, invocation);
  const { flags } = invocation;
  return {
    ...(flags.text("host") === undefined ? {} : { "http.host": { option: "--host", value: host } }),
    ...(flags.text("port") === undefined ? {} : { "http.port": { option: "--port", value: port } }),
  };
}

/** Applies config changes while it runs; SIGHUP reloads the config. */
function applyConfigChanges(hub: Hub, doors: HttpDoors, log: Log): () => void {
  const stopWatching = hub.internals.watch();
  const reload = (): void => {
    hub.reload().catch((error: unknown) => log.error(`The config was not reloaded: ${asToolcribError(error).message}`));
  };
  process.on("SIGHUP", reload);
  let applied = hub.config.config;
  const stopListening = hub.on("reload", () => {
    // Servers that come and go through the store leave the settings as they are.
    if (hub.config.config === applied) return;
    applied = hub.config.config;
    doors.reconfigure().catch((error: unknown) => log.error(asToolcribError(error).message));
  });
  return () => {
    stopWatching();
    stopListening();
    process.off("SIGHUP", reload);
  };
}

/** Prints each server when it is ready or has failed, until all are. */
async function showServers(hub: Hub, { out }: Invocation, log: Log, signal: AbortSignal): Promise<void> {
  const shown = new Set<string>();
  const show = (info: ServerInfo): void => {
    if (info.state === "restarting") logServer(log, info);
    if (info.progress !== undefined && !shown.has(info.id)) {
      out.line(`  ${out.paint("yellow", "wait  ")}  ${info.id.padEnd(14)} ${info.progress}`);
    }
    const line = serverLine(out, info);
    if (line === undefined || shown.has(info.id)) return;
    shown.add(info.id);
    out.line(line);
  };
  const stop = hub.on("server", ({ info }) => show(info));
  for (const info of hub.servers.list()) show(info);
  await endsWithin(hub.servers.settled(), { signal });
  stop();
  for (const { id, state } of hub.servers.list()) {
    const isLate = !shown.has(id) && state !== "disabled" && state !== "idle";
    if (isLate) out.line(`  ${out.paint("yellow", "late  ")}  ${id.padEnd(14)} not ready yet`);
  }
  if (shown.size > 0) out.line(`  ${startSummary(hub).message}`);
}
