/** Wires a Hub from a config: the only place that knows how the parts are put together. */
import { join, resolve } from "node:path";
import { Catalog } from "../catalog/catalog.ts";
import { toolcribHome } from "../config/find-config.ts";
import { loadConfig, type LoadedConfig } from "../config/load-config.ts";
import { systemClock, type Clock } from "../model/clock.ts";
import type { ConfigInput } from "../model/config.ts";
import { Emitter } from "../model/emitter.ts";
import type { ElicitationCallback, SamplingCallback } from "../model/session.ts";
import { asToolcribError } from "../model/errors.ts";
import type { AskCallback } from "../model/ask.ts";
import { ToolClasses } from "../policy/classes.ts";
import { Limits } from "../policy/limits.ts";
import { OAuth } from "../secrets/oauth/oauth.ts";
import { Redactor } from "../secrets/redactor.ts";
import { Session } from "../sessions/session.ts";
import { loadPlugins } from "../tools/plugins.ts";
import { ToolRegistry } from "../tools/registry.ts";
import type { ConnectionDeps } from "../upstream/connection-deps.ts";
import { FileEraMemory } from "../upstream/era-memory.ts";
import { PidRecords } from "../upstream/orphans/pid-records.ts";
import { serverConnection, type ServerConnection } from "../upstream/server-connection.ts";
import { VERSION } from "../model/version.ts";
import { Approvals } from "./approvals.ts";
import type { CallPath } from "./call.ts";
import type { HubEvents } from "./events.ts";
import { Gate } from "./gate.ts";
import { HookChain } from "./hooks.ts";
import { Hub } from "./hub.ts";
import { OfferedTools } from "./offered-tools.ts";
import { policyOf, rememberAnswer } from "./rules.ts";
import { SEARCH_SOURCE } from "./search-definitions.ts";
import { SearchTools } from "./search-tools.ts";
import { ToolSearch } from "./tool-search.ts";
import { type View, Views } from "./view.ts";

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
  /** false: do not wait for servers. By default each has become ready or failed once when `createHub` resolves. */
  readonly wait?: boolean;
  /** Which servers to connect: those with `autoConnect` (default), none, or the named ones. */
  readonly connect?: "auto" | "none" | readonly string[];
  /** Narrows the hub's own session to a role. */
  readonly role?: string;
  /** The door that the hub's own session belongs to. */
  readonly door?: string;
  readonly clock?: Clock;
  readonly env?: NodeJS.ProcessEnv;
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

  const events = new Emitter<HubEvents>();
  const registry = options.registry ?? new ToolRegistry();
  const warn = (message: string): void => events.emit("warning", { message });
  const plugins = await loadPlugins(config.config.plugins, { baseDir: config.baseDir, registry, warn });
  const stopRegistryWarnings = registry.on("warning", ({ message }) => warn(message));

  const session = hubSession(config, options);
  const pids = new PidRecords(join(home, "run"));
  await pids.reapOrphans();
  const redactor = new Redactor();
  const connections = makeConnections(config, {
    clock,
    env,
    eras: new FileEraMemory(join(home, "cache", "eras.json")),
    pids,
    redactor,
    oauth: new OAuth({ dir: join(home, "auth"), clock, redactor }),
    hubSession: session,
  });
  const catalog = new Catalog({ naming: hubRules.naming, servers: config.servers });
  const tags = new Map(config.servers.map((spec) => [spec.id, spec.tags ?? []]));
  const tagsOf = (source: string): readonly string[] => tags.get(source) ?? [];
  const trusted = new Set(["local", SEARCH_SOURCE, ...config.servers.filter((spec) => spec.trust === "trusted").map((spec) => spec.id)]);
  const gate = new Gate({
    policy: policyOf(config),
    classes: new ToolClasses(config.config.guard.classes),
    taint: config.config.guard.taint,
    tagsOf,
    isOwnerOnly: (name) => registry.isOwnerOnly(name),
    objections: [],
  });
  const views = new Views(catalog, gate);
  const view = (viewer: Session): View => views.of(viewer);
  const search = new ToolSearch({ catalog, view, tagsOf });
  const offered = new OfferedTools({ max: hubRules.max, view, search, shows: (viewer, tool) => gate.shows(viewer, tool) });
  const path: CallPath = {
    catalog,
    gate,
    approvals: new Approvals({
      clock,
      timeoutMs: hubRules.askTimeout,
      onAsk: options.onAsk,
      remember: async (request) => {
        await rememberAnswer(config, request).catch((error: unknown) =>
          warn(`The answer for ${request.name} could not be written down: ${asToolcribError(error).message}`),
        );
      },
      onAsked: (request) => events.emit("ask", request),
      onAnswered: (request, answer) => events.emit("answer", { request, answer }),
    }),
    limits: new Limits(clock, limitValues),
    limitValues,
    guard: config.config.guard,
    isTrusted: (source) => trusted.has(source),
    hooks: new HookChain(),
    audit: { write: (record) => events.emit("call", record) },
    clock,
    visibleNames: (caller, kind) => views.names(caller, kind),
    searchTools:
      hubRules.max === undefined
        ? undefined
        : new SearchTools({ search, view, call: (caller, request) => hub.call(caller, request) }),
  };

  const hub = new Hub({
    config,
    registry,
    session,
    catalog,
    connections,
    path,
    views,
    offered,
    events,
    async release() {
      stopListening();
      stopRegistryWarnings();
      for (const plugin of plugins) plugin.unregister();
      await pids.close();
    },
  });
  const stopListening = closeOnAbort(hub, options.signal);

  relayEvents(catalog, connections, events);
  for (const message of catalog.namingWarnings()) warn(message);
  catalog.addSource(registry.source());
  for (const connection of connections.values()) catalog.addSource(connection);

  const connected = Promise.all(chosen(connections, options.connect).map((connection) => connection.connect()));
  if (options.wait !== false) await connected;
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
function relayEvents(catalog: Catalog, connections: ReadonlyMap<string, ServerConnection>, events: Emitter<HubEvents>): void {
  catalog.on("change", (change) => events.emit("catalog", change));
  catalog.on("warning", ({ source, message }) => events.emit("warning", { server: source, message }));
  for (const [server, connection] of connections) {
    connection.on("state", ({ previous }) => events.emit("server", { info: connection.info(), previous: previous.kind }));
    connection.on("log", (event) => events.emit("log", { server, ...event }));
    connection.on("warning", (message) => events.emit("warning", { server, message }));
    connection.on("resource-updated", (event) =>
      events.emit("resource-updated", { server, ...event, uri: catalog.publicUri(server, event.uri) }),
    );
  }
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
