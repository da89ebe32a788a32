/** Takes over another config while the hub runs: the difference is applied, and nothing else is touched. */
import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Queue } from "../../base/async.ts";
import type { Emitter } from "../../base/emitter.ts";
import type { Config } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { Secrets } from "../../secrets/secrets.ts";
import { loadPlugins, type PluginHandle } from "../../tools/plugins.ts";
import {
  type ConfigLocation,
  type ConfigSource,
  reloadConfig,
  loadConfigFrom,
  reportUntrusted,
} from "./config-source.ts";
import type { HubEvents, ReloadReport } from "../hub-events.ts";
import { type StoredServerConfigs, STORE_DIALECT } from "../servers/stored-servers.ts";
import type { UserSkills } from "../skills/user-skills.ts";
import { type CurrentWiring, type HubParts, type Wiring, wireHub } from "../create/wiring.ts";

/** How a change of the store is taken back if it cannot be applied, and what remains to be done once it is. */
export interface WrittenChange {
  undo(): Promise<void>;
  done?(): Promise<void>;
}

export interface ReloaderOptions {
  readonly parts: HubParts;
  readonly current: CurrentWiring;
  readonly location: ConfigLocation;
  readonly events: Emitter<HubEvents>;
  readonly secrets: Secrets;
  readonly plugins: readonly PluginHandle[];
  readonly userSkills: UserSkills;
  readonly stored: StoredServerConfigs;
  /** Whether a server is to be connected without being asked for. */
  readonly isWanted: (spec: ServerSpec) => boolean;
  /** Resolves when these are over, or have taken long enough. */
  readonly waitFor: (connecting: Promise<unknown>) => Promise<void>;
}

interface AppliedConfig {
  readonly report: ReloadReport;
  readonly connecting: Promise<unknown>;
}

export class Reloader {
  readonly #options: ReloaderOptions;
  #plugins: readonly PluginHandle[];
  #warnedNames: ReadonlySet<string> = new Set();
  /** Warnings that were given, so that a config that is read again does not repeat them. */
  #warnedTrust: ReadonlySet<string> = new Set();
  readonly #queue = new Queue();
  #closed = false;

  constructor(options: ReloaderOptions) {
    this.#options = options;
    this.#plugins = options.plugins;
    const warned = new Set<string>();
    reportUntrusted(options.current.config, (message) => warned.add(message));
    this.#warnedTrust = warned;
    this.#warnOddNames();
  }

  /**
   * Loads the config again, from the same place if no other is given. Resolves when the servers that are new or other are
   * ready, have failed, or take too long; the rest applies before. A config that does not load changes nothing.
   */
  async reload(source?: ConfigSource): Promise<ReloadReport> {
    const { report, connecting } = await this.#inTurn(async () => {
      const answers = this.#options.parts.approvals.persistedApprovals();
      return this.#apply(await this.#load(source), answers);
    });
    await this.#options.waitFor(connecting);
    return report;
  }

  /** The same from the same place, if that differs from the current config. */
  async reloadIfChanged(): Promise<void> {
    await this.#inTurn(async () => {
      const { approvals } = this.#options.parts;
      const answers = approvals.persistedApprovals();
      const config = await this.#load();
      if (!isSameConfig(config, this.#options.current.config)) await this.#apply(config, answers);
    });
  }

  /**
   * Servers of the store are written and applied as one step. A change that cannot be applied is taken back; undefined for
   * no change. Resolves when new servers are ready, have failed, or take too long.
   */
  async change(write: () => Promise<WrittenChange | undefined>): Promise<void> {
    const applied = await this.#inTurn(async (): Promise<AppliedConfig | undefined> => {
      const written = await write();
      if (written === undefined) return undefined;
      try {
        const taken = await this.#apply(await this.#rejoin(), this.#options.parts.approvals.persistedApprovals());
        // Tidying up only.
        await written.done?.().catch(() => {});
        return taken;
      } catch (error) {
        await written.undo();
        throw error;
      }
    });
    if (applied !== undefined) await this.#options.waitFor(applied.connecting);
  }

  /** Applies what another process wrote into the store. */
  async refreshServers(): Promise<void> {
    await this.#inTurn(async () => {
      const config = await this.#rejoin();
      if (isSameConfig(config, this.#options.current.config)) return;
      await this.#apply(config, this.#options.parts.approvals.persistedApprovals());
    });
  }

  /** Reads the skills again. What they bring up comes and goes with them. */
  async refreshSkills(): Promise<void> {
    const { userSkills, parts, current } = this.#options;
    await this.#inTurn(async () => {
      const { config } = current.wiring;
      const servers = config.servers.filter(({ origin }) => origin.dialect !== "skill");
      const fresh = await userSkills.prepare({ ...config, servers });
      if (isSameConfig(fresh, config)) userSkills.offer(fresh, parts.skills);
      else await this.#apply(fresh, parts.approvals.persistedApprovals());
    });
  }

  /** The config as it would be with another text of its file. Applies nothing; rejects as a reload would. */
  async preview(file: string, text: string): Promise<LoadedConfig> {
    const { current, location } = this.#options;
    const { config } = current;
    const texts = new Map([...(location.texts ?? []), [file, text]]);
    const found = config.file === null ? { searched: { home: file, project: config.searched?.project ?? null } } : {};
    const loaded = await reloadConfig({ ...config, ...found }, { ...location, texts });
    const ids = new Set(loaded.servers.map(({ id }) => id));
    const others = config.servers.filter(
      ({ id, origin }) => [STORE_DIALECT, "skill"].includes(origin.dialect) && !ids.has(id),
    );
    return { ...loaded, servers: [...loaded.servers, ...others] };
  }

  /** Another connection serves under an id: whether it is trusted follows from its own spec. */
  serverReplaced(id: string): void {
    const { current, parts, events } = this.#options;
    const { config, path } = current.wiring;
    const spec = config.servers.find((each) => each.id === id);
    if (spec === undefined || path.isTrusted(id) === (spec.trust === "trusted")) return;
    this.#put(wireHub(parts, config));
    parts.definitions.look();
    events.emit("visibility", {});
  }

  /** From now on every reload is refused, also one that is in progress. */
  stop(): void {
    this.#closed = true;
  }

  unloadPlugins(): void {
    for (const plugin of this.#plugins) plugin.unregister();
  }

  async #load(source?: ConfigSource): Promise<LoadedConfig> {
    const { stored, userSkills, location, current } = this.#options;
    const loaded = await (source === undefined
      ? reloadConfig(current.config, location)
      : loadConfigFrom(source, location));
    const warned = new Set<string>();
    reportUntrusted(loaded, (message) => {
      warned.add(message);
      if (!this.#warnedTrust.has(message)) this.#warn(message);
    });
    this.#warnedTrust = warned;
    return userSkills.prepare(await stored.join(loaded));
  }

  /** The config as it is, with the servers of the store and of skills as they are now. */
  async #rejoin(): Promise<LoadedConfig> {
    const { stored, userSkills, current } = this.#options;
    const { config } = current.wiring;
    const servers = config.servers.filter(({ origin }) => ![STORE_DIALECT, "skill"].includes(origin.dialect));
    return userSkills.prepare(await stored.join({ ...config, servers }));
  }

  /** Reloads run one after another, but do not wait for the servers of the one before. */
  #inTurn<Result>(task: () => Promise<Result>): Promise<Result> {
    return this.#queue.run(() => {
      this.#refuseIfClosed();
      return task();
    });
  }

  #refuseIfClosed(): void {
    if (this.#closed) throw new ToolcribError("server_unavailable", "The hub is closed.");
  }

  /** @param answers Those that were written down before the config was read. */
  async #apply(config: LoadedConfig, answers: readonly string[]): Promise<AppliedConfig> {
    const { parts, current, events, secrets, userSkills, isWanted } = this.#options;
    const { approvals, catalog, servers, limits } = parts;
    // All that can fail comes first.
    const newPlugins = await this.#loadPlugins(config);
    await parts.detectors.prepare(config);
    await parts.definitions.prepare(config);
    await servers.prepare(config.servers);
    if (this.#closed) for (const plugin of newPlugins) plugin.unregister();
    this.#refuseIfClosed();

    const before = current.config;
    const report = reportOf(before, config, servers.wanted());
    const specs = new Map(config.servers.map((spec) => [spec.id, spec]));
    const specsOf = (ids: readonly string[]): ServerSpec[] => ids.flatMap((id) => specs.get(id) ?? []);

    // From here to the end without a pause: no one sees half of it.
    this.#changePlugins(config, newPlugins);
    if (!isDeepStrictEqual(before.config.secrets, config.config.secrets)) secrets.configure(config.config.secrets);
    if (report.settings.includes("limits")) limits.configure(config.config.limits);
    approvals.dropPersisted(answers);
    catalog.configure({ naming: config.config.tools.naming, servers: config.servers });
    for (const id of report.removed) servers.remove(id);
    const added = specsOf(report.added).map((spec) => servers.add(spec));
    const changes = specsOf(report.changed).map((spec) => servers.change(spec, isWanted(spec)));
    servers.arrange(config.servers.map(({ id }) => id));
    userSkills.offer(config, parts.skills);
    this.#put(wireHub(parts, config));
    parts.detectors.keep(config);
    // Its trust, or which of its definitions are pinned, may be what changed.
    if (report.changed.length > 0) parts.definitions.look();

    this.#warnOddNames();
    events.emit("reload", { report });
    if (changesVisibility(before, config)) events.emit("visibility", {});
    const wanted = added.filter(({ spec }) => isWanted(spec)).map((connection) => () => servers.connect(connection));
    return { report, connecting: Promise.all([...changes, ...wanted].map((connect) => connect())) };
  }

  #put(wiring: Wiring): void {
    const { current, parts } = this.#options;
    current.replace(wiring);
    parts.definitions.configure(wiring.config, wiring.path.isTrusted);
  }

  async #loadPlugins({ config, baseDir }: LoadedConfig): Promise<PluginHandle[]> {
    const known = new Set(this.#plugins.map(({ file }) => file));
    const wanted = config.plugins.filter((path) => !known.has(resolve(baseDir, path)));
    if (wanted.length === 0) return [];
    const { registry } = this.#options.parts;
    return loadPlugins(wanted, { baseDir, registry, warn: (message) => this.#warn(message) });
  }

  #changePlugins({ config, baseDir }: LoadedConfig, added: readonly PluginHandle[]): void {
    const named = new Set(config.plugins.map((path) => resolve(baseDir, path)));
    const { kept = [], gone = [] } = Object.groupBy(this.#plugins, ({ file }) => (named.has(file) ? "kept" : "gone"));
    this.#plugins = [...kept, ...added];
    for (const plugin of gone) plugin.unregister();
  }

  #warnOddNames(): void {
    const messages = this.#options.parts.catalog.namingWarnings();
    for (const message of messages) if (!this.#warnedNames.has(message)) this.#warn(message);
    this.#warnedNames = new Set(messages);
  }

  #warn(message: string): void {
    this.#options.events.emit("warning", { message });
  }
}

const LIVE = [
  "approvals",
  "plugins",
  "tools",
  "limits",
  "roles",
  "views",
  "guard",
  "secrets",
  "skills",
] as const satisfies readonly (keyof Config)[];

/** The servers as they are now, by id, against the new config. */
function reportOf(before: LoadedConfig, after: LoadedConfig, known: ReadonlyMap<string, ServerSpec>): ReloadReport {
  const ids = new Set(after.servers.map(({ id }) => id));
  const isKept = (spec: ServerSpec): boolean => isDeepStrictEqual(known.get(spec.id), spec);
  const stayed = after.servers.filter(({ id }) => known.has(id));
  return {
    added: after.servers.filter(({ id }) => !known.has(id)).map(({ id }) => id),
    removed: [...known.keys()].filter((id) => !ids.has(id)),
    changed: stayed.filter((spec) => !isKept(spec)).map(({ id }) => id),
    kept: stayed.filter(isKept).map(({ id }) => id),
    settings: LIVE.filter((key) => !isDeepStrictEqual(before.config[key], after.config[key])),
    needsRestart: [
      ...(isDeepStrictEqual(before.config.audit, after.config.audit) ? [] : ["audit"]),
      ...(before.config.store === after.config.store ? [] : ["store"]),
      // It is a root of the hub's own session, and servers know of it.
      ...(before.config.workspaceDir === after.config.workspaceDir ? [] : ["workspaceDir"]),
      // Connections that are there keep the time that they were made with.
      ...(before.config.limits.graceMs === after.config.limits.graceMs ? [] : ["limits.graceMs"]),
    ],
  };
}

/** Whether sessions may see or be offered something else. What comes and goes with a server, the catalog reports. */
function changesVisibility(before: LoadedConfig, after: LoadedConfig): boolean {
  const ids = new Set(before.servers.map(({ id }) => id));
  const stayed = new Set(after.servers.map(({ id }) => id).filter((id) => ids.has(id)));
  return !isDeepStrictEqual(visibilityOf(before, stayed), visibilityOf(after, stayed));
}

function visibilityOf({ config, servers, project }: LoadedConfig, ids: ReadonlySet<string>): unknown {
  const { tools, roles, views, guard } = config;
  const ofServers = servers
    .filter(({ id }) => ids.has(id))
    .map(({ id, tools: rules, roles: seenBy, tags, trust }) => [id, [rules, seenBy, tags, trust]] as const);
  return [project?.rules, tools, roles, views, guard, new Map(ofServers)];
}

/** Whether everything that a reload compares is equal. */
function isSameConfig(a: LoadedConfig, b: LoadedConfig): boolean {
  const compared = ({ config, servers, warnings, file, files, watched, project }: LoadedConfig): unknown => [
    ...[config, servers, warnings, file, files, watched],
    ...[project?.file, project?.rules, project?.roles],
  ];
  return isDeepStrictEqual(compared(a), compared(b));
}
