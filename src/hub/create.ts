/** Wires a Hub from a config: the only place that knows how the parts are put together. */
import { join, resolve } from "node:path";
import { Catalog } from "../catalog/catalog.ts";
import { toolcribHome } from "../config/find-config.ts";
import { loadConfig, type LoadedConfig } from "../config/load-config.ts";
import { systemClock, type Clock } from "../model/clock.ts";
import type { ConfigInput } from "../model/config.ts";
import { Emitter } from "../model/emitter.ts";
import type { ElicitationCallback, SamplingCallback } from "../model/session.ts";
import { Policy } from "../policy/decide.ts";
import { Limits } from "../policy/limits.ts";
import { Redactor } from "../secrets/redactor.ts";
import { Session } from "../sessions/session.ts";
import { loadPlugins } from "../tools/plugins.ts";
import { ToolRegistry } from "../tools/registry.ts";
import { Connection, type ConnectionDeps } from "../upstream/connection.ts";
import { FileEraMemory } from "../upstream/era-memory.ts";
import { PidRecords } from "../upstream/orphans/pid-records.ts";
import { VERSION } from "../model/version.ts";
import type { CallPath } from "./call.ts";
import type { HubEvents } from "./events.ts";
import { HookChain } from "./hooks.ts";
import { Hub } from "./hub.ts";
import { Views } from "./view.ts";

export interface HubOptions {
  /** Instead of `$TOOLCRIB_HOME`, which is `~/.toolcrib` by default. */
  readonly home?: string;
  /** Folder offered to servers as a root; the config's `workspaceDir` by default. */
  readonly workspaceDir?: string;
  /** Answers servers that ask for a completion by a model. Without it they are refused. */
  readonly onSample?: SamplingCallback;
  /** Answers servers that ask the user something. Without it they are refused. */
  readonly onElicit?: ElicitationCallback;
  /** In-process tools; an empty registry of its own by default. */
  readonly registry?: ToolRegistry;
  /** Closes the hub when aborted. */
  readonly signal?: AbortSignal;
  /** false: do not wait for servers. By default each has become ready or failed once when `createHub` resolves. */
  readonly wait?: boolean;
  /** Which servers to connect: those with `autoConnect` (default), none, or the named ones. */
  readonly connect?: "auto" | "none" | readonly string[];
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
  const connections = makeConnections(config, {
    clock,
    env,
    eras: new FileEraMemory(join(home, "cache", "eras.json")),
    pids,
    redactor: new Redactor(),
    hubSession: session,
  });
  const catalog = new Catalog({ naming: hubRules.naming, servers: config.servers });
  const policy = new Policy({
    hub: hubRules,
    where: config.file ?? "the hub's config",
    servers: new Map(
      config.servers.map((spec) => [
        spec.id,
        {
          where: `${spec.origin.file} (server ${spec.id})`,
          ...(spec.tools === undefined ? {} : { rules: spec.tools }),
          ...(spec.roles === undefined ? {} : { roles: spec.roles }),
        },
      ]),
    ),
  });
  const isOwnerOnly = (name: string): boolean => registry.isOwnerOnly(name);
  const views = new Views(catalog, policy, isOwnerOnly);
  const path: CallPath = {
    catalog,
    policy,
    limits: new Limits(clock, limitValues),
    limitValues,
    hooks: new HookChain(),
    audit: { write: (record) => events.emit("call", record) },
    clock,
    visibleNames: (caller, kind) => views.names(caller, kind),
    isOwnerOnly,
  };

  const hub = new Hub({
    config,
    registry,
    session,
    catalog,
    connections,
    path,
    views,
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
    ...(options.onSample === undefined ? {} : { onSample: options.onSample }),
    ...(options.onElicit === undefined ? {} : { onElicit: options.onElicit }),
  });
}

function makeConnections(
  config: LoadedConfig,
  deps: Omit<ConnectionDeps, "offers" | "clientVersion">,
): Map<string, Connection> {
  const { roots, onSample, onElicit } = deps.hubSession;
  const offers = { roots: roots.length > 0, sampling: onSample !== undefined, elicitation: onElicit !== undefined };
  return new Map(
    config.servers.map((spec) => [spec.id, new Connection(spec, { ...deps, offers, clientVersion: VERSION })]),
  );
}

/** Everything below the hub speaks in events; this is where they become the hub's own. */
function relayEvents(catalog: Catalog, connections: ReadonlyMap<string, Connection>, events: Emitter<HubEvents>): void {
  catalog.on("change", (change) => events.emit("catalog", change));
  catalog.on("warning", ({ source, message }) => events.emit("warning", { server: source, message }));
  for (const [server, connection] of connections) {
    connection.on("state", ({ previous }) => events.emit("server", { info: connection.info(), previous: previous.kind }));
    connection.on("log", ({ message }) => events.emit("log", { server, message }));
    connection.on("warning", (message) => events.emit("warning", { server, message }));
    connection.on("resource-updated", ({ uri }) =>
      events.emit("resource-updated", { server, uri: catalog.publicUri(server, uri) }),
    );
  }
}

function chosen(connections: ReadonlyMap<string, Connection>, connect: HubOptions["connect"] = "auto"): Connection[] {
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
