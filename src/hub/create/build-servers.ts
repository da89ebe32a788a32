/** The servers of a hub and what is known of them: connections, their definitions, and what sessions bring along. */
import { lateMs } from "../../model/config.ts";
import { join, resolve } from "node:path";
import { Catalog } from "../../catalog/catalog.ts";
import { VERSION } from "../../model/version.ts";
import { OAuth } from "../../secrets/oauth/oauth.ts";
import { type SessionHost, SessionSources } from "../../sessions/session-parts.ts";
import { FileEraMemory } from "../../upstream/era-memory.ts";
import { KnownLists } from "../../upstream/known-lists.ts";
import { isPublishedPort } from "../../upstream/sandbox/container-http-wire.ts";
import { reapLeftContainers } from "../../upstream/sandbox/live-containers.ts";
import { ALL_CAPABILITIES, rootFor } from "../../upstream/server-requests.ts";
import { PidRecords } from "../../upstream/stdio/pid-records.ts";
import { ServerLog } from "../../upstream/stdio/server-log.ts";
import { hubPorts } from "../activity/hub-file.ts";
import { guardedIdleClient } from "../call/call-result.ts";
import { clusteredServers } from "../cluster/hub-cluster.ts";
import type { HubOptions, IdleClient } from "../hub-options.ts";
import { DefinitionWatch } from "../pins/definition-watch.ts";
import { DefinitionReports } from "../pins/pin-reports.ts";
import { ServerConnections } from "../servers/server-connections.ts";
import { ServerLogins } from "../servers/server-logins.ts";
import { SubscriptionRenewal } from "../servers/subscription-renewal.ts";
import type { ConfiguredParts, HubBase } from "./open-base.ts";
import { toolcribHome } from "../../config/find-config.ts";
import { configuredWorkspace, ownSessionOptions } from "./hub-sessions.ts";
import { trustedSources } from "./wiring.ts";

/** Settings that connections read whenever they need them. */
export interface ConnectionSettings {
  logLevel: string;
  idleClient: IdleClient | undefined;
}

export interface ServerParts {
  readonly catalog: Catalog;
  readonly deps: SessionHost["deps"];
  readonly connections: ServerConnections;
  readonly connectionSettings: ConnectionSettings;
  readonly definitions: DefinitionWatch;
  readonly subscriptions: SubscriptionRenewal;
  readonly sessionSources: SessionSources;
  readonly pids: PidRecords;
  readonly stderr: ServerLog;
  readonly logins: ServerLogins;
}

export async function buildServers(
  base: HubBase,
  { config, auditLog }: ConfiguredParts,
  options: HubOptions,
): Promise<ServerParts> {
  const { env, clock, home, redactor, events, warn, current, sessions, cluster } = base;
  const pids = new PidRecords(join(home, "run"));
  await reapOrphans(pids, { home, env, warn });
  const stderr = new ServerLog(redactor.mask);
  const catalog = new Catalog({ naming: config.config.tools.naming, servers: config.servers });
  const connectionSettings: ConnectionSettings = { logLevel: options.logLevel ?? "info", idleClient: undefined };
  const reports = new DefinitionReports({ events, audit: auditLog });
  const oauth = new OAuth({ dir: join(home, "auth"), clock, redactor });
  const logins = new ServerLogins({
    ...{ oauth, clock, redactor },
    config: () => current.config,
    secrets: base.opened.secrets,
  });
  const deps = connectionDeps(base, { pids, stderr, connectionSettings, reports, oauth }, options);
  const clustered = clusteredServers(cluster, config, clock);
  const known = new KnownLists({ store: base.opened.store, clock, warn });
  await known.prepare(config.servers);
  const connections = new ServerConnections({ deps, known, clustered, catalog, events, sessions });
  const sessionSources = new SessionSources();
  const definitions = await DefinitionWatch.open({
    config,
    home,
    clock,
    catalog,
    events,
    audit: auditLog,
    store: base.opened.store,
    isTrusted: trustedSources(config.servers),
    instructionsOf: (server) => {
      const connection = connections.get(server);
      return connection?.listedInstructions?.() ?? connection?.instructions() ?? null;
    },
    pinsResources: (server) => connections.get(server)?.spec.pinResources !== false,
    mask: redactor.maskContent,
    readers: () => current.wiring.path,
    isMounted: (source) => sessionSources.get(source) !== undefined,
    maskOf: (source) => sessionSources.get(source)?.mask,
    onVisibilityChange: () => {
      current.wiring.views.forget();
      events.emit("visibility", {});
    },
  });
  const subscriptions = new SubscriptionRenewal({
    originOf: (viewer, uri) => current.resourceOrigin(viewer, uri),
    connection: (id) => connections.get(id) ?? sessionSources.get(id)?.connection,
    sessions,
  });
  sessions.begin(ownSessionOptions(config, options), {
    sources: sessionSources,
    catalog,
    deps,
    settings() {
      const { config: settings, baseDir } = current.config;
      const { sessionServers, sessionTools } = settings.limits;
      return {
        ...settings.sessions,
        servers: sessionServers,
        tools: sessionTools,
        lateMs: lateMs(settings.limits),
        listWaitMs: settings.limits.listWaitMs,
        serverDefaults: { config: settings, baseDir },
      };
    },
    isOwnPort: (port) => isPublishedPort(port) || hubPorts(home).has(port),
    suspicion: (capability) => definitions.suspicion(capability),
    onWarning: (warning) => events.emit("session-warning", warning),
    onReady: (connection) => subscriptions.renew(connection),
    warn,
  });
  return {
    ...{ catalog, deps, connections, connectionSettings, definitions, subscriptions, sessionSources, pids, stderr },
    logins,
  };
}

/** The dependencies that all connections of a hub share. Getters give each new connection the current value. */
function connectionDeps(
  { env, clock, home, redactor, current, sessions, loaded, opened }: HubBase,
  {
    pids,
    stderr,
    connectionSettings,
    reports,
    oauth,
  }: Pick<ServerParts, "pids" | "stderr" | "connectionSettings"> & {
    readonly reports: DefinitionReports;
    readonly oauth: OAuth;
  },
  { rootsOnRequest = false, workspaceDir }: HubOptions,
): SessionHost["deps"] {
  // With `rootsOnRequest` the given folder is only where an agent works: servers are offered the config's.
  const workspace = rootsOnRequest ? configuredWorkspace(loaded) : (workspaceDir ?? configuredWorkspace(loaded));
  return {
    ...{ clock, env, pids, redactor, stderr, oauth, secrets: opened.secrets },
    eras: new FileEraMemory(join(home, "cache", "eras.json")),
    offers: ALL_CAPABILITIES,
    workspaceRoots: workspace === undefined ? [] : [rootFor(resolve(workspace))],
    clientVersion: VERSION,
    sandboxes: { home, userHome: toolcribHome(env), containers: () => current.config.config.containers },
    idleClient: (server, user, session) => connectionSettings.idleClient?.(server, user, session),
    guarded: (server, client) =>
      guardedIdleClient(
        () => current.wiring.path,
        server,
        client,
        (place, findings) => {
          const kinds = [...new Set(findings.map(({ code }) => code))].join(", ");
          const message = `A question of the server outside of any call looks like an attack: ${kinds}.`;
          const recorded = findings.map(({ code, severity, score }) => ({ code, severity, place, score }));
          reports.warn("question.suspicious", { source: server, name: place }, message, { findings: recorded });
        },
      ),
    maxSessionConnections: () => current.config.config.limits.sessionConnections,
    get hubSession() {
      return sessions.own;
    },
    get logLevel() {
      return connectionSettings.logLevel;
    },
    get graceMs() {
      return current.config.config.limits.graceMs;
    },
  };
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
