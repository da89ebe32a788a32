/** Puts a planned install in place, all of it or nothing. */
import { mkdir, rmdir } from "node:fs/promises";
import type {
  AgentClient,
  ClientEnvironment,
  ClientFile,
  ClientScope,
  WrittenServer,
} from "../../clients/agent-client.ts";
import { textWithServer } from "../../config/edit-config.ts";
import { loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import { withLock } from "../../files/lock-file.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { specStrings } from "../../secrets/resolve-spec.ts";
import { hasReference } from "../../secrets/secret-references.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import { fileToWrite, gatewayCommand, writeClientServers } from "../clients/client-files.ts";
import { assertNoSecrets } from "../clients/no-secrets.ts";
import { changesDir } from "./changes-dir.ts";
import type { InstallContext } from "./install-context.ts";
import { installLock } from "./install-files.ts";
import { createInstallChanges, PendingInstall, throwIfAborted, withinChanges } from "./install-journal.ts";
import { type InstalledSecret, InstallSecrets, secretName } from "./install-secrets.ts";
import {
  type Installed,
  installedFile,
  type InstalledSkill,
  type LockedSkill,
  lockedSource,
  parseInstalled,
  parseSkillsLock,
  readInstalled,
  renderInstalled,
  renderSkillsLock,
} from "./installed-skills.ts";
import { type NewServer, type ResolvedServers, resolveServers, skillHomes } from "./new-servers.ts";
import type { InstallPlan, PlannedSkill } from "./plan-install.ts";
import type { ParameterValues, PlannedServer } from "./required-servers.ts";
import {
  assertReplaceable,
  clientFolders,
  findReplacedFolder,
  type FolderRecord,
  keepReplaced,
  placeSkillCopies,
  type ReplacedFolder,
} from "./skill-folders.ts";
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

interface InstallHooks {
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
  readonly replaced: readonly ReplacedFolder[];
}

/** Rejects with everything as it was before, except for what others changed meanwhile, which the message names. */
export async function applyInstall(
  plan: InstallPlan,
  place: InstallContext,
  choices: InstallChoices,
  hooks: InstallHooks = {},
): Promise<InstallReport> {
  await mkdir(place.home, { recursive: true, mode: 0o700 });
  return withLock(installLock(place.home), async () => {
    const install = new InstallRun(plan, place, choices, hooks);
    try {
      return await install.run();
    } finally {
      // Only if nobody else has a journal there.
      await rmdir(changesDir(place.home)).catch(() => undefined);
    }
  });
}

class InstallRun {
  readonly #plan: InstallPlan;
  readonly #place: InstallContext;
  readonly #choices: InstallChoices;
  readonly #hooks: InstallHooks;
  readonly #changes: ChangeSet;
  readonly #pending: PendingInstall;
  readonly #registry: SkillRegistry;
  readonly #secrets: InstallSecrets;

  constructor(plan: InstallPlan, place: InstallContext, choices: InstallChoices, hooks: InstallHooks) {
    this.#plan = plan;
    this.#place = place;
    this.#choices = choices;
    this.#hooks = hooks;
    this.#registry = place.registry;
    this.#changes = createInstallChanges(place.home, this.#registry);
    this.#pending = new PendingInstall(place.home);
    this.#secrets = new InstallSecrets({
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
    const homes = skillHomes(skills, resolved, this.#place.home, before);
    for (const { id, skill } of skills) {
      this.#step(`Copying ${skill.name}`);
      const home = homes.get(skill.name);
      const kept = await this.#keepReplaced(id, folders.get(id) ?? [], before);
      folders.set(id, kept);
      const targets = kept.map(({ path }) => path);
      await placeSkillCopies(this.#changes, skill, home === undefined ? targets : [...targets, home]);
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

  readonly #replaced: ReplacedFolder[] = [];

  async #keepReplaced(id: string, folders: readonly FolderRecord[], installed: Installed): Promise<FolderRecord[]> {
    const result: FolderRecord[] = [];
    for (const folder of folders) {
      const found = await findReplacedFolder(folder.path, { home: this.#place.home, id, installed });
      if (found !== undefined) {
        await keepReplaced(this.#changes, found);
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
    throwIfAborted(this.#hooks.signal);
    return resolveServers(servers, this.#place, (server) => values.get(server) ?? {});
  }

  readonly #ofServer = new Map<string, readonly InstalledSecret[]>();

  #secretsOf(id: string): readonly InstalledSecret[] {
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
    throwIfAborted(this.#hooks.signal);
    const { clients, scope, force } = this.#choices;
    const { home, configFile, clients: place } = this.#place;
    const wanted = [...new Set(ids.values())];
    const servers = wanted.flatMap((id): ServerSpec[] => config.servers.filter((spec) => spec.id === id));
    const entries: InstalledSkill["entries"] = [];
    for (const write of planClientWrites({ clients, place, scope, servers, configFile: config.file ?? configFile })) {
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
    throwIfAborted(this.#hooks.signal);
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
    throwIfAborted(this.#hooks.signal);
    this.#hooks.onStep?.(text);
  }
}

/** Every client that the skill is in, by folder or by server. */
function clientsOf(record: InstalledSkill | undefined): string[] {
  if (record === undefined) return [];
  const ids = [...record.folders.flatMap(({ clients }) => clients), ...record.entries.map(({ client }) => client)];
  return [...new Set(ids)].toSorted();
}

/** What is written down about an installed skill, for removing it and for the lock file. */

interface RecordFacts {
  readonly run: string;
  /** Those that this skill needs. */
  readonly servers: readonly PlannedServer[];
  readonly resolved: ResolvedServers;
  readonly configFile: string;
  readonly secretsOf: (serverId: string) => readonly InstalledSecret[];
  readonly folders: readonly FolderRecord[];
  readonly entries: InstalledSkill["entries"];
  readonly home: string | undefined;
  readonly lockFile: string;
  /** Of an earlier install of the same skill: what it put in other places is still there. */
  readonly before: InstalledSkill | undefined;
}

export function installedRecord({ skill, source }: PlannedSkill, facts: RecordFacts): InstalledSkill {
  const { before, resolved } = facts;
  const fresh = new Set(resolved.added.map(({ planned }) => planned.id));
  const servers = facts.servers.map((planned) => {
    const id = resolved.ids.get(planned) ?? planned.id;
    const earlier = before?.servers.find((each) => each.id === id);
    return {
      id,
      added: fresh.has(id) || earlier?.added === true,
      file: earlier?.file ?? planned.configured?.origin.file ?? facts.configFile,
      secrets: [...(earlier?.secrets ?? []), ...facts.secretsOf(id)],
    };
  });
  const needed = new Set(servers.map(({ id }) => id));
  const home = facts.home ?? before?.home;
  return {
    name: skill.name,
    source,
    digest: skill.digest,
    run: facts.run,
    folders: mergeByKey(before?.folders ?? [], facts.folders, ({ path }) => path, mergeFolders),
    servers,
    entries: mergeByKey(
      before?.entries ?? [],
      facts.entries.map((entry) => ({ ...entry, ids: entry.ids.filter((id) => needed.has(id)) })),
      ({ file }) => file,
      (old, now) => ({ ...now, ids: [...new Set([...old.ids, ...now.ids])] }),
    ),
    home,
    lockFile: facts.lockFile,
  };
}

function mergeFolders(old: FolderRecord, now: FolderRecord): FolderRecord {
  const replaced = old.replaced ?? now.replaced;
  const clients = [...new Set([...old.clients, ...now.clients])];
  return { ...now, clients, ...(replaced === undefined ? {} : { replaced }) };
}

/** Both lists, with what is in both made one. */
function mergeByKey<T>(old: readonly T[], now: readonly T[], keyOf: (item: T) => string, both: (a: T, b: T) => T): T[] {
  const all = new Map(old.map((item) => [keyOf(item), item]));
  for (const item of now) {
    const known = all.get(keyOf(item));
    all.set(keyOf(item), known === undefined ? item : both(known, item));
  }
  return [...all.values()];
}

/** Holds neither values nor paths of this machine alone. */
export function lockedSkill(
  { skill, source, resolved: state }: PlannedSkill,
  record: InstalledSkill,
  { ids }: ResolvedServers,
  lockFile: string,
): LockedSkill {
  const packages = new Map([...ids].map(([planned, id]) => [id, planned.server.package]));
  const clients = [
    ...record.folders.flatMap((folder) => folder.clients),
    ...record.entries.map(({ client }) => client),
  ];
  return {
    source: lockedSource(source, lockFile),
    resolved: state,
    version: skill.version ?? "1.0.0",
    digest: skill.digest,
    servers: record.servers
      .map(({ id }) => {
        const name = packages.get(id);
        return { id, package: name };
      })
      .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    clients: [...new Set(clients)].toSorted(),
  };
}

/** The servers of a skill as they stand in the files of clients: directly, or through Toolcrib where a secret is needed. */

interface ClientWrite {
  readonly client: AgentClient;
  readonly file: ClientFile;
  readonly servers: Readonly<Record<string, WrittenServer>>;
}

interface ClientWriteOptions {
  readonly clients: readonly AgentClient[];
  readonly place: ClientEnvironment;
  readonly scope: ClientScope;
  readonly servers: readonly ServerSpec[];
  readonly configFile: string;
}

/** Throws `invalid_arguments` for a client that has no file of that scope. */
export function planClientWrites({ clients, place, scope, servers, configFile }: ClientWriteOptions): ClientWrite[] {
  if (servers.length === 0) return [];
  return clients.map((client) => {
    const file = fileToWrite(client, scope, place);
    if (file === undefined) {
      throw new ToolcribError("invalid_arguments", `${client.name} has no ${scope} file for MCP servers.`, {
        hint: `Use --scope ${scope === "user" ? "project" : "user"}.`,
      });
    }
    const written = servers.map((spec) => [spec.id, serverForClient(client, spec, configFile, place.env)] as const);
    return { client, file, servers: Object.fromEntries(written) };
  });
}

function serverForClient(
  client: AgentClient,
  spec: ServerSpec,
  configFile: string,
  env: NodeJS.ProcessEnv,
): WrittenServer {
  const direct = asDirectServer(spec);
  if (direct !== undefined && canClientUse(client, spec.id, direct)) return direct;
  return gatewayCommand({ server: spec.id, configFile, env });
}

/** undefined for what only Toolcrib can do: resolve references, log in, make a cage, find a folder from the place of the config. */
function asDirectServer(spec: ServerSpec): WrittenServer | undefined {
  const { command, args = [], env, cwd, url, headers, transport, auth, sandbox = "none" } = spec;
  if (auth !== undefined || specStrings(spec).some(({ text }) => hasReference(text) || text.includes("$${"))) {
    return undefined;
  }
  if (url !== undefined) {
    return { url, transport: transport === "sse" ? "sse" : "http", headers };
  }
  if (command === undefined || cwd !== undefined || sandbox !== "none") return undefined;
  return { command, args, env };
}

function canClientUse(client: AgentClient, id: string, server: WrittenServer): boolean {
  if (client.write(id, server) === undefined) return false;
  try {
    assertNoSecrets(client, id, server);
    return true;
  } catch (error) {
    if (error instanceof ToolcribError) return false;
    throw error;
  }
}
