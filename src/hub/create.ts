/** Wires a Hub from a config: the only place that knows how the parts are put together. */
import { join, resolve } from "node:path";
import { Catalog } from "../catalog/catalog.ts";
import { toolcribHome } from "../config/find-config.ts";
import { loadConfig, type LoadedConfig } from "../config/load-config.ts";
import { systemClock, type Clock } from "../model/clock.ts";
import type { ConfigInput } from "../model/config.ts";
import type { Emitter } from "../model/emitter.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { ElicitationCallback, SamplingCallback } from "../model/session.ts";
import type { AskCallback } from "../model/ask.ts";
import { ToolClasses } from "../policy/classes.ts";
import { Limits } from "../policy/limits.ts";
import { OAuth } from "../secrets/oauth/oauth.ts";
import { Redactor } from "../secrets/redactor.ts";
import { Secrets } from "../secrets/secrets.ts";
import { Session } from "../sessions/session.ts";
import { AuditLog } from "../telemetry/audit/log.ts";
import { loadPlugins } from "../tools/plugins.ts";
import { ToolRegistry } from "../tools/registry.ts";
import type { ConnectionDeps } from "../upstream/connection-deps.ts";
import { FileEraMemory } from "../upstream/era-memory.ts";
import { closeOnSignals } from "../upstream/stdio/live-children.ts";
import { PidRecords } from "../upstream/orphans/pid-records.ts";
import { serverConnection, type ServerConnection } from "../upstream/server-connection.ts";
import { VERSION } from "../model/version.ts";
import { AbsentServers } from "./absent-servers.ts";
import type { CallPath } from "./call-path.ts";
import { DefinitionWatch } from "./definition-watch.ts";
import type { HubEvents } from "./events.ts";
import { Gate } from "./gate.ts";
import { HookChain } from "./hooks.ts";
import { Hub } from "./hub.ts";
import { RESULTS_SOURCE } from "./kept-results-source.ts";
import { makeApprovals } from "./make-approvals.ts";
import { MaskedEvents } from "./masked-events.ts";
import { OfferedTools } from "./offered-tools.ts";
import { aliases, policyOf } from "./rules.ts";
import { SEARCH_SOURCE } from "./search-definitions.ts";
import { SearchTools } from "./search-tools.ts";
import { ToolSearch } from "./tool-search.ts";
import { type View, Views } from "./view.ts";

const DEFAULT_WAIT_MS = 10_000;
const WARNINGS_KEPT = 200;

export interface HubOptions {
  /** Instead of `$TOOLCRIB_HOME`, which is `~/.toolcrib` by default. */
  readonly home?: string;
  /** Folder offered to servers as a root; the config's `workspaceDir` by default. */
  readonly workspaceDir?: string;
  /** Answers servers that ask for a completion by a model. Without it they are refused. */
  readonly onSample?: SamplingCallback;
  /** Answers servers that ask the user something. Without it they are refused. */
  readonly onElicit?: ElicitationCallback;
  /** Answers for calls that an `ask` rule holds back, in sessions that have no callback of their own. */
  readonly onAsk?: AskCallback;
  /** In-process tools; an empty registry of its own by default. */
  readonly registry?: ToolRegistry;
  /** Closes the hub when aborted. */
  readonly signal?: AbortSignal;
  /**
   * How long to wait for servers, in milliseconds; 10,000 by default, false for not at all, true for as long as they
   * take. Who is late joins when it is ready, and a `catalog` event says so.
   */
  readonly wait?: boolean | number;
  /** Which servers to connect: those with `autoConnect` (default), none, or the named ones. */
  readonly connect?: "auto" | "none" | readonly string[];
  /** Narrows the hub's own session to a role. */
  readonly role?: string;
  /** The door that the hub's own session belongs to. */
  readonly door?: string;
  /** Log messages that servers are asked for, from this level on; `info` by default. */
  readonly logLevel?: string;
  readonly clock?: Clock;
  readonly env?: NodeJS.ProcessEnv;
  /** Learns the hub's secrets, for a program that masks its own output too. */
  readonly redactor?: Redactor;
}

/**
 * Makes a hub and connects its servers.
 *
 *     await using hub = await createHub("claude_desktop_config.json");
 *     const tools = hub.tools({ for: "anthropic" });
 *
 * @param source A path of a config file in any dialect, a config as an object, one already loaded, or nothing: then it is
 * looked for as the command line does.
 */
export async function createHub(source?: string | ConfigInput | LoadedConfig, options: HubOptions = {}): Promise<Hub> {
  const env = options.env ?? process.env;
  const clock = options.clock ?? systemClock;
  const home = resolve(options.home ?? toolcribHome(env));
  const config = await load(source, env, home);
  const { limits: limitValues, tools: hubRules } = config.config;

  const redactor = options.redactor ?? new Redactor();
  const events = new MaskedEvents(redactor);
  const warnings = keepWarnings(events);
  const warn = (message: string): void => events.emit("warning", { message });
  const registry = options.registry ?? new ToolRegistry();
  const plugins = await loadPlugins(config.config.plugins, { baseDir: config.baseDir, registry, warn });

  const session = hubSession(config, options);
  const pids = new PidRecords(join(home, "run"));
  for (const orphan of await pids.reapOrphans()) {
    warn(
      `A process of "${orphan.serverId}" was left over from a hub that died; it ${orphan.gone ? "was ended" : "could not be ended"}.`,
    );
  }
  const connections = makeConnections(config, {
    clock,
    env,
    eras: new FileEraMemory(join(home, "cache", "eras.json")),
    pids,
    redactor,
    secrets: new Secrets({ env, home, clock, redactor, ...config.config.secrets }),
    oauth: new OAuth({ dir: join(home, "auth"), clock, redactor }),
    hubSession: session,
    logLevel: options.logLevel ?? "info",
  });
  const catalog = new Catalog({ naming: hubRules.naming, servers: config.servers });
  const audit = new AuditLog({
    dir: join(home, "audit"),
    maxBytes: config.config.audit.maxBytes,
    keepArguments: config.config.audit.arguments,
    redact: (text) => redactor.mask(text),
    clock,
    onProblem: warn,
  });
  const isTrusted = trustOf(config.servers);
  const watch = new DefinitionWatch({
    config,
    home,
    clock,
    catalog,
    events,
    audit,
    isTrusted,
    onVisibilityChange: () => views.forget(),
  });
  const policy = policyOf(config);
  const tagsOf = tagsBySource(config.servers);
  const gate = new Gate({
    policy,
    classes: new ToolClasses(config.config.guard.classes),
    taint: config.config.guard.taint,
    tagsOf,
    aliasOf: aliases(config),
    isOwnerOnly: (name) => registry.isOwnerOnly(name),
    objections: watch.objections,
  });
  const views = new Views(catalog, gate);
  const view = (viewer: Session): View => views.of(viewer);
  const search = new ToolSearch({ catalog, view, tagsOf });
  const path: CallPath = {
    clock,
    catalog,
    absent: new AbsentServers(hubRules.naming, connections.values(), policy),
    visibleNames: (caller, kind) => views.names(caller, kind),
    searchTools:
      hubRules.max === undefined
        ? undefined
        : new SearchTools({ search, view, call: (caller, request) => hub.call(caller, request) }),
    gate,
    approvals: makeApprovals(config, { clock, events, audit, onAsk: options.onAsk }),
    limits: new Limits(clock, limitValues),
    limitValues,
    hooks: new HookChain(),
    guard: config.config.guard,
    isTrusted,
    mask: redactor.maskAll,
    maskResult: config.config.secrets.maskResults ? redactor.maskContent : (result) => result,
    audit: {
      begin: (record, sent) => audit.begin(record, sent),
      withhold: (callId) => audit.withhold(callId),
      write(record, sent) {
        events.emit("call", record);
        audit.write(record, sent);
      },
    },
  };

  const hub = new Hub({
    config,
    registry,
    session,
    catalog,
    connections,
    path,
    views,
    offered: new OfferedTools({ max: hubRules.max, view, search, shows: (viewer, tool) => gate.shows(viewer, tool) }),
    events,
    warnings,
    async release() {
      for (const stop of stops) stop();
      for (const plugin of plugins) plugin.unregister();
      await watch.close();
      audit.close();
      pids.close();
    },
  });
  const stops = [
    registry.on("warning", ({ message }) => warn(message)),
    closeOnAbort(hub, options.signal),
    // A program that does not listen for signals itself must not leave servers behind when it is told to end.
    closeOnSignals(() => hub.close(), { unlessHandled: true }),
  ];

  watch.start();
  relayEvents(catalog, connections, events);
  for (const [server, connection] of connections) {
    connection.on("state", ({ state }) => {
      if (state.kind === "ready") watch.checkInstructions(server, connection.instructions?.());
    });
  }
  for (const message of catalog.namingWarnings()) warn(message);
  catalog.addSource(registry.source());
  for (const connection of connections.values()) catalog.addSource(connection);
  const connected = Promise.all(chosen(connections, options.connect).map((connection) => connection.connect()));
  await waitFor(connected, options.wait ?? DEFAULT_WAIT_MS, clock);
  return hub;
}

function load(
  source: string | ConfigInput | LoadedConfig | undefined,
  env: NodeJS.ProcessEnv,
  home: string,
): Promise<LoadedConfig> | LoadedConfig {
  const common = { env, cwd: process.cwd(), home };
  if (source === undefined) return loadConfig(common);
  if (typeof source === "string") return loadConfig({ ...common, file: source });
  return isLoaded(source) ? source : loadConfig({ ...common, config: source });
}

/** `servers` as a list of specs is what only a loaded config has. */
function isLoaded(source: ConfigInput | LoadedConfig): source is LoadedConfig {
  return "baseDir" in source && "servers" in source;
}

function hubSession(config: LoadedConfig, options: HubOptions): Session {
  const fromConfig = config.config.workspaceDir;
  const workspaceDir = options.workspaceDir ?? (fromConfig && resolve(config.baseDir, fromConfig));
  return new Session({
    owner: true,
    door: options.door ?? "library",
    ...(workspaceDir === undefined ? {} : { workspaceDir }),
    ...(options.role === undefined ? {} : { role: options.role }),
    ...(options.onSample === undefined ? {} : { onSample: options.onSample }),
    ...(options.onElicit === undefined ? {} : { onElicit: options.onElicit }),
  });
}

function makeConnections(
  config: LoadedConfig,
  deps: Omit<ConnectionDeps, "offers" | "clientVersion">,
): Map<string, ServerConnection> {
  const { roots, onSample, onElicit } = deps.hubSession;
  const offers = { roots: roots.length > 0, sampling: onSample !== undefined, elicitation: onElicit !== undefined };
  return new Map(
    config.servers.map((spec) => [spec.id, serverConnection(spec, { ...deps, offers, clientVersion: VERSION })]),
  );
}

/** Everything below the hub speaks in events; this is where they become the hub's own. */
function relayEvents(
  catalog: Catalog,
  connections: ReadonlyMap<string, ServerConnection>,
  events: Emitter<HubEvents>,
): void {
  catalog.on("change", (change) => events.emit("catalog", change));
  catalog.on("warning", ({ source, message }) => events.emit("warning", { server: source, message }));
  for (const [server, connection] of connections) {
    connection.on("state", ({ previous }) =>
      events.emit("server", { info: connection.info(), previous: previous.kind }),
    );
    connection.on("log", (event) => events.emit("log", { server, ...event }));
    connection.on("warning", (message) => events.emit("warning", { server, message }));
    connection.on("resource-updated", (event) =>
      events.emit("resource-updated", { server, ...event, uri: catalog.publicUri(server, event.uri) }),
    );
  }
}

/** Warnings begin before anybody can listen, so the last of them are kept. */
function keepWarnings(events: Emitter<HubEvents>): readonly HubEvents["warning"][] {
  const kept: HubEvents["warning"][] = [];
  events.on("warning", (warning) => {
    kept.push(warning);
    if (kept.length > WARNINGS_KEPT) kept.shift();
  });
  return kept;
}

async function waitFor(connected: Promise<unknown>, wait: boolean | number, clock: Clock): Promise<void> {
  if (wait === false) return;
  if (wait === true) return void (await connected);
  let stop = (): void => {};
  const over = new Promise<void>((resolve) => {
    stop = clock.after(wait, resolve);
  });
  await Promise.race([connected, over]);
  stop();
}

function tagsBySource(servers: readonly ServerSpec[]): (source: string) => readonly string[] {
  const tags = new Map(servers.map((spec) => [spec.id, spec.tags ?? []]));
  return (source) => tags.get(source) ?? [];
}

/** In-process tools and the hub's own are the program's; a server is trusted only if its entry says so. */
function trustOf(servers: readonly ServerSpec[]): (source: string) => boolean {
  const trusted = servers.filter((spec) => spec.trust === "trusted").map((spec) => spec.id);
  const sources = new Set(["local", SEARCH_SOURCE, RESULTS_SOURCE, ...trusted]);
  return (source) => sources.has(source);
}

function chosen(
  connections: ReadonlyMap<string, ServerConnection>,
  connect: HubOptions["connect"] = "auto",
): ServerConnection[] {
  const all = [...connections.values()];
  if (connect === "none") return [];
  if (connect === "auto") return all.filter((connection) => connection.spec.enabled && connection.spec.autoConnect);
  return all.filter((connection) => connect.includes(connection.id));
}

function closeOnAbort(hub: Hub, signal: AbortSignal | undefined): () => void {
  if (signal === undefined) return () => {};
  const close = (): void => void hub.close();
  if (signal.aborted) close();
  else signal.addEventListener("abort", close, { once: true });
  return () => signal.removeEventListener("abort", close);
}
