/** Puts a planned install in place, all of it or nothing. */
import { mkdir, rmdir } from "node:fs/promises";
import type { AgentClient, ClientScope } from "../../clients/client.ts";
import { loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import { textWithServer } from "../../config/edit-config.ts";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import { withLock } from "../../files/lock-file.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { SkillRegistry } from "../../skills/registry/registry.ts";
import { changesDir } from "../changes-dir.ts";
import { writeClientServers } from "../clients/write-client.ts";
import { clientWrites } from "./client-entries.ts";
import { installLock } from "./install-files.ts";
import type { InstallPlace } from "./install-place.ts";
import {
  type Installed,
  type InstalledSkill,
  installedFile,
  parseInstalled,
  readInstalled,
  renderInstalled,
} from "./installed-file.ts";
import { installedRecord, lockedSkill } from "./install-records.ts";
import { type KeptSecret, KeptSecrets, secretName } from "./kept-secrets.ts";
import { homesOf, type NewServer, resolveServers, type ResolvedServers } from "./new-servers.ts";
import type { ParameterValues } from "./parameters.ts";
import { PendingInstall } from "./pending-install.ts";
import type { InstallPlan } from "./plan-install.ts";
import { installChanges, withinChanges } from "./registry-changes.ts";
import type { PlannedServer } from "./required-servers.ts";
import { keep, type KeptFolder, replacedAt } from "./replaced-folders.ts";
import { assertReplaceable, clientFolders, type FolderRecord, placeSkill } from "./skill-copies.ts";
import { parseSkillsLock, renderSkillsLock } from "./skills-lock.ts";
import { stopIfAborted } from "./interrupted.ts";
import { type TriedServer, tryNeeded } from "./try-servers.ts";

export interface InstallChoices {
  readonly clients: readonly AgentClient[];
  readonly scope: ClientScope;
  /** Set up the servers that are missing; without it there must be none. */
  readonly withMcp: boolean;
  readonly values: ParameterValues;
  /** Replace what others put there. */
  readonly force: boolean;
}

export interface InstallHooks {
  readonly signal?: AbortSignal | undefined;
  /** What is being done, for a person who waits. */
  readonly onStep?: ((text: string) => void) | undefined;
  /** Learns the secrets before anything can show them. */
  readonly redactor?: Redactor | undefined;
}

export interface InstallReport {
  readonly installed: readonly { id: string; name: string; digest: string; clients: readonly string[] }[];
  readonly servers: readonly { id: string; added: boolean; tools: readonly string[] }[];
  /** Names of secrets that were stored. */
  readonly secrets: readonly string[];
  /** Clients that must be restarted, and how. */
  readonly restart: readonly { name: string; how: string }[];
  readonly warnings: readonly string[];
  /** What was in the place of copies. */
  readonly replaced: readonly KeptFolder[];
}

/** Rejects with everything as it was before, except for what others changed meanwhile, which the message names. */
export async function applyInstall(
  plan: InstallPlan,
  place: InstallPlace,
  choices: InstallChoices,
  hooks: InstallHooks = {},
): Promise<InstallReport> {
  await mkdir(place.home, { recursive: true, mode: 0o700 });
  return withLock(installLock(place.home), async () => {
    const install = new Install(plan, place, choices, hooks);
    try {
      return await install.run();
    } finally {
      // Only if nobody else has a journal there.
      await rmdir(changesDir(place.home)).catch(() => undefined);
    }
  });
}

class Install {
  readonly #plan: InstallPlan;
  readonly #place: InstallPlace;
  readonly #choices: InstallChoices;
  readonly #hooks: InstallHooks;
  readonly #changes: ChangeSet;
  readonly #pending: PendingInstall;
  readonly #registry: SkillRegistry;
  readonly #secrets: KeptSecrets;

  constructor(plan: InstallPlan, place: InstallPlace, choices: InstallChoices, hooks: InstallHooks) {
    this.#plan = plan;
    this.#place = place;
    this.#choices = choices;
    this.#hooks = hooks;
    this.#registry = place.registry;
    this.#changes = installChanges(place.home, this.#registry);
    this.#pending = new PendingInstall(place.home);
    this.#secrets = new KeptSecrets({
      changes: this.#changes,
      place,
      onKeychain: (name) => this.#pending.noteSecret(name),
    });
  }

  async run(): Promise<InstallReport> {
    try {
      const report = await this.#steps();
      await this.#changes.done();
      await this.#pending.settle();
      await this.#registry.sweep();
      return report;
    } catch (thrown) {
      throw await this.#undone(thrown);
    }
  }

  async #steps(): Promise<InstallReport> {
    const { skills, servers } = this.#plan;
    const { clients, scope, force } = this.#choices;
    const before = await readInstalled(this.#place.home);
    const folders = new Map(
      skills.map(({ id, skill }) => [id, clientFolders(skill, clients, this.#place.clients, scope)]),
    );
    for (const { id } of skills) {
      if (!force) for (const { path } of folders.get(id) ?? []) await assertReplaceable(path, id, before);
    }

    const resolved = await this.#resolve(servers);
    const homes = homesOf(skills, resolved, this.#place.home, before);
    for (const { id, skill } of skills) {
      this.#step(`Copying ${skill.name}`);
      const home = homes.get(skill.name);
      const kept = await this.#keepReplaced(id, folders.get(id) ?? [], before);
      folders.set(id, kept);
      const targets = kept.map(({ path }) => path);
      await placeSkill(this.#changes, skill, home === undefined ? targets : [...targets, home]);
    }

    const config = await this.#writeConfig(resolved.added);
    const tried = await this.#try(config, resolved);
    const entries = await this.#writeClients(config, resolved);

    const records = new Map<string, InstalledSkill>();
    for (const planned of skills) {
      const record = installedRecord(planned, {
        run: this.#pending.run,
        servers: servers.filter(({ neededBy }) => neededBy.includes(planned.skill.name)),
        resolved,
        configFile: this.#place.configFile,
        secretsOf: (id) => this.#secretsOf(id),
        folders: folders.get(planned.id) ?? [],
        entries,
        home: homes.get(planned.skill.name),
        lockFile: this.#plan.lockFile,
        before: Object.hasOwn(before, planned.id) ? before[planned.id] : undefined,
      });
      records.set(planned.id, record);
    }
    await this.#writeRecords(records, resolved);
    await this.#register();
    return this.#report(resolved, tried, records);
  }

  readonly #replaced: KeptFolder[] = [];

  async #keepReplaced(id: string, folders: readonly FolderRecord[], installed: Installed): Promise<FolderRecord[]> {
    const result: FolderRecord[] = [];
    for (const folder of folders) {
      const found = await replacedAt(folder.path, { home: this.#place.home, id, installed });
      if (found !== undefined) {
        await keep(this.#changes, found);
        this.#replaced.push(found);
      }
      result.push(found?.comesBack === true ? { ...folder, replaced: found.replaced } : folder);
    }
    return result;
  }

  /** Stores the secrets, because an entry holds references only. */
  async #resolve(servers: readonly PlannedServer[]): Promise<ResolvedServers> {
    const values = new Map<PlannedServer, Record<string, string>>();
    for (const server of servers) {
      if (server.configured !== undefined) continue;
      const own: Record<string, string> = { ...this.#choices.values.get(server.id) };
      for (const { name, sensitive } of server.server.parameters) {
        const value = own[name];
        if (!sensitive || value === undefined) continue;
        this.#hooks.redactor?.add(value);
        const kept = this.#secrets.kept.length;
        own[name] = await this.#secrets.keep(secretName(server.id, name), value);
        this.#ofServer.set(server.id, [...(this.#ofServer.get(server.id) ?? []), ...this.#secrets.kept.slice(kept)]);
      }
      values.set(server, own);
    }
    stopIfAborted(this.#hooks.signal);
    return resolveServers(servers, this.#place, (server) => values.get(server) ?? {});
  }

  readonly #ofServer = new Map<string, readonly KeptSecret[]>();

  #secretsOf(id: string): readonly KeptSecret[] {
    return this.#ofServer.get(id) ?? [];
  }

  async #writeConfig(added: readonly NewServer[]): Promise<LoadedConfig> {
    const { configFile: file, env, cwd, config } = this.#place;
    if (added.length === 0) return config;
    this.#step(`Writing ${file}`);
    await this.#changes.editFile(file, (text) =>
      added.reduce<string | null>((all, { planned, entry }) => textWithServer(file, all, planned.id, entry), text),
    );
    return loadConfig({ env, cwd, file });
  }

  async #try(config: LoadedConfig, { added, ids }: ResolvedServers): Promise<readonly TriedServer[]> {
    if (!this.#choices.withMcp || ids.size === 0) return [];
    const needed = new Set(ids.values());
    this.#step(`Connecting to ${[...needed].join(", ")}`);
    const { env } = this.#place;
    const { signal, redactor } = this.#hooks;
    const fresh = new Set(added.map(({ planned }) => planned.id));
    return tryNeeded(
      config,
      { needed, fresh },
      {
        env,
        signal,
        redactor,
        onHome: (dir) => this.#pending.noteTrial(dir),
      },
    );
  }

  async #writeClients(config: LoadedConfig, { ids }: ResolvedServers): Promise<InstalledSkill["entries"]> {
    stopIfAborted(this.#hooks.signal);
    const { clients, scope, force } = this.#choices;
    const { home, configFile, clients: place } = this.#place;
    const wanted = [...new Set(ids.values())];
    const servers = wanted.flatMap((id): ServerSpec[] => config.servers.filter((spec) => spec.id === id));
    const entries: InstalledSkill["entries"] = [];
    for (const write of clientWrites({ clients, place, scope, servers, configFile: config.file ?? configFile })) {
      this.#step(`Writing ${write.file.path}`);
      const { written, present } = await writeClientServers({
        changes: this.#changes,
        home,
        ...write,
        replace: force,
        by: this.#plan.skills.map(({ skill }) => skill.name).join(", "),
      });
      // Those too that stood there as wanted: another skill's install may have put them there. Whose they are is on
      // record with what was written.
      entries.push({ client: write.client.id, scope, file: write.file.path, ids: [...written, ...present] });
    }
    return entries;
  }

  async #writeRecords(records: ReadonlyMap<string, InstalledSkill>, resolved: ResolvedServers): Promise<void> {
    const { lockFile, skills } = this.#plan;
    await this.#changes.editFile(
      lockFile,
      (text) => {
        const lock = { ...parseSkillsLock(lockFile, text) };
        for (const planned of skills) {
          const record = records.get(planned.id);
          if (record !== undefined) lock[planned.skill.name] = lockedSkill(planned, record, resolved, lockFile);
        }
        return renderSkillsLock(lock);
      },
      { mode: 0o644 },
    );
    const file = installedFile(this.#place.home);
    await this.#changes.editFile(file, (text) =>
      renderInstalled({ ...parseInstalled(file, text), ...Object.fromEntries(records) }),
    );
    stopIfAborted(this.#hooks.signal);
  }

  async #register(): Promise<void> {
    const options = { replace: this.#choices.force, ...withinChanges(this.#changes) };
    const { failed } = await this.#registry.put(this.#plan.skills, options);
    const [first] = failed;
    if (first !== undefined) throw new ToolcribError("conflict", `${first.name}: ${first.message}`);
  }

  #report(
    { added, ids }: ResolvedServers,
    tried: readonly TriedServer[],
    records: ReadonlyMap<string, InstalledSkill>,
  ): InstallReport {
    const { clients } = this.#choices;
    const fresh = new Set(added.map(({ planned }) => planned.id));
    return {
      installed: this.#plan.skills.map(({ id, skill }) => ({
        id,
        name: skill.name,
        digest: skill.digest,
        clients: clientsOf(records.get(id)),
      })),
      servers: [...new Set(ids.values())].map((id) => ({
        id,
        added: fresh.has(id),
        tools: tried.find((each) => each.id === id)?.tools ?? [],
      })),
      secrets: this.#secrets.kept.map(({ name }) => name),
      replaced: this.#replaced,
      restart: clients.map(({ name, afterChange }) => ({ name, how: afterChange })),
      warnings: tried.flatMap(({ id, failure, needsLogin }) => [
        ...(failure === undefined ? [] : [`The server ${id} of the config does not connect: ${failure}`]),
        ...(needsLogin === true ? [`The server ${id} wants a login: toolcrib auth login ${id}`] : []),
      ]),
    };
  }

  async #undone(thrown: unknown): Promise<ToolcribError> {
    const error = asToolcribError(thrown);
    const [files, rest] = await Promise.allSettled([this.#changes.undo(), this.#pending.undo(this.#place.env)]);
    await this.#registry.sweep();
    const kept = files.status === "fulfilled" ? files.value.kept : [];
    const left = [
      ...(kept.length === 0 ? [] : [`Changed by others meanwhile, and left as they are: ${kept.join(", ")}`]),
      ...[files, rest].flatMap((each) => (each.status === "rejected" ? [asToolcribError(each.reason).message] : [])),
    ];
    if (left.length === 0) return error;
    return new ToolcribError(error.code, [error.message, ...left].join("\n"), {
      hint: error.hint,
      details: error.details,
      cause: thrown,
    });
  }

  #step(text: string): void {
    stopIfAborted(this.#hooks.signal);
    this.#hooks.onStep?.(text);
  }
}

/** Every client that the skill is in, by folder or by server. */
function clientsOf(record: InstalledSkill | undefined): string[] {
  if (record === undefined) return [];
  const ids = [...record.folders.flatMap(({ clients }) => clients), ...record.entries.map(({ client }) => client)];
  return [...new Set(ids)].toSorted();
}
