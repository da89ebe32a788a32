/** Wires a Hub from a config: the only place that knows how the parts are put together. */
import { join, resolve } from "node:path";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import { Catalog } from "../../catalog/catalog.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { toolcribHome } from "../../config/find-config.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { assertSafeHome } from "../../files/path-safety.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { SessionContext } from "../../model/source.ts";
import { VERSION } from "../../model/version.ts";
import { CallLimits } from "../../policy/call-limits.ts";
import { OAuth } from "../../secrets/oauth/oauth.ts";
import { Redactor } from "../../secrets/redactor.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import { type SessionHost, SessionSources } from "../../sessions/session-parts.ts";
import { thisMachine } from "../../skills/needs.ts";
import { Tracing } from "../../telemetry/tracing.ts";
import { loadPlugins } from "../../tools/plugins.ts";
import { ToolRegistry } from "../../tools/tool-registry.ts";
import type { ConnectionDeps } from "../../upstream/connection-deps.ts";
import { FileEraMemory } from "../../upstream/era-memory.ts";
import { isPublishedPort } from "../../upstream/sandbox/container-http-wire.ts";
import { reapLeftContainers } from "../../upstream/sandbox/live-containers.ts";
import { ALL_CAPABILITIES, rootFor } from "../../upstream/server-requests.ts";
import { closeOnSignals } from "../../upstream/stdio/child-processes.ts";
import { PidRecords } from "../../upstream/stdio/pid-records.ts";
import { StderrLog } from "../../upstream/stdio/stderr-log.ts";
import { HubActivity } from "../activity/hub-activity.ts";
import { hubPorts } from "../activity/hub-file.ts";
import { auditSink } from "../audit/audit-sink.ts";
import { lookUpAuditKeys, openAudit } from "../audit/open-audit.ts";
import { createApprovals } from "../call/approvals.ts";
import { HookChain } from "../call/hooks.ts";
import { clusteredServers, openHubCluster } from "../cluster/hub-cluster.ts";
import { openSharedState, type SharedState } from "../cluster/shared-state.ts";
import { type HubEvents, keepWarnings, MaskedEvents, relayCatalog } from "../hub-events.ts";
import type { HubOptions, IdleClient } from "../hub-options.ts";
import { Hub } from "../hub.ts";
import { DefinitionWatch } from "../pins/definition-watch.ts";
import { HubPins } from "../pins/hub-pins.ts";
import { type ConfigLocation, type ConfigSource, loadConfigFrom, reportUntrusted } from "../reload/config-source.ts";
import { type CurrentWiring, Reloader } from "../reload/reloader.ts";
import { ServerConnections } from "../servers/server-connections.ts";
import { ServerHistory, ServerRegistry } from "../servers/server-registry.ts";
import { ServerSecrets } from "../servers/server-secrets.ts";
import { StoredServerConfigs } from "../servers/stored-servers.ts";
import { SubscriptionRenewal } from "../servers/subscription-renewal.ts";
import { ServerSkillOffers } from "../skills/server-skills.ts";
import { SkillImports } from "../skills/skill-imports.ts";
import { createDispatch, SkillSources } from "../skills/skill-sources.ts";
import { HubRegistry, UserSkills } from "../skills/user-skills.ts";
import { configuredWorkspace, createHubSession } from "./hub-sessions.ts";
import { type HubHome, openHome } from "./open-home.ts";
import { type HubParts, trustedSources, wireHub } from "./wiring.ts";

export type { HubOptions } from "../hub-options.ts";

/**
 * Makes a hub and connects its servers.
 *
 *     await using hub = await createHub("claude_desktop_config.json");
 *     const tools = hub.tools({ for: "anthropic" });
 *
 * @param source A path of a config file in any dialect, a config as an object, one already loaded, or nothing: then it is
 * looked for as the command line does.
 */
export async function createHub(source?: ConfigSource, options: HubOptions = {}): Promise<Hub> {
  const env = options.env ?? process.env;
  const clock = options.clock ?? systemClock;
  const home = resolve(options.home ?? toolcribHome(env));
  assertSafeHome(home, env);
  const place = { env, cwd: process.cwd(), home, texts: new Map<string, string>() };
  const loaded = await loadConfigFrom(source, place);

  const redactor = options.redactor ?? new Redactor();
  const events = new MaskedEvents(redactor);
  const warnings = keepWarnings(events);
  const warn = (message: string): void => events.emit("warning", { message });
  // One that is given has been shown by whoever loaded it.
  if (source === undefined) reportUntrusted(loaded, warn);
  const held = { config: (): LoadedConfig => loaded };
  const opened = await openHome(() => held.config(), options.store, { env, home, clock, redactor, warn });
  const ground = { env, clock, home, redactor, events, warnings, warn, held, opened, place };
  let cluster: Cluster | undefined;
  let shared: SharedState | undefined;
  try {
    const joins = options.cluster === true;
    cluster = await openHubCluster(loaded, { ...opened, joins, redactor, clock, warn });
    shared = await openSharedState({ cluster, store: opened.store, place, clock, redactor, events, warn });
    const config = (await shared?.begin(loaded)) ?? loaded;
    return await assemble(config, options, { ...ground, cluster, shared });
  } catch (error) {
    await shared?.close();
    await cluster?.close();
    await opened.close();
    throw error;
  }
}

/** What is there before the config is looked at more closely. */
interface HubBase {
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly home: string;
  readonly redactor: Redactor;
  readonly events: Emitter<HubEvents>;
  readonly warnings: readonly HubEvents["warning"][];
  readonly warn: (message: string) => void;
  /** The config that holds, once there is one. */
  readonly held: { config: () => LoadedConfig };
  readonly opened: HubHome;
  /** Undefined for a hub that is no node of one. */
  readonly cluster: Cluster | undefined;
  readonly shared: SharedState | undefined;
  readonly place: ConfigLocation;
}

async function assemble(loaded: LoadedConfig, options: HubOptions, ground: HubBase): Promise<Hub> {
  const { env, clock, home, redactor, events, warnings, warn, held, opened, cluster, shared, place } = ground;
  const { store, secrets, sealed } = opened;
  const kept = new ServerSecrets({ mode: () => held.config().config.secrets.keep, sealed, env, redactor });
  const takesIn = options.store !== "existing";
  const added = new StoredServerConfigs({ store, clock, home, env, importsFile: takesIn, kept, warn });
  const imported = new HubRegistry({ home, clock, store, readsHome: options.store !== false, warn });
  const liveSkills = new UserSkills({
    registry: imported,
    clock,
    env,
    warn,
    machine: () => thisMachine(env),
    startsServers: options.skillServers ?? true,
  });
  const config = await liveSkills.prepare(await added.join(loaded));
  const registry = options.registry ?? new ToolRegistry();
  const plugins = await loadPlugins(config.config.plugins, { baseDir: config.baseDir, registry, warn });

  const auditKeys = await lookUpAuditKeys(config, secrets);
  const ownSources = new SessionSources();
  const isBrought = (source: string): boolean => ownSources.get(source) !== undefined;
  const host: SessionHost = {
    sources: ownSources,
    get catalog() {
      return catalog;
    },
    get deps() {
      return deps;
    },
    settings: () => sessionSettings(held.config()),
    isOwnPort: (port) => isPublishedPort(port) || hubPorts(home).has(port),
    suspicion: (capability) => definitions.suspicion(capability),
    onReady: (connection) => followed.renew(connection),
  };
  const session = createHubSession(config, options, host);
  const idle: { client: IdleClient | undefined } = { client: undefined };
  const pids = new PidRecords(join(home, "run"));
  await reapOrphans(pids, { home, env, warn });
  const catalog = new Catalog({ naming: config.config.tools.naming, servers: config.servers });
  const { log: audit, audit: hubAudit } = openAudit({
    home,
    config: config.config.audit,
    store,
    keys: auditKeys,
    node: cluster?.node.name,
    clock,
    redact: (text) => redactor.mask(text),
    warn,
  });
  cluster?.on("forged", (details) => {
    audit.event({ time: new Date(clock.now()).toISOString(), event: "cluster.forged", details: { ...details } });
  });
  const definitions = await DefinitionWatch.open({
    config,
    home,
    clock,
    catalog,
    events,
    audit,
    store,
    isTrusted: trustedSources(config.servers),
    instructionsOf: (server) => {
      const connection = servers.get(server);
      return connection?.listedInstructions?.() ?? connection?.instructions() ?? null;
    },
    pinsResources: (server) => servers.get(server)?.spec.pinResources !== false,
    mask: redactor.maskContent,
    isBrought,
    onVisibilityChange: () => {
      present.wiring.views.forget();
      events.emit("visibility", {});
    },
  });
  const serverSkills = new ServerSkillOffers({
    sources: () => parts.skills,
    machine: () => thisMachine(env),
    mask: redactor.maskContent,
    warn: (message, server) => events.emit("warning", { server, message }),
  });
  const logLevel = { value: options.logLevel ?? "info" };
  const stderr = new StderrLog();
  const deps = hubConnectionDeps({
    ...{ clock, env, home, redactor, secrets, pids, stderr, session },
    rootsOnRequest: options.rootsOnRequest === true,
    idleClient: (server, user, ofSession) => idle.client?.(server, user, ofSession),
    config: () => held.config(),
    logLevel: () => logLevel.value,
  });
  const servers = new ServerConnections({
    deps,
    clustered: clusteredServers(cluster, config, clock),
    catalog,
    events,
    sessions: () => hub.sessions(),
    onReady: (connection) => {
      definitions.checkInstructions(connection.id, connection.instructions());
      serverSkills.renew(connection);
      followed.renew(connection);
    },
    onReplaced: (connection) => {
      reloader.serverReplaced(connection.id);
      serverSkills.renew(connection);
      followed.renew(connection);
    },
  });
  const followed = new SubscriptionRenewal({
    originOf: (viewer, uri) => hub.resourceOrigin(viewer, uri),
    connection: (id) => servers.get(id) ?? ownSources.get(id)?.connection,
    sessions: () => hub.sessions(),
  });
  const dispatch = createDispatch({
    serverOf: (skill) => parts.skills.serverOfSkill(skill),
    session: (id) => hub.sessions().find((each) => each.id === id),
    tools: (viewer) => hub.view(viewer).tools,
    call: (caller, request) => hub.call(caller, request),
  });
  const tracing = new Tracing(redactor.mask);
  await tracing.ready();
  const parts: HubParts = {
    clock,
    cluster,
    redactor,
    registry,
    catalog,
    servers,
    ownSources,
    skills: new SkillSources(
      catalog,
      dispatch,
      (server, uri) => events.emit("resource-updated", { server, uri, originUri: uri }),
      () => events.emit("skills", {}),
    ),
    definitions,
    approvals: createApprovals(() => held.config(), {
      ...{ clock, events, audit, onAsk: options.onAsk, isBrought, shared: shared?.principals },
    }),
    limits: new CallLimits(clock, config.config.limits),
    hooks: new HookChain(),
    audit: auditSink(audit, events),
    tracing,
    call: (caller, request) => hub.call(caller, request),
    searching: new WeakSet(),
  };
  const present: CurrentWiring = { wiring: wireHub(parts, config) };
  held.config = () => present.wiring.config;

  // Listens first, so that a definition is looked at before anybody hears of it.
  definitions.start();
  relayCatalog(catalog, events);
  catalog.addSource(registry.source());
  liveSkills.offer(config, parts.skills);
  for (const spec of config.servers) servers.add(spec);

  const isWanted = (spec: ServerSpec): boolean => shouldConnect(spec, options.connect);
  const waitFor = (connecting: Promise<unknown>): Promise<void> => waitForConnections(connecting, options.wait, clock);
  const reloader = new Reloader({
    parts,
    present,
    place,
    events,
    secrets,
    plugins,
    liveSkills,
    added,
    isWanted,
    waitFor,
  });
  const history = new ServerHistory(events, clock, (id) => stderr.forget(id));
  const connecting = async (): Promise<void> => {
    const chosen = servers.list().filter(({ spec }) => isWanted(spec));
    await Promise.all(chosen.map((connection) => connection.connect()));
    await serverSkills.settled();
  };

  const activity = new HubActivity({
    clock,
    events,
    mask: redactor.maskAll,
    keepArguments: config.config.audit.arguments,
    // A hub that is there for one command leaves no trace of its session.
    store: options.store === "existing" ? undefined : store,
    home,
    hub: () => hub,
    others: () => shared?.approvals,
    told: () => parts.approvals.told,
  });
  const hub = new Hub({
    parts,
    activity,
    audit: hubAudit,
    store,
    secrets,
    servers: new ServerRegistry({
      servers,
      deps,
      added,
      kept,
      history,
      stderr,
      config: held.config,
      change: (write) => reloader.change(write),
    }),
    present,
    reloader,
    session,
    host,
    followed,
    liveSkills,
    pins: new HubPins({
      pins: () => definitions.pins,
      isThere: (id) => servers.get(parts.skills.serverOf(id) ?? id) !== undefined,
      clock,
      audit,
    }),
    imports: new SkillImports({
      registry: imported,
      home,
      env,
      machine: () => thisMachine(env),
      config: held.config,
      refresh: () => reloader.refreshSkills(),
      events,
    }),
    events,
    warnings,
    settled: () => settled,
    setIdleClient(client) {
      idle.client = client;
    },
    setLogLevel(level) {
      logLevel.value = level;
      for (const connection of servers.all()) void connection.setLogLevel(level);
    },
    async release() {
      for (const stop of stops) stop();
      history.stop();
      reloader.unloadPlugins();
      opened.endSoon();
      await shared?.close();
      await cluster?.close();
      await definitions.close();
      await hubAudit.close();
      pids.close();
      await activity.close();
      await imported.close();
      await opened.close();
    },
  });
  activity.begin();
  shared?.attach({
    limits: parts.limits,
    asked: () => parts.approvals.pending(),
    activity,
    reload: () => reloader.reloadIfChanged(),
    hasServer: (id) => servers.get(id) !== undefined,
  });
  const stops = [
    cluster?.on("warning", warn) ?? (() => {}),
    events.on("server", ({ info }) => serverSkills.follow(info)),
    events.on("reload", ({ report }) => report.removed.forEach((id) => serverSkills.drop(id))),
    // What was not followed again because it was hidden may be seen now.
    events.on("visibility", () => servers.list().forEach((connection) => followed.renew(connection))),
    registry.on("warning", ({ message }) => warn(message)),
    closeOnAbort(hub, options.signal),
    // A program that does not listen for signals itself must not leave servers behind when it is told to end.
    closeOnSignals(() => hub.close(), { unlessHandled: true }),
  ];
  const settled = waitFor(connecting());
  if (options.wait !== false) await settled;
  return hub;
}

function sessionSettings({ config, baseDir }: LoadedConfig): ReturnType<SessionHost["settings"]> {
  const { sessionServers: servers, sessionTools: tools } = config.limits;
  return { ...config.sessions, servers, tools, cages: { config, baseDir } };
}

/** What the connections of a hub share. */

interface HubConnectionParts {
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
  readonly redactor: Redactor;
  readonly secrets: Secrets;
  readonly pids: PidRecords;
  readonly stderr: StderrLog;
  readonly session: SessionContext;
  /** Whether the folder of the session is only where an agent works: then servers are offered the one of the config. */
  readonly rootsOnRequest: boolean;
  readonly idleClient: NonNullable<ConnectionDeps["idleClient"]>;
  /** These two are asked when a connection is made: it takes what holds then. */
  readonly config: () => LoadedConfig;
  readonly logLevel: () => string;
}

function hubConnectionDeps(parts: HubConnectionParts): SessionHost["deps"] {
  const { clock, env, home, redactor, secrets, pids, stderr, session, rootsOnRequest, idleClient, config, logLevel } =
    parts;
  const workspace = rootsOnRequest ? configuredWorkspace(config()) : session.workspaceDir;
  const workspaceRoots = workspace === undefined ? [] : [rootFor(workspace)];
  return {
    clock,
    env,
    eras: new FileEraMemory(join(home, "cache", "eras.json")),
    pids,
    redactor,
    stderr,
    secrets,
    oauth: new OAuth({ dir: join(home, "auth"), clock, redactor }),
    hubSession: session,
    idleClient,
    maxSessionConnections: () => config().config.limits.sessionConnections,
    offers: ALL_CAPABILITIES,
    workspaceRoots,
    clientVersion: VERSION,
    sandboxes: { home, containers: () => config().config.containers },
    get logLevel() {
      return logLevel();
    },
    get graceMs() {
      return config().config.limits.graceMs;
    },
  };
}

/** Which servers connect by themselves, and how long anybody waits for them. */

const DEFAULT_WAIT_MS = 10_000;

/** Not to wait at the start is no reason to wait for ever later. */
async function waitForConnections(connecting: Promise<unknown>, wait: HubOptions["wait"], clock: Clock): Promise<void> {
  if (wait === true) return void (await connecting);
  let stop = (): void => {};
  const over = new Promise<void>((done) => {
    stop = clock.after(typeof wait === "number" ? wait : DEFAULT_WAIT_MS, done);
  });
  await Promise.race([connecting, over]);
  stop();
}

function shouldConnect({ id, enabled, autoConnect }: ServerSpec, connect: HubOptions["connect"] = "auto"): boolean {
  if (connect === "none") return false;
  return connect === "auto" ? enabled && autoConnect : connect.includes(id);
}

interface ReapOptions {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly warn: (message: string) => void;
}

/** Ends what a hub that died has left running, and says so. */
export async function reapOrphans(pids: PidRecords, { home, env, warn }: ReapOptions): Promise<void> {
  for (const orphan of await pids.reapOrphans()) {
    warn(
      `A process of "${orphan.serverId}" was left over from a hub that died; it ${orphan.gone ? "was ended" : "could not be ended"}.`,
    );
  }
  // Last, because one of those processes may have been about to start a container.
  await reapLeftContainers(home, { env, warn });
}

/** @returns Stops listening to the signal. */
function closeOnAbort(hub: { close(): Promise<void> }, signal: AbortSignal | undefined): () => void {
  if (signal === undefined) return () => {};
  const close = (): void => void hub.close();
  if (signal.aborted) close();
  else signal.addEventListener("abort", close, { once: true });
  return () => signal.removeEventListener("abort", close);
}
