/** Carries out a planned install, all of it or nothing, or shows what it would change. */
import type {
  AgentClient,
  ClientEnvironment,
  ClientFile,
  ClientScope,
  WrittenServer,
} from "../../clients/agent-client.ts";
import { textWithServer } from "../../config/edit-config.ts";
import { loadConfig } from "../../config/load-config.ts";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import { ServerEntrySchema, type ServerSpec } from "../../model/server-spec.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { specStrings } from "../../secrets/resolve-spec.ts";
import { hasReference } from "../../secrets/secret-references.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import {
  fileToWriteFor,
  planWrite,
  readTextIfPresent,
  readWrittenEntries,
  writeClientServers,
} from "../clients/client-files.ts";
import { gatewayCommand } from "../clients/gateway-command.ts";
import { assertNoSecrets } from "../clients/no-secrets.ts";
import type { InstallContext } from "./install-context.ts";
import {
  createInstallChanges,
  PendingInstall,
  throwIfAborted,
  withInstallLock,
  withinChanges,
} from "./install-journal.ts";
import { type InstalledSecret, InstallSecrets, previewSecret, secretName } from "./install-secrets.ts";
import {
  editInstalled,
  type Installed,
  type InstalledSkill,
  lockedSource,
  parseSkillsLock,
  readInstalled,
  recordOf,
  renderSkillsLock,
} from "./installed-skills.ts";
import { type NewServer, previewValues, type ResolvedServers, resolveServers, skillHomes } from "./new-servers.ts";
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
  readonly signal?: AbortSignal;
  /** Reports each step to the user. */
  readonly onStep?: (text: string) => void;
  /** Gets the secrets before anything can show them. */
  readonly redactor?: Redactor;
}

export interface InstallReport {
  readonly installed: readonly { id: string; name: string; digest: string; clients: readonly string[] }[];
  readonly servers: readonly { id: string; added: boolean; tools: readonly string[] }[];
  /** Names of secrets that were stored. */
  readonly secrets: readonly string[];
  /** Clients that must be restarted, and how. */
  readonly restart: readonly { name: string; how: string }[];
  readonly warnings: readonly string[];
  /** Folders that copies replaced. */
  readonly replaced: readonly ReplacedFolder[];
}

/** If it rejects, nothing is changed, except for files that other programs changed meanwhile; the message names them. */
export async function applyInstall(
  plan: InstallPlan,
  context: InstallContext,
  choices: InstallChoices,
  hooks: InstallHooks = {},
): Promise<InstallReport> {
  return withInstallLock(context.home, () => new InstallRun(plan, context, choices, hooks).run());
}

class InstallRun {
  readonly #plan: InstallPlan;
  readonly #context: InstallContext;
  readonly #choices: InstallChoices;
  readonly #hooks: InstallHooks;
  readonly #changes: ChangeSet;
  readonly #pending: PendingInstall;
  readonly #registry: SkillRegistry;
  readonly #secrets: InstallSecrets;
  readonly #ofServer = new Map<string, readonly InstalledSecret[]>();
  readonly #replaced: ReplacedFolder[] = [];

  constructor(plan: InstallPlan, context: InstallContext, choices: InstallChoices, hooks: InstallHooks) {
    this.#plan = plan;
    this.#context = context;
    this.#choices = choices;
    this.#hooks = hooks;
    this.#registry = context.registry;
    this.#changes = createInstallChanges(context.home, this.#registry);
    this.#pending = new PendingInstall(context.home);
    this.#secrets = new InstallSecrets({
      changes: this.#changes,
      place: context,
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
    const before = await readInstalled(this.#context.home);
    const folders = new Map(
      skills.map(({ id, skill }) => [id, clientFolders(skill, clients, this.#context.clients, scope)]),
    );
    if (!force) for (const [id, own] of folders) for (const { path } of own) await assertReplaceable(path, id, before);

    const resolved = await this.#resolve(servers);
    const homes = skillHomes(skills, resolved, this.#context.home, before);
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

    const { run } = this.#pending;
    const facts = { run, resolved, secrets: this.#ofServer, folders, entries, homes, before };
    const records = recordSkills(this.#plan, this.#context, facts);
    await this.#writeRecords(records, resolved);
    await this.#register();
    return this.#report(resolved, tried, records);
  }

  async #keepReplaced(id: string, folders: readonly FolderRecord[], installed: Installed): Promise<FolderRecord[]> {
    const result: FolderRecord[] = [];
    for (const folder of folders) {
      const found = await findReplacedFolder(folder.path, { home: this.#context.home, id, installed });
      if (found !== undefined) {
        await keepReplaced(this.#changes, found);
        this.#replaced.push(found);
      }
      result.push(found?.comesBack === true ? { ...folder, replaced: found.replaced } : folder);
    }
    return result;
  }

  /** Stores the secrets, because entries contain only references. */
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
    return resolveServers(servers, this.#context, (server) => values.get(server) ?? {});
  }

  async #writeConfig(added: readonly NewServer[]): Promise<LoadedConfig> {
    const { configFile: file, env, cwd, config } = this.#context;
    if (added.length === 0) return config;
    this.#step(`Writing ${file}`);
    await this.#changes.editFile(file, (text) => configText(file, text, added));
    return loadConfig({ env, cwd, file });
  }

  async #try(config: LoadedConfig, { added, ids }: ResolvedServers): Promise<readonly TriedServer[]> {
    if (!this.#choices.withMcp || ids.size === 0) return [];
    const needed = new Set(ids.values());
    const fresh = new Set(added.map(({ planned }) => planned.id));
    this.#step(`Connecting to ${[...needed].join(", ")}`);
    const { signal, redactor } = this.#hooks;
    const onHome = (dir: string): Promise<void> => this.#pending.noteTrial(dir);
    return tryNeeded(config, { needed, fresh }, { env: this.#context.env, signal, redactor, onHome });
  }

  async #writeClients(config: LoadedConfig, { ids }: ResolvedServers): Promise<InstalledSkill["entries"]> {
    throwIfAborted(this.#hooks.signal);
    const { clients, scope, force } = this.#choices;
    const { home, configFile, clients: place } = this.#context;
    const servers = [...new Set(ids.values())].flatMap((id) => config.servers.filter((spec) => spec.id === id));
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
      // Also those that were there as wanted: another skill's install may have put them there, and clients.json says whose
      // they are.
      entries.push({ client: write.client.id, scope, file: write.file.path, ids: [...written, ...present] });
    }
    return entries;
  }

  async #writeRecords(records: ReadonlyMap<string, InstalledSkill>, resolved: ResolvedServers): Promise<void> {
    const edit = (text: string | null): string | null => lockText(text, this.#plan, records, resolved);
    await this.#changes.editFile(this.#plan.lockFile, edit, { mode: 0o644 });
    await editInstalled(this.#changes, this.#context.home, (now) => ({ ...now, ...Object.fromEntries(records) }));
    throwIfAborted(this.#hooks.signal);
  }

  async #register(): Promise<void> {
    const options = { replace: this.#choices.force, ...withinChanges(this.#changes) };
    const { failed } = await this.#registry.put(this.#plan.skills, options);
    const [first] = failed;
    if (first !== undefined) throw new ToolcribError("conflict", `${first.name}: ${first.message}`);
  }

  #report(
    resolved: ResolvedServers,
    tried: readonly TriedServer[],
    records: ReadonlyMap<string, InstalledSkill>,
  ): InstallReport {
    return {
      installed: skillSummaries(this.#plan, records),
      servers: serverSummaries(resolved).map((server) => ({
        ...server,
        tools: tried.find(({ id }) => id === server.id)?.tools ?? [],
      })),
      secrets: this.#secrets.kept.map(({ name }) => name),
      replaced: this.#replaced,
      restart: this.#choices.clients.map(({ name, afterChange }) => ({ name, how: afterChange })),
      warnings: tried.flatMap(({ id, failure, needsLogin }) => [
        ...(failure === undefined ? [] : [`The configured server ${id} does not connect: ${failure}`]),
        ...(needsLogin === true ? [`The server ${id} needs a login: toolcrib auth login ${id}`] : []),
      ]),
    };
  }

  async #undone(thrown: unknown): Promise<ToolcribError> {
    const error = asToolcribError(thrown);
    const [files, rest] = await Promise.allSettled([this.#changes.undo(), this.#pending.undo(this.#context.env)]);
    await this.#registry.sweep();
    const kept = files.status === "fulfilled" ? files.value.kept : [];
    const left = [
      ...(kept.length === 0
        ? []
        : [`These were changed by other programs meanwhile, and were left as they are: ${kept.join(", ")}`]),
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

export interface FileChange {
  readonly file: string;
  readonly before: string | null;
  readonly after: string | null;
  /** The client whose file it is; undefined for Toolcrib's own. */
  readonly client?: AgentClient;
}

export interface InstallPreview {
  readonly skills: readonly { id: string; name: string; digest: string; clients: readonly string[] }[];
  readonly servers: readonly { id: string; added: boolean }[];
  readonly secrets: readonly string[];
  readonly files: readonly FileChange[];
  readonly folders: readonly string[];
  /** Folders that contain something else, which would be kept. */
  readonly replaced: readonly string[];
}

/** The changes that an install would make; nothing is written. Throws what the install itself would throw before it writes. */
export async function previewInstall(
  plan: InstallPlan,
  context: InstallContext,
  { clients, scope, force, values }: InstallChoices,
): Promise<InstallPreview> {
  const before = await readInstalled(context.home);
  const { references, secrets } = await previewSecrets(plan.servers, context, values);
  const resolved = resolveServers(plan.servers, context, (server) =>
    previewValues(server, values, (parameter) => references.get(secretName(server.id, parameter)) ?? ""),
  );
  const files: FileChange[] = [];
  if (resolved.added.length > 0) {
    const text = await readTextIfPresent(context.configFile);
    const after = configText(context.configFile, text, resolved.added);
    files.push({ file: context.configFile, before: text, after });
  }

  const wanted = new Set(resolved.ids.values());
  const specs = [...context.config.servers, ...resolved.added.map((server) => specOf(server, context))];
  const known = await readWrittenEntries(context.home);
  const writes = planClientWrites({
    clients,
    place: context.clients,
    scope,
    servers: specs.filter(({ id }) => wanted.has(id)),
    configFile: context.config.file ?? context.configFile,
  });
  for (const { client, file, servers } of writes) {
    const text = await readTextIfPresent(file.path);
    const planned = planWrite(text, { client, file, servers, replace: force }, known);
    files.push({ file: file.path, before: text, after: planned.written.length === 0 ? text : planned.text, client });
  }

  const folders = new Map<string, readonly FolderRecord[]>();
  const replaced: string[] = [];
  for (const { id, skill } of plan.skills) {
    const own = clientFolders(skill, clients, context.clients, scope);
    folders.set(id, own);
    for (const { path } of own) {
      if (!force) await assertReplaceable(path, id, before);
      const found = await findReplacedFolder(path, { home: context.home, id, installed: before });
      if (found !== undefined) replaced.push(path);
    }
  }
  const homes = skillHomes(plan.skills, resolved, context.home, {});
  const entries = writes.map(({ client, file, servers }) => {
    return { client: client.id, scope, file: file.path, ids: Object.keys(servers) };
  });
  const facts = { run: "", resolved, secrets: new Map(), folders, entries, homes, before };
  const records = recordSkills(plan, context, facts);
  const lock = await readTextIfPresent(plan.lockFile);
  files.push({ file: plan.lockFile, before: lock, after: lockText(lock, plan, records, resolved) });
  return {
    skills: skillSummaries(plan, records),
    servers: serverSummaries(resolved),
    secrets,
    files,
    folders: plan.skills.flatMap(({ id, skill }) => [
      ...(folders.get(id) ?? []).map(({ path }) => path),
      ...[homes.get(skill.name)].filter((home) => home !== undefined),
    ]),
    replaced,
  };
}

async function previewSecrets(
  servers: readonly PlannedServer[],
  context: InstallContext,
  values: ParameterValues,
): Promise<{ readonly references: ReadonlyMap<string, string>; readonly secrets: readonly string[] }> {
  const references = new Map<string, string>();
  const secrets = new Set<string>();
  for (const { id, server, configured } of servers) {
    if (configured !== undefined) continue;
    for (const { name: parameter, sensitive } of server.parameters) {
      const value = values.get(id)?.[parameter];
      if (!sensitive || value === undefined) continue;
      const wanted = secretName(id, parameter);
      const { name, reference, isNew } = await previewSecret(wanted, value, context);
      references.set(wanted, reference);
      if (isNew) secrets.add(name);
    }
  }
  return { references, secrets: [...secrets] };
}

function specOf({ planned, entry }: NewServer, { configFile }: InstallContext): ServerSpec {
  const origin = { file: configFile, dialect: "toolcrib" };
  return { ...ServerEntrySchema.parse(entry), id: planned.id, origin, baseDir: configFile };
}

interface RecordFacts {
  readonly run: string;
  readonly resolved: ResolvedServers;
  /** By id of the server. */
  readonly secrets: ReadonlyMap<string, readonly InstalledSecret[]>;
  /** By id of the skill. */
  readonly folders: ReadonlyMap<string, readonly FolderRecord[]>;
  readonly entries: InstalledSkill["entries"];
  /** By name of the skill. */
  readonly homes: ReadonlyMap<string, string>;
  /** Earlier installs: what they put in other places is still there. */
  readonly before: Installed;
}

/** The records for `installed.json`, by id of the skill. */
function recordSkills(
  { skills, servers: allServers, lockFile }: InstallPlan,
  { configFile }: InstallContext,
  { run, resolved, secrets, folders, entries, homes, before: installed }: RecordFacts,
): Map<string, InstalledSkill> {
  const fresh = new Set(resolved.added.map(({ planned }) => planned.id));
  const recordFor = ({ id: skillId, skill, source }: PlannedSkill): InstalledSkill => {
    const before = recordOf(installed, skillId);
    const own = allServers.filter(({ neededBy }) => neededBy.includes(skill.name));
    const servers = own.map((planned) => {
      const id = resolved.ids.get(planned) ?? planned.id;
      const earlier = before?.servers.find((each) => each.id === id);
      return {
        id,
        added: fresh.has(id) || earlier?.added === true,
        file: earlier?.file ?? planned.configured?.origin.file ?? configFile,
        secrets: [...(earlier?.secrets ?? []), ...(secrets.get(id) ?? [])],
      };
    });
    const needed = new Set(servers.map(({ id }) => id));
    return {
      name: skill.name,
      source,
      digest: skill.digest,
      run,
      folders: mergeByKey(before?.folders ?? [], folders.get(skillId) ?? [], ({ path }) => path, mergeFolders),
      servers,
      entries: mergeByKey(
        before?.entries ?? [],
        entries.map((entry) => ({ ...entry, ids: entry.ids.filter((id) => needed.has(id)) })),
        ({ file }) => file,
        (old, now) => ({ ...now, ids: [...new Set([...old.ids, ...now.ids])] }),
      ),
      home: homes.get(skill.name) ?? before?.home,
      lockFile,
    };
  };
  return new Map(skills.map((planned) => [planned.id, recordFor(planned)]));
}

function mergeFolders(old: FolderRecord, now: FolderRecord): FolderRecord {
  return { ...now, clients: [...new Set([...old.clients, ...now.clients])], replaced: old.replaced ?? now.replaced };
}

/** Both lists; `both` makes one of two items with the same key. */
function mergeByKey<T>(old: readonly T[], now: readonly T[], keyOf: (item: T) => string, both: (a: T, b: T) => T): T[] {
  const all = new Map(old.map((item) => [keyOf(item), item]));
  for (const item of now) {
    const known = all.get(keyOf(item));
    all.set(keyOf(item), known === undefined ? item : both(known, item));
  }
  return [...all.values()];
}

/** The text of the config with the new servers in it. */
function configText(file: string, text: string | null, added: readonly NewServer[]): string | null {
  return added.reduce<string | null>((all, { planned, entry }) => textWithServer(file, all, planned.id, entry), text);
}

/** The text of the lock file, which has neither values nor paths that only this machine knows. */
function lockText(
  text: string | null,
  { skills, lockFile }: InstallPlan,
  records: ReadonlyMap<string, InstalledSkill>,
  { ids }: ResolvedServers,
): string | null {
  const lock = { ...parseSkillsLock(lockFile, text) };
  const packages = new Map([...ids].map(([planned, id]) => [id, planned.server.package]));
  for (const { id: skillId, skill, source, resolved } of skills) {
    const record = records.get(skillId);
    if (record === undefined) continue;
    lock[skill.name] = {
      source: lockedSource(source, lockFile),
      resolved,
      version: skill.version ?? "1.0.0",
      digest: skill.digest,
      servers: record.servers
        .map(({ id }) => ({ id, package: packages.get(id) }))
        .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      clients: clientsOf(record),
    };
  }
  return renderSkillsLock(lock);
}

function skillSummaries(
  { skills }: InstallPlan,
  records: ReadonlyMap<string, InstalledSkill>,
): InstallPreview["skills"] {
  return skills.map(({ id, skill: { name, digest } }) => ({ id, name, digest, clients: clientsOf(records.get(id)) }));
}

/** Every client that the skill is in, by folder or by server. */
function clientsOf(record: InstalledSkill | undefined): string[] {
  if (record === undefined) return [];
  const ids = [...record.folders.flatMap(({ clients }) => clients), ...record.entries.map(({ client }) => client)];
  return [...new Set(ids)].toSorted();
}

function serverSummaries({ added, ids }: ResolvedServers): InstallPreview["servers"] {
  const fresh = new Set(added.map(({ planned }) => planned.id));
  return [...new Set(ids.values())].map((id) => ({ id, added: fresh.has(id) }));
}

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

/**
 * The servers as they are written for clients: directly, or through Toolcrib where only that works. Throws `invalid_arguments`
 * for a client that has no file of that scope.
 */
export function planClientWrites({ clients, place, scope, servers, configFile }: ClientWriteOptions): ClientWrite[] {
  if (servers.length === 0) return [];
  return clients.map((client) => {
    const file = fileToWriteFor(client, scope, place);
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

/** Undefined where only Toolcrib can start it: references, logins, sandboxes and folders that are relative to the config. */
function asDirectServer(spec: ServerSpec): WrittenServer | undefined {
  const { command, args = [], env, cwd, url, headers, transport, auth, sandbox = "none" } = spec;
  if (auth !== undefined || specStrings(spec).some(({ text }) => hasReference(text) || text.includes("$${"))) {
    return undefined;
  }
  if (url !== undefined) return { url, transport: transport === "sse" ? "sse" : "http", headers };
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
