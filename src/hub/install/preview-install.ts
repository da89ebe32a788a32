/** What an install would write, worked out without writing anything. */
import { readFile } from "node:fs/promises";
import type { AgentClient } from "../../clients/agent-client.ts";
import { textWithServer } from "../../config/edit-config.ts";
import { ServerEntrySchema, type ServerSpec } from "../../model/server-spec.ts";
import { planWrite, readWrittenEntries } from "../clients/client-files.ts";
import { type InstallChoices, installedRecord, lockedSkill, planClientWrites } from "./apply-install.ts";
import type { InstallContext } from "./install-context.ts";
import { parseSkillsLock, readInstalled, renderSkillsLock } from "./installed-skills.ts";
import { previewSecret, secretName } from "./install-secrets.ts";
import { type NewServer, previewValues, resolveServers } from "./new-servers.ts";
import type { ParameterValues, PlannedServer } from "./required-servers.ts";
import type { InstallPlan } from "./plan-install.ts";
import { assertReplaceable, clientFolders, findReplacedFolder, skillHome } from "./skill-folders.ts";

export interface FileChange {
  readonly file: string;
  readonly before: string | null;
  readonly after: string | null;
  /** Whose file it is, if not Toolcrib's. */
  readonly client?: AgentClient;
}

export interface InstallPreview {
  readonly skills: readonly { id: string; name: string; digest: string; clients: readonly string[] }[];
  readonly servers: readonly { id: string; added: boolean }[];
  readonly secrets: readonly string[];
  readonly files: readonly FileChange[];
  readonly folders: readonly string[];
  /** Those of them that hold something else, which would be kept. */
  readonly replaced: readonly string[];
}

/** Throws what the install itself would throw before it writes. */
export async function previewInstall(
  plan: InstallPlan,
  place: InstallContext,
  choices: InstallChoices,
): Promise<InstallPreview> {
  const { clients, scope, force, values } = choices;
  const before = await readInstalled(place.home);
  const { references, secrets } = await previewSecrets(plan.servers, place, values);
  const resolved = resolveServers(plan.servers, place, (server) =>
    previewValues(server, values, (parameter) => references.get(secretName(server.id, parameter)) ?? ""),
  );
  const files: FileChange[] = [];
  if (resolved.added.length > 0) files.push(await configChange(place.configFile, resolved.added));

  const wanted = new Set(resolved.ids.values());
  const specs = [...place.config.servers, ...resolved.added.map((server) => specOf(server, place))];
  const known = await readWrittenEntries(place.home);
  const writes = planClientWrites({
    clients,
    place: place.clients,
    scope,
    servers: specs.filter(({ id }) => wanted.has(id)),
    configFile: place.config.file ?? place.configFile,
  });
  for (const { client, file, servers } of writes) {
    const text = await textOf(file.path);
    const planned = planWrite(text, { client, file, servers, replace: force }, known);
    files.push({ file: file.path, before: text, after: planned.written.length === 0 ? text : planned.text, client });
  }

  const lockText = await textOf(plan.lockFile);
  const lock = { ...parseSkillsLock(plan.lockFile, lockText) };
  const folders: string[] = [];
  const replaced: string[] = [];
  const skills: InstallPreview["skills"][number][] = [];
  for (const planned of plan.skills) {
    const { id, skill } = planned;
    const own = clientFolders(skill, clients, place.clients, scope);
    for (const { path } of own) {
      if (!force) await assertReplaceable(path, id, before);
      folders.push(path);
      if ((await findReplacedFolder(path, { home: place.home, id, installed: before })) !== undefined)
        replaced.push(path);
    }
    const usesFiles = resolved.added.some((each) => each.usesSkillFiles && each.planned.skill === skill);
    if (usesFiles) folders.push(skillHome(place.home, skill));
    const record = installedRecord(planned, {
      run: "",
      servers: plan.servers.filter(({ neededBy }) => neededBy.includes(skill.name)),
      resolved,
      configFile: place.configFile,
      secretsOf: () => [],
      folders: own,
      entries: writes.map(({ client, file, servers }) => ({
        client: client.id,
        scope,
        file: file.path,
        ids: Object.keys(servers),
      })),
      home: undefined,
      lockFile: plan.lockFile,
      before: Object.hasOwn(before, id) ? before[id] : undefined,
    });
    lock[skill.name] = lockedSkill(planned, record, resolved, plan.lockFile);
    skills.push({ id, name: skill.name, digest: skill.digest, clients: lock[skill.name]?.clients ?? [] });
  }
  files.push({ file: plan.lockFile, before: lockText, after: renderSkillsLock(lock) });
  const fresh = new Set(resolved.added.map(({ planned }) => planned.id));
  return {
    skills,
    servers: [...wanted].map((id) => ({ id, added: fresh.has(id) })),
    secrets,
    files,
    folders,
    replaced,
  };
}

async function previewSecrets(
  servers: readonly PlannedServer[],
  place: InstallContext,
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
      const { name, reference, isNew } = await previewSecret(wanted, value, place);
      references.set(wanted, reference);
      if (isNew) secrets.add(name);
    }
  }
  return { references, secrets: [...secrets] };
}

async function configChange(file: string, added: readonly NewServer[]): Promise<FileChange> {
  const before = await textOf(file);
  const after = added.reduce<string | null>(
    (text, { planned, entry }) => textWithServer(file, text, planned.id, entry),
    before,
  );
  return { file, before, after };
}

function specOf({ planned, entry }: NewServer, { configFile }: InstallContext): ServerSpec {
  const origin = { file: configFile, dialect: "toolcrib" };
  return { ...ServerEntrySchema.parse(entry), id: planned.id, origin, baseDir: configFile };
}

async function textOf(file: string): Promise<string | null> {
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
}
