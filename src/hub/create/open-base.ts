/** The base of a hub: home, store, secrets, events, cluster; and what its config adds before any server is made. */
import { resolve } from "node:path";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Emitter } from "../../base/emitter.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { toolcribHome } from "../../config/find-config.ts";
import { assertSafeHome } from "../../files/path-safety.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { thisMachine } from "../../skills/needs.ts";
import type { AuditLog } from "../../telemetry/audit/log.ts";
import { type OtelExport, startOtelExport } from "../../telemetry/otel-export.ts";
import { loadPlugins, type PluginHandle } from "../../tools/plugins.ts";
import { ToolRegistry } from "../../tools/tool-registry.ts";
import { type HubAudit, lookUpAuditKeys, openAudit } from "../audit/hub-audit.ts";
import { Taints } from "../call/taints.ts";
import { openHubCluster } from "../cluster/hub-cluster.ts";
import { type SharedState } from "../cluster/shared-state.ts";
import { openSharedState } from "../cluster/hub-cluster.ts";
import { type HubEvents, keepWarnings, MaskedEvents } from "../hub-events.ts";
import type { HubOptions } from "../hub-options.ts";
import { type ConfigLocation, type ConfigSource, loadConfigFrom, reportUntrusted } from "../reload/config-source.ts";
import { ServerSecrets } from "../servers/server-secrets.ts";
import { StoredServerConfigs } from "../servers/stored-servers.ts";
import { HubRegistry, UserSkills } from "../skills/user-skills.ts";
import { HubSessions } from "./hub-sessions.ts";
import { type HubHome, openHome } from "./open-home.ts";
import { CurrentWiring } from "./wiring.ts";

/** The parts that every other part needs. */
export interface HubBase {
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly home: string;
  readonly location: ConfigLocation;
  readonly redactor: Redactor;
  readonly events: Emitter<HubEvents>;
  readonly warnings: readonly HubEvents["warning"][];
  readonly warn: (message: string) => void;
  readonly current: CurrentWiring;
  readonly sessions: HubSessions;
  /** The store and the secrets. */
  readonly opened: HubHome;
  /** Undefined for a hub that is not a node of one. */
  readonly cluster: Cluster | undefined;
  readonly shared: SharedState | undefined;
  readonly otelExport: OtelExport | undefined;
  /** As the files and the cluster have it. */
  readonly loaded: LoadedConfig;
}

export async function openBase(source: ConfigSource | undefined, options: HubOptions): Promise<HubBase> {
  const { env = process.env, clock = systemClock, redactor = new Redactor() } = options;
  const home = resolve(options.home ?? toolcribHome(env));
  assertSafeHome(home, env);
  const location = { env, cwd: process.cwd(), home, texts: new Map<string, string>() };
  const loaded = await loadConfigFrom(source, location);

  const events = new MaskedEvents(redactor);
  const warnings = keepWarnings(events);
  const warn = (message: string): void => events.emit("warning", { message });
  // Whoever loaded a config that is given has seen its warnings.
  if (source === undefined) reportUntrusted(loaded, warn);
  const current = new CurrentWiring(loaded);
  const opened = await openHome(() => current.config, options.store, { env, home, clock, redactor, warn });
  const { store } = opened;
  let cluster: Cluster | undefined;
  let shared: SharedState | undefined;
  let otelExport: OtelExport | undefined;
  try {
    if (options.otelExport === true) {
      const addSecret = (value: string): void => redactor.addCredential(value);
      otelExport = await startOtelExport({ env, clock, warn, mask: redactor.mask, addSecret });
    }
    const joins = options.cluster === true;
    cluster = await openHubCluster(loaded, { ...opened, joins, redactor, clock, warn });
    shared = await openSharedState({ cluster, store, place: location, clock, redactor, events, warn });
    const taints = new Taints({ clock, store, warn, sessions: () => sessions.all() });
    const sessions: HubSessions = new HubSessions(events, taints);
    return {
      ...{ env, clock, home, location, redactor, events, warnings, warn, current, sessions, opened, cluster, shared },
      otelExport,
      loaded: (await shared?.begin(loaded)) ?? loaded,
    };
  } catch (error) {
    await shared?.close();
    await cluster?.close();
    await opened.close();
    await otelExport?.close();
    throw error;
  }
}

/** The config with the servers of the store and of skills, and what it names besides servers. */
export interface ConfiguredParts {
  readonly config: LoadedConfig;
  readonly stored: StoredServerConfigs;
  readonly serverSecrets: ServerSecrets;
  readonly importedSkills: HubRegistry;
  readonly userSkills: UserSkills;
  readonly registry: ToolRegistry;
  readonly plugins: readonly PluginHandle[];
  readonly auditLog: AuditLog;
  readonly audit: HubAudit;
}

export async function applyConfig(base: HubBase, options: HubOptions): Promise<ConfiguredParts> {
  const { env, clock, home, redactor, warn, current, cluster } = base;
  const { store, secrets, sealed } = base.opened;
  const serverSecrets = new ServerSecrets({ mode: () => current.config.config.secrets.keep, sealed, env, redactor });
  const importsFile = options.store !== "existing";
  const stored = new StoredServerConfigs({ store, clock, home, env, importsFile, secrets: serverSecrets, warn });
  const importedSkills = new HubRegistry({ home, clock, store, readsHome: options.store !== false, warn });
  const userSkills = new UserSkills({
    registry: importedSkills,
    clock,
    env,
    warn,
    machine: () => thisMachine(env),
    startsServers: options.skillServers ?? true,
  });
  const config = await userSkills.prepare(await stored.join(base.loaded));
  const registry = options.registry ?? new ToolRegistry();
  const plugins = await loadPlugins(config.config.plugins, { baseDir: config.baseDir, registry, warn });
  const { log: auditLog, audit } = openAudit({
    home,
    config: config.config.audit,
    store,
    keys: await lookUpAuditKeys(config, secrets),
    cluster,
    onRecording: () => base.events.emit("recording", {}),
    clock,
    redact: redactor.mask,
    warn,
  });
  base.sessions.taints.audit = auditLog;
  cluster?.on("forged", (details) => {
    auditLog.event({ event: "cluster.forged", details: { ...details } });
  });
  return { config, stored, serverSecrets, importedSkills, userSkills, registry, plugins, auditLog, audit };
}
