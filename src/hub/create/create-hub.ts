/** Makes a Hub from a config, in four steps: the base, what the config adds to it, the servers, the calls. */
import { endsWithin } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { thisMachine } from "../../skills/needs.ts";
import { offersAnything } from "../../upstream/known-lists.ts";
import { closeOnSignals } from "../../upstream/stdio/child-processes.ts";
import { HubActivity } from "../activity/hub-activity.ts";
import { relayCatalog } from "../hub-events.ts";
import type { HubOptions } from "../hub-options.ts";
import { Hub } from "../hub.ts";
import { HubPins } from "../pins/hub-pins.ts";
import type { ConfigSource } from "../reload/config-source.ts";
import { Reloader } from "../reload/reloader.ts";
import type { ServerConnections } from "../servers/server-connections.ts";
import { ServerRegistry } from "../servers/server-registry.ts";
import { SkillImports } from "../skills/skill-imports.ts";
import { buildCalls, type CallParts } from "./build-calls.ts";
import { buildServers, type ServerParts } from "./build-servers.ts";
import { applyConfig, type ConfiguredParts, type HubBase, openBase } from "./open-base.ts";

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
  const base = await openBase(source, options);
  try {
    const configured = await applyConfig(base, options);
    const servers = await buildServers(base, configured, options);
    const calls = await buildCalls(base, configured, servers, options);
    return await startHub(base, configured, servers, calls, options);
  } catch (error) {
    await base.shared?.close();
    await base.cluster?.close();
    await base.opened.close();
    await base.otelExport?.close();
    throw error;
  }
}

/** Puts the parts to work, connects the servers and hands out the hub. */
async function startHub(
  base: HubBase,
  configured: ConfiguredParts,
  servers: ServerParts,
  calls: CallParts,
  options: HubOptions,
): Promise<Hub> {
  const { env, clock, home, location, redactor, events, warnings, warn, current, sessions, opened, cluster, shared } =
    base;
  const { config, stored, serverSecrets, importedSkills, userSkills, registry, plugins, auditLog, audit } = configured;
  const { connections, definitions, subscriptions, stderr } = servers;
  const { parts, serverSkills } = calls;
  const { store, secrets } = opened;

  // Listens first, so that a definition is looked at before its tools are announced.
  definitions.start();
  relayCatalog(parts.catalog, events);
  parts.catalog.addSource(registry.source());
  userSkills.offer(config, parts.skills);
  for (const spec of config.servers) connections.add(spec);

  const isWanted = (spec: ServerSpec): boolean => shouldConnect(spec, connections, options.connect);
  const waitFor = (connecting: Promise<unknown>): Promise<void> => waitForConnections(connecting, options.wait, clock);
  const reloader = new Reloader({
    ...{ parts, current, location, events, secrets, plugins, userSkills, stored, isWanted, waitFor },
  });
  connections.on("ready", (connection) => {
    definitions.checkInstructions(connection.id, connection.instructions());
    serverSkills.renew(connection);
    subscriptions.renew(connection);
  });
  connections.on("replaced", (connection) => {
    reloader.serverReplaced(connection.id);
    serverSkills.renew(connection);
    subscriptions.renew(connection);
  });
  connections.on("removed", ({ id }) => {
    serverSkills.drop(id);
    definitions.serverRemoved(id);
  });
  const serverRegistry = new ServerRegistry({
    ...{ connections, deps: servers.deps, stored, secrets: serverSecrets, stderr, current, reloader, events, clock },
    settled: () => settled,
    listed: () => listed,
  });
  const activity = new HubActivity({
    clock,
    events,
    mask: redactor.maskAll,
    keepArguments: config.config.audit.arguments,
    // A hub that is there for one command leaves no trace of its session.
    store: options.store === "existing" ? undefined : store,
    sessions: store && audit.sessionsOf(store.sessions),
    home,
    findings: () => definitions.findings(),
    hub: () => hub,
    hostOf: (id) => URL.parse(connections.get(id)?.spec.url ?? "")?.host,
    isChanged: ({ kind, origin: { source, name } }) =>
      ["changed", "new"].includes(definitions.pins.stateOf(source, name, pinKindOf(kind))),
    changeOf: ({ kind, origin: { source, name } }) =>
      redactor.maskAll(definitions.pins.changeOf(source, { kind: pinKindOf(kind), name })),
    others: () => shared?.approvals,
    told: () => parts.approvals.told,
  });
  const hub = new Hub({
    ...{
      parts,
      current,
      sessions,
      reloader,
      subscriptions,
      userSkills,
      activity,
      audit,
      store,
      home,
      secrets,
      events,
      warnings,
    },
    servers: serverRegistry,
    logins: servers.logins,
    connectionSettings: servers.connectionSettings,
    pins: new HubPins({
      pins: () => definitions.pins,
      isThere: (id) => connections.get(parts.skills.serverOf(id) ?? id) !== undefined,
      audit: auditLog,
    }),
    imports: new SkillImports({
      registry: importedSkills,
      home,
      env,
      machine: () => thisMachine(env, current.config.servers),
      config: () => current.config,
      refresh: () => reloader.refreshSkills(),
      events,
    }),
    async release() {
      const exported = base.otelExport?.close();
      for (const stop of stops) stop();
      serverRegistry.close();
      reloader.unloadPlugins();
      parts.detectors.close();
      opened.endSoon();
      await shared?.close();
      await cluster?.close();
      await definitions.close();
      await audit.close();
      servers.pids.close();
      await activity.close();
      await importedSkills.close();
      await opened.close();
      await exported;
    },
  });
  activity.begin();
  shared?.attach({
    limits: parts.limits,
    asked: () => parts.approvals.pending(),
    activity,
    reload: () => reloader.reloadIfChanged(),
    hasServer: (id) => connections.get(id) !== undefined,
  });
  const stops = [
    cluster?.on("warning", warn) ?? (() => {}),
    events.on("server", ({ info }) => serverSkills.follow(info)),
    // A subscription that was not renewed because its resource was hidden may be allowed now.
    events.on("visibility", () => connections.list().forEach((connection) => subscriptions.renew(connection))),
    registry.on("warning", ({ message }) => warn(message)),
    registry.on("contexts", () => events.emit("visibility", {})),
    closeOnAbort(hub, options.signal),
    // A program that does not listen for signals itself must not leave servers behind when it is ended.
    closeOnSignals(() => hub.close(), { unlessHandled: true }),
  ];
  const connecting = connections
    .list()
    .filter(({ spec }) => isWanted(spec))
    .map((connection) => {
      const connected = connection.connect();
      // A server that is known from an earlier run is listed from this moment on.
      return { connected, listed: offersAnything(connection.definitions()) ? Promise.resolve() : connected };
    });
  const connectAll = async (): Promise<void> => {
    await Promise.all(connecting.map(({ connected }) => connected));
    await serverSkills.settled();
  };
  const settled = waitFor(connectAll());
  const listed = Promise.race([settled, Promise.all(connecting.map((each) => each.listed)).then(() => {})]);
  if (options.wait !== false) await settled;
  return hub;
}

/** The kind of pin that a use of this kind is compared with. */
function pinKindOf(kind: string): "tool" | "prompt" | "resource" {
  return kind === "prompt" || kind === "resource" ? kind : "tool";
}

const DEFAULT_WAIT_MS = 10_000;

/** A hub that does not wait at the start still bounds later waits. */
async function waitForConnections(connecting: Promise<unknown>, wait: HubOptions["wait"], clock: Clock): Promise<void> {
  if (wait === true) await connecting;
  else await endsWithin(connecting, { ms: typeof wait === "number" ? wait : DEFAULT_WAIT_MS, clock });
}

function shouldConnect(
  spec: ServerSpec,
  connections: ServerConnections,
  connect: HubOptions["connect"] = "auto",
): boolean {
  if (connect === "none") return false;
  if (connect !== "auto") return connect.includes(spec.id);
  return spec.enabled && spec.autoConnect && !connections.waitsForUse(spec);
}

/** @returns Stops listening to the signal. */
function closeOnAbort(hub: Hub, signal: AbortSignal | undefined): () => void {
  if (signal === undefined) return () => {};
  const close = (): void => void hub.close();
  if (signal.aborted) close();
  else signal.addEventListener("abort", close, { once: true });
  return () => signal.removeEventListener("abort", close);
}
