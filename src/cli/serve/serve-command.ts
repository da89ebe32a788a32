/** `toolcrib serve`: the hub with its HTTP doors, until a signal stops it. */
import { delimiter, dirname, join, relative } from "node:path";
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { once } from "node:events";
import { configFiles, toolcribHome } from "../../config/find-config.ts";
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
import { type HttpDoors, openHttpDoors } from "./http-doors.ts";
import { stopBackgroundHub } from "../hub/stop-hub.ts";
import { BackgroundHub } from "./background-hub.ts";
import { logFor, logHubEvents, logServer, logWarnings } from "./hub-log.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { AgentClient, WrittenServer } from "../../clients/agent-client.ts";
import { claudeDesktop, cursor, vscode } from "../../clients/json-clients.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { HttpListener } from "../../doors/http/listener.ts";
import { gatewayCommand, ownBin } from "../../hub/clients/gateway-command.ts";
import type { Output } from "../output.ts";

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
  const hub = await createHub(config, { wait: false, door: "hub", cluster: true, env, redactor });
  logWarnings(hub, log);
  let doors: HttpDoors | undefined;
  let life: BackgroundHub | undefined;
  const open = (port?: number): Promise<HttpDoors> =>
    openHttpDoors({
      hub,
      http: () => ({ ...httpOf(hub.config, invocation), ...(port === undefined ? {} : { port }) }),
      redactor,
      env,
      home,
      indexText: INDEX,
      warn: (message) => log.warn(message),
      commandLine: overriddenKeys(invocation),
      runCommandLine: invocation.runCommandLine,
      record: { config: files, background },
      onBridge: ({ version }) => life?.clientCame(version),
    });
  try {
    doors = await (background ? open().catch((error: unknown) => openElsewhere(error, () => open(0))) : open());
    if (background) {
      const { busy } = doors;
      life = new BackgroundHub({ hub, busy, end: (reason) => endItself(log, reason), packageFile: packageFile() });
      log.info("started in the background", { url: doors.listener.url, version: VERSION });
    }
    const { listener } = doors;
    const { cluster } = hub.internals;
    const needsToken = http.auth !== undefined;
    const served: Served = { listener, config, needsToken, cluster, command: shellCommand(env) };
    if (background) await out.flush();
    else if (out.json) out.value({ ...addresses(served), loginCommand: `${served.command} login`, pid: process.pid });
    else printBanner(out, served);
    const shared = needsToken ? undefined : sharedMachineWarning(machineFacts());
    if (shared !== undefined) log.warn(shared);
    const stopWatching = applyConfigChanges(hub, doors, log);
    await showServers(hub, invocation, log, stopped.signal);
    logHubEvents(hub, log, listener.url);
    if (!stopped.signal.aborted) await once(stopped.signal, "abort");
    log.info("stopping", { signal: stopped.name });
    stopWatching();
    await doors.stop();
    return stopped.exitCode ?? 0;
  } finally {
    life?.stop();
    await doors?.close();
    await hub.close();
    stopped.dispose();
  }
}

function packageFile(): string {
  return join(dirname(realpathSync(process.argv[1] ?? "")), "..", "package.json");
}

/** The way of a signal: calls in progress finish first. */
function endItself(log: Log, reason: string): void {
  log.info("ending", { reason });
  process.kill(process.pid, "SIGTERM");
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
  if (port !== undefined && !/^\d{1,5}$/.test(port)) {
    throw new ToolcribError("invalid_arguments", `--port must be a number, not "${port}".`);
  }
  const { http } = config;
  return HttpSchema.parse({
    ...http,
    // Nothing that starts by itself is open to other machines.
    host: flags.has("background") ? "127.0.0.1" : (flags.text("host") ?? http.host),
    port: port === undefined ? http.port : Number(port),
  });
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
async function showServers(hub: Hub, { out, flags }: Invocation, log: Log, signal: AbortSignal): Promise<void> {
  const isQuiet = out.json || flags.has("background");
  const shown = new Set<string>();
  const show = (info: ServerInfo): void => {
    if (info.progress !== undefined && !shown.has(info.id)) {
      if (out.json || log.format === "json") logServer(log, info);
      else out.line(`  ${out.paint("yellow", "wait  ")}  ${info.id.padEnd(14)} ${info.progress}`);
    }
    const line = serverLine(out, info);
    if (line === undefined || shown.has(info.id)) return;
    shown.add(info.id);
    if (out.json || log.format === "json") logServer(log, info);
    if (!isQuiet) out.line(line);
  };
  const stop = hub.on("server", ({ info }) => show(info));
  for (const info of hub.servers.list()) show(info);
  await endsWithin(hub.servers.settled(), { signal });
  stop();
  for (const { id, state } of hub.servers.list()) {
    const isLate = !shown.has(id) && state !== "disabled" && state !== "idle";
    if (isLate && !isQuiet) out.line(`  ${out.paint("yellow", "late  ")}  ${id.padEnd(14)} not ready yet`);
  }
}

// The output of `serve` at its start: addresses, client configs, and a warning on shared machines.

export interface Served {
  readonly listener: Pick<HttpListener, "url" | "loginLink">;
  readonly config: LoadedConfig;
  readonly needsToken: boolean;
  /** That this hub is a node of. */
  readonly cluster?: Pick<Cluster, "name" | "node"> | undefined;
  readonly command: string;
}

export function addresses({ listener: { url } }: Served): Record<string, string> {
  return {
    page: `${url}/`,
    mcp: `${url}/mcp`,
    sse: `${url}/sse`,
    api: `${url}/api/v1`,
    ws: `${url.replace(/^http/, "ws")}/ws`,
    approvals: `${url}/api/v1/approvals`,
    metrics: `${url}/metrics`,
    health: `${url}/healthz`,
  };
}

export function printBanner(out: Output, served: Served): void {
  const { listener, config, needsToken, cluster, command } = served;
  const { mcp = "", sse = "", health = "", metrics = "" } = addresses(served);
  const row = (name: string, text: string): void => out.line(`  ${name.padEnd(10)} ${text}`);
  out.line(`${out.paint("bold", `Toolcrib ${VERSION}`)} at ${listener.url}`);
  out.line("");
  // Not into a log, whose readers would get full access.
  if (out.isLive) {
    row("Page", `${listener.loginLink()}   (works once)`);
    row("", `${command} login   prints a new link`);
  } else row("Page", `${listener.url}/   (${command} login   prints a link that opens it)`);
  row("MCP", `${mcp}   (one role: ${mcp}/<role>)`);
  row("MCP, SSE", sse);
  row("API", `${listener.url}/api/docs`);
  row("Health", `${health}, ${listener.url}/readyz, ${metrics}`);
  row("Approve", `${command} approve`);
  row("Config", config.file === null ? "none found; toolcrib add creates one" : `${config.file} (changes are applied)`);
  if (config.project !== undefined) row("Project", `${config.project.file} (changes are applied once trusted)`);
  if (cluster !== undefined) row("Cluster", `${cluster.name}; this node is ${cluster.node.name}`);
  if (needsToken) row("Access", "clients need a token of http.auth");
  out.line("");
  out.line("Paste into your client:");
  const mayStart = cluster === undefined;
  for (const { client, text } of clientSnippets({ url: mcp, needsToken, configFile: config.file, mayStart })) {
    out.line("");
    out.line(`  ${out.paint("dim", client)}`);
    out.line(`  ${text}`);
  }
  out.line("");
}

/** Undefined while the server is connecting. */
export function serverLine(out: Output, { id, state, toolCount, lastError, hint }: ServerInfo): string | undefined {
  const name = id.padEnd(14);
  if (state === "ready")
    return `  ${out.paint("green", "ready ")}  ${name} ${toolCount} ${toolCount === 1 ? "tool" : "tools"}`;
  if (state === "failed") {
    const advice = hint === undefined ? "" : ` ${hint}`;
    return `  ${out.paint("red", "failed")}  ${name} ${lastError ?? ""}${advice}`.replaceAll("\n", " ");
  }
  return undefined;
}

interface HubAddress {
  readonly url: string;
  readonly needsToken: boolean;
  /** The config file of the hub, for clients that start their servers themselves. */
  readonly configFile: string | null;
  /** Whether a client may start a hub with that file. Beside a cluster node it would be a separate hub outside the cluster. */
  readonly mayStart?: boolean;
}

interface ClientSnippet {
  readonly client: string;
  readonly text: string;
}

const ID = "toolcrib";
const TOKEN = "Bearer <token>";

function clientSnippets({ url, needsToken, configFile, mayStart = true }: HubAddress): ClientSnippet[] {
  const headers = needsToken ? { headers: { Authorization: TOKEN } } : {};
  const hub: WrittenServer = { url, transport: "http", ...headers };
  const claudeCode = [
    `claude mcp add --transport http ${ID}`,
    url,
    ...(needsToken ? [`--header "Authorization: ${TOKEN}"`] : []),
  ];
  const desktop = {
    client: "Claude Desktop (claude_desktop_config.json)",
    text: fileWith(claudeDesktop, gatewayCommand({ configFile })),
  };
  return [
    { client: "Claude Code", text: claudeCode.join(" ") },
    { client: "Cursor (mcp.json)", text: fileWith(cursor, hub) },
    { client: "VS Code (.vscode/mcp.json)", text: fileWith(vscode, hub) },
    ...(mayStart ? [desktop] : []),
  ];
}

/** A complete file with only this server. */
function fileWith(client: AgentClient, server: WrittenServer): string {
  const path = client.pathOf(ID, { scope: "user", path: "" }).filter((step) => typeof step === "string");
  const entry: unknown = client.write(ID, server);
  return JSON.stringify(path.reduceRight((inner, key) => ({ [key]: inner }), entry));
}

/** The shell command that starts this Toolcrib with this home, ready to be copied. */
export function shellCommand(env: NodeJS.ProcessEnv): string {
  const home = toolcribHome(env);
  const isDefaultHome = home === toolcribHome({ ...env, TOOLCRIB_HOME: undefined });
  const isInstalled = (env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, "toolcrib")));
  const program = isInstalled ? "toolcrib" : `node ${shellQuoted(shortestPath(ownBin()))}`;
  return isDefaultHome ? program : `TOOLCRIB_HOME=${shellQuoted(home)} ${program}`;
}

function shortestPath(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith("..") ? path : fromHere;
}

function shellQuoted(text: string): string {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

interface MachineFacts {
  /** Of this process; undefined on systems without user ids. */
  readonly uid: number | undefined;
  /** The text of `/etc/passwd`. */
  readonly passwd: string;
  /** The names in `/run/user`: ids of logged-in users, including those of a directory service. */
  readonly loggedIn: readonly string[];
}

/** Lower ids are service accounts, higher ones include `nobody`. */
const FIRST_UID = 1000;
const LAST_UID = 60_000;
const NO_SHELL = /(?:^|\/)(?:nologin|false|sync|halt|shutdown)$/;
const MAX_NAMED_USERS = 3;

/** Users who can log in, besides root and the user of this process. Without `http.auth` they can use a hub on loopback. */
export function otherUsers({ uid, passwd, loggedIn }: MachineFacts): string[] {
  if (uid === undefined) return [];
  const isOther = (id: number): boolean => id >= FIRST_UID && id <= LAST_UID && id !== uid;
  const accounts = passwd.split("\n").map((line) => line.split(":"));
  const named = new Map(accounts.map(([name = "", , id = ""]) => [Number(id), name]));
  const people = accounts.flatMap(([name = "", , id = "", , , , shell = ""]) =>
    isOther(Number(id)) && !NO_SHELL.test(shell) ? [name] : [],
  );
  const present = loggedIn.flatMap((id) => (isOther(Number(id)) ? [named.get(Number(id)) ?? `user ${id}`] : []));
  return [...new Set([...people, ...present])];
}

export function machineFacts(): MachineFacts {
  return {
    uid: process.getuid?.(),
    passwd: tryRead(() => readFileSync("/etc/passwd", "utf8")) ?? "",
    loggedIn: tryRead(() => readdirSync("/run/user")) ?? [],
  };
}

/** For a hub without `http.auth`; undefined if there are no other users. */
export function sharedMachineWarning(facts: MachineFacts): string | undefined {
  const users = otherUsers(facts);
  if (users.length === 0) return undefined;
  const more = users.length > MAX_NAMED_USERS ? ` and ${users.length - MAX_NAMED_USERS} more` : "";
  const named = `${users.slice(0, MAX_NAMED_USERS).join(", ")}${more}`;
  return (
    `Other users of this machine (${named}) can use this hub, because it does not require a token. ` +
    'To require one, add this to the config: "http": { "auth": { "tokens": [{ "token": "secret://env/TOOLCRIB_TOKEN" }] } }'
  );
}

function tryRead<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
