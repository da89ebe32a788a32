/** Wires a Hub from a config: the only place that knows how the parts are put together. */
import { join, resolve } from "node:path";
import { Catalog } from "../catalog/catalog.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { toolcribHome } from "../config/find-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { assertSafeHome } from "../files/safe-place.ts";
import { type Clock, systemClock } from "../model/clock.ts";
import type { Emitter } from "../model/emitter.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import { Limits } from "../policy/limits.ts";
import { Redactor } from "../secrets/redactor.ts";
import type { OwnHost } from "../sessions/own/own-host.ts";
import { OwnSources } from "../sessions/own/own-sources.ts";
import { thisMachine } from "../skills/needs/this-machine.ts";
import { Tracing } from "../telemetry/tracing/tracing.ts";
import { loadPlugins } from "../tools/plugins.ts";
import { ToolRegistry } from "../tools/registry.ts";
import { isPublishedPort } from "../upstream/cages/container/container-http-wire.ts";
import { PidRecords } from "../upstream/orphans/pid-records.ts";
import { closeOnSignals } from "../upstream/stdio/live-children.ts";
import { StderrLog } from "../upstream/stdio/stderr-log.ts";
import { Activity } from "./activity/activity.ts";
import { auditSink } from "./audit/audit-sink.ts";
import { lookUpAuditKeys, openAudit } from "./audit/open-audit.ts";
import { closeOnAbort } from "./close-on-abort.ts";
import { clusteredServers, openHubCluster } from "./cluster/hub-cluster.ts";
import { openSharedState, type SharedState } from "./cluster/shared-state.ts";
import { type ConfigPlace, type ConfigSource, loadFrom, tellOfTrust } from "./config-source.ts";
import { isChosen, waitAtMost } from "./connect-at-start.ts";
import { DefinitionWatch } from "./definition-watch.ts";
import type { HubEvents } from "./events.ts";
import { FollowedResources } from "./followed-resources.ts";
import type { IdleClient } from "./idle-client.ts";
import { HookChain } from "./hooks.ts";
import { Hub } from "./hub.ts";
import { hubConnectionDeps } from "./hub-connection-deps.ts";
import { hubPorts } from "./hub-file.ts";
import type { HubOptions } from "./hub-options.ts";
import { hubSession } from "./hub-session.ts";
import { keepWarnings } from "./kept-warnings.ts";
import { makeApprovals } from "./make-approvals.ts";
import { MaskedEvents } from "./masked-events.ts";
import { type HubHome, openHome } from "./open-home.ts";
import { HubPins } from "./pins/hub-pins.ts";
import { reapOrphans } from "./reap-orphans.ts";
import { relayCatalog } from "./relay.ts";
import { type Present, Reloader } from "./reload.ts";
import { ServerSet } from "./server-set.ts";
import { AddedServers } from "./servers/added-servers.ts";
import { HubServers } from "./servers/hub-servers.ts";
import { ServerSecrets } from "./servers/server-secrets.ts";
import { ServerHistory } from "./servers/server-history.ts";
import { dispatcher } from "./skills/dispatch.ts";
import { ServerSkillOffers } from "./skills/server-skill-offers.ts";
import { HubRegistry } from "./skills/hub-registry.ts";
import { LiveSkills } from "./skills/live-skills.ts";
import { SkillImports } from "./skills/skill-imports.ts";
import { SkillSources } from "./skills/skill-sources.ts";
import { type LastingParts, trustOf, wire } from "./wiring.ts";

export type { HubOptions } from "./hub-options.ts";

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
  const loaded = await loadFrom(source, place);

  const redactor = options.redactor ?? new Redactor();
  const events = new MaskedEvents(redactor);
  const warnings = keepWarnings(events);
  const warn = (message: string): void => events.emit("warning", { message });
  // One that is given has been shown by whoever loaded it.
  if (source === undefined) tellOfTrust(loaded, warn);
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
interface Ground {
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
  readonly place: ConfigPlace;
}

async function assemble(loaded: LoadedConfig, options: HubOptions, ground: Ground): Promise<Hub> {
  const { env, clock, home, redactor, events, warnings, warn, held, opened, cluster, shared, place } = ground;
  const { store, secrets, sealed } = opened;
  const kept = new ServerSecrets({ mode: () => held.config().config.secrets.keep, sealed, env, redactor });
  const takesIn = options.store !== "existing";
  const added = new AddedServers({ store, clock, home, env, takesIn, kept, warn });
  const imported = new HubRegistry({ home, clock, store, readsHome: options.store !== false, warn });
  const liveSkills = new LiveSkills({
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
  const ownSources = new OwnSources();
  const isBrought = (source: string): boolean => ownSources.get(source) !== undefined;
  const host: OwnHost = {
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
  const session = hubSession(config, options, host);
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
    isTrusted: trustOf(config.servers),
    instructionsOf: (server) => {
      const connection = servers.get(server);
      return connection?.shownInstructions?.() ?? connection?.instructions() ?? null;
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
  const servers = new ServerSet({
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
  const followed = new FollowedResources({
    originOf: (viewer, uri) => hub.resourceOrigin(viewer, uri),
    connection: (id) => servers.get(id) ?? ownSources.get(id)?.connection,
    sessions: () => hub.sessions(),
  });
  const dispatch = dispatcher({
    serverOf: (skill) => parts.skills.serverOfSkill(skill),
    session: (id) => hub.sessions().find((each) => each.id === id),
    tools: (viewer) => hub.view(viewer).tools,
    call: (caller, request) => hub.call(caller, request),
  });
  const tracing = new Tracing(redactor.mask);
  await tracing.ready();
  const parts: LastingParts = {
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
    approvals: makeApprovals(() => held.config(), {
      ...{ clock, events, audit, onAsk: options.onAsk, isBrought, shared: shared?.principals },
    }),
    limits: new Limits(clock, config.config.limits),
    hooks: new HookChain(),
    audit: auditSink(audit, events),
    tracing,
    call: (caller, request) => hub.call(caller, request),
    searching: new WeakSet(),
  };
  const present: Present = { wiring: wire(parts, config) };
  held.config = () => present.wiring.config;

  // Listens first, so that a definition is looked at before anybody hears of it.
  definitions.start();
  relayCatalog(catalog, events);
  catalog.addSource(registry.source());
  liveSkills.offer(config, parts.skills);
  for (const spec of config.servers) servers.add(spec);

  const isWanted = (spec: ServerSpec): boolean => isChosen(spec, options.connect);
  const waitFor = (connecting: Promise<unknown>): Promise<void> => waitAtMost(connecting, options.wait, clock);
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

  const activity = new Activity({
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
    servers: new HubServers({
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

function sessionSettings({ config, baseDir }: LoadedConfig): ReturnType<OwnHost["settings"]> {
  const { sessionServers: servers, sessionTools: tools } = config.limits;
  return { ...config.sessions, servers, tools, cages: { config, baseDir } };
}
