/** Removes an installed skill: from single clients, or everywhere. All of it or nothing. */
import { existsSync } from "node:fs";
import { findNearest } from "../../base/near-matches.ts";
import { clientById } from "../../clients/clients.ts";
import { textWithoutServer } from "../../config/edit-config.ts";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { SkillManifest } from "../../model/skill.ts";
import { specStrings } from "../../secrets/resolve-spec.ts";
import { skillNamed } from "../../skills/registry/skill-registry.ts";
import { findMatchingServer } from "../../skills/servers/match-servers.ts";
import { removeClientServers } from "../clients/client-files.ts";
import type { InstallContext } from "./install-context.ts";
import { throwIfAborted, withInstallChanges, withinChanges } from "./install-journal.ts";
import { removeKeychainSecret } from "./install-secrets.ts";
import {
  editInstalled,
  type Installed,
  type InstalledSkill,
  parseSkillsLock,
  readInstalled,
  recordOf,
  renderSkillsLock,
} from "./installed-skills.ts";
import { folderState, type Restoration, restoreFolders, restoreLinks } from "./skill-folders.ts";

export interface RemovalReport {
  readonly id: string;
  readonly name: string;
  readonly clients: readonly string[];
  readonly folders: readonly string[];
  readonly servers: readonly string[];
  readonly secrets: readonly string[];
  /** Whether the skill itself is gone, and not only from some clients. */
  readonly removed: boolean;
  /** Not removed, because they were changed since. */
  readonly kept: readonly string[];
  /** Files of clients from which servers were removed. */
  readonly files: readonly { readonly file: string; readonly ids: readonly string[] }[];
  /** Folders that are again as before the install. */
  readonly restored: readonly string[];
  /** Clients that must be restarted, and how. */
  readonly restart: readonly { readonly name: string; readonly how: string }[];
}

interface RemoveOptions {
  readonly force: boolean;
  readonly signal?: AbortSignal;
}

export async function removeSkill(
  plan: RemovalPlan,
  place: InstallContext,
  options: RemoveOptions,
): Promise<RemovalReport> {
  const { home, env, registry } = place;
  return withInstallChanges(home, registry, async (changes) => {
    const removed = await removeInstalled(changes, plan, place, options);
    if (plan.everywhere && plan.isRegistered) await registry.remove(plan.id, withinChanges(changes));
    await changes.done();
    await restoreLinks(home, plan.restored);
    // Not before: a secret that is gone cannot be put back.
    for (const { name, stored } of plan.secrets) if (stored === "keychain") await removeKeychainSecret(name, env);
    return reportOf(plan, removed);
  });
}

type RemovedParts = Pick<RemovalReport, "kept" | "files">;

async function removeInstalled(
  changes: ChangeSet,
  plan: RemovalPlan,
  { home }: InstallContext,
  { force, signal }: RemoveOptions,
): Promise<RemovedParts> {
  const files: { file: string; ids: readonly string[] }[] = [];
  const kept: string[] = plan.keptFolders.map((path) => `${path} (changed since)`);
  const back = new Set(plan.restored.map(({ path }) => path));
  for (const path of plan.folders) if (!back.has(path)) await changes.removeFolder(path);
  await restoreFolders(changes, plan.restored);
  for (const { client: id, scope, file: path, ids } of plan.entries) {
    throwIfAborted(signal);
    const client = clientById(id);
    if (client === undefined) throw new ToolcribError("internal", `There is no client ${JSON.stringify(id)} any more.`);
    const request = { client, file: { scope, path }, ids, force };
    const removal = await removeClientServers({ changes, home, ...request });
    if (removal.removed.length > 0) files.push({ file: path, ids: removal.removed });
    for (const each of removal.kept) {
      if (each.reason === "edited") kept.push(`${each.id} in ${path} (edited since)`);
    }
  }
  for (const { id, file } of plan.servers) {
    await changes.editFile(file, (text) => (text === null ? null : removeServerText(file, text, id)));
  }
  for (const { stored, file } of plan.secrets) {
    if (stored === "file" && file !== undefined) await changes.editFile(file, () => null);
  }
  if (plan.lockFile !== undefined) {
    const file = plan.lockFile;
    await changes.editFile(file, (text) => {
      const lock = { ...parseSkillsLock(file, text) };
      const own = recordOf(lock, plan.name);
      if (plan.everywhere) delete lock[plan.name];
      else if (own !== undefined) {
        lock[plan.name] = { ...own, clients: own.clients.filter((client) => !plan.clients.includes(client)) };
      }
      return renderSkillsLock(lock);
    });
  }
  await editInstalled(changes, home, plan.recordsAfter);
  throwIfAborted(signal);
  return { kept, files };
}

/** The user may have removed it already. */
function removeServerText(file: string, text: string, id: string): string {
  try {
    return textWithoutServer(file, text, id);
  } catch (error) {
    if (error instanceof ToolcribError && error.code === "not_found") return text;
    throw error;
  }
}

function reportOf(plan: RemovalPlan, { kept, files }: RemovedParts): RemovalReport {
  return {
    id: plan.id,
    name: plan.name,
    clients: plan.clients,
    folders: plan.folders,
    servers: plan.servers.map(({ id }) => id),
    secrets: plan.secrets.map(({ name }) => name),
    removed: plan.everywhere,
    kept,
    files,
    restored: plan.restored.map(({ path }) => path),
    restart: plan.clients.flatMap((id) => {
      const client = clientById(id);
      return client === undefined ? [] : [{ name: client.name, how: client.afterChange }];
    }),
  };
}

export interface RemovalOptions {
  /** Only from these clients; everywhere if empty. */
  readonly clients: readonly string[];
  /** Also servers that the install added and that no other skill needs. */
  readonly withServers: boolean;
  /** Also folders that were changed since. */
  readonly force: boolean;
}

export interface RemovalPlan {
  readonly id: string;
  readonly name: string;
  /** Out of the registry too, and not only out of some clients. */
  readonly everywhere: boolean;
  readonly isRegistered: boolean;
  readonly clients: readonly string[];
  readonly folders: readonly string[];
  /** Changed since they were placed. */
  readonly keptFolders: readonly string[];
  /** Folders that were replaced by the install, and are restored. */
  readonly restored: readonly Restoration[];
  /** Copies of what cannot come back, because the folder stays. */
  readonly keptCopies: readonly { readonly path: string; readonly copy: string }[];
  readonly entries: InstalledSkill["entries"];
  readonly servers: readonly { readonly id: string; readonly file: string }[];
  readonly secrets: InstalledSkill["servers"][number]["secrets"];
  /** Servers that stay because other skills need them, by server. */
  readonly stillNeeded: readonly { readonly id: string; readonly by: readonly string[] }[];
  /** Servers that stay because they were in the config before the install. */
  readonly thereBefore: readonly string[];
  readonly lockFile: string | undefined;
  readonly recordsAfter: (now: Installed) => Installed;
}

export async function planRemoval(named: string, place: InstallContext, options: RemovalOptions): Promise<RemovalPlan> {
  const [manifests, broken] = await Promise.all([place.registry.list(), place.registry.broken()]);
  const installed = await readInstalled(place.home);
  const names = new Map(Object.entries(installed).map(([each, { name }]) => [each, name]));
  for (const { id: each, name } of [...broken, ...manifests]) names.set(each, name);
  const id = skillNamed(
    [...names].map(([each, name]) => ({ id: each, name })),
    named,
  )?.id;
  if (id === undefined) throw unknownSkill(named, manifests);
  const manifest = manifests.find((each) => each.id === id);
  const record = recordOf(installed, id);
  const everywhere = options.clients.length === 0;
  const isMeant = (client: string): boolean => everywhere || options.clients.includes(client);

  const folders: string[] = [];
  const keptFolders: string[] = [];
  const restored: Restoration[] = [];
  const keptCopies: { path: string; copy: string }[] = [];
  for (const { path, digest, clients, replaced } of record?.folders ?? []) {
    // Clients may share one folder; it goes with the last of them.
    if (!clients.every(isMeant)) continue;
    const state = await folderState(path, digest);
    const stays = state !== "absent" && state !== "unchanged" && !options.force;
    if (stays) keptFolders.push(path);
    else if (state !== "absent") folders.push(path);
    const canReturn = replaced !== undefined && ("link" in replaced || existsSync(replaced.copy));
    if (canReturn && !stays) restored.push({ path, replaced });
    else if (replaced !== undefined && "copy" in replaced && stays) keptCopies.push({ path, copy: replaced.copy });
  }
  if (everywhere && record?.home !== undefined && existsSync(record.home)) folders.push(record.home);

  const others = Object.entries(installed).filter(([other]) => other !== id);
  const entries = (record?.entries ?? [])
    .filter(({ client }) => isMeant(client))
    .map((entry) => ({ ...entry, ids: entry.ids.filter((server) => !isWrittenByOthers(others, entry.file, server)) }))
    .filter(({ ids }) => ids.length > 0);
  const servers =
    everywhere && options.withServers ? serversToRemove(id, record, others, manifests, place) : NO_SERVERS;
  const clients = new Set([
    ...(record?.folders ?? []).flatMap((folder) => folder.clients),
    ...(record?.entries ?? []).map(({ client }) => client),
  ]);
  return {
    id,
    name: names.get(id) ?? named,
    everywhere,
    isRegistered: manifest !== undefined || broken.some((each) => each.id === id),
    clients: [...clients].filter(isMeant).toSorted(),
    folders,
    keptFolders,
    restored,
    keptCopies,
    entries,
    servers: servers.gone.map(({ id: server, file }) => ({ id: server, file })),
    secrets: servers.gone
      .flatMap(({ secrets }) => secrets)
      .filter(({ name }) => !isSecretUsed(name, servers.gone, place)),
    stillNeeded: servers.needed,
    thereBefore: everywhere && options.withServers ? thereBefore(record, place) : [],
    lockFile: record?.lockFile,
    recordsAfter: (now) => recordsAfter(now, id, everywhere, isMeant),
  };
}

interface ServersToRemove {
  readonly gone: InstalledSkill["servers"];
  readonly needed: readonly { readonly id: string; readonly by: readonly string[] }[];
}

const NO_SERVERS: ServersToRemove = { gone: [], needed: [] };

function serversToRemove(
  id: string,
  record: InstalledSkill | undefined,
  others: readonly (readonly [string, InstalledSkill])[],
  manifests: readonly SkillManifest[],
  { config }: InstallContext,
): ServersToRemove {
  const gone: InstalledSkill["servers"] = [];
  const needed: { id: string; by: string[] }[] = [];
  for (const server of record?.servers.filter(({ added }) => added) ?? []) {
    const spec = config.servers.filter((each) => each.id === server.id);
    const byRecord = others.filter(([, other]) => other.servers.some((each) => each.id === server.id));
    const byManifest = manifests.filter(
      (manifest) =>
        manifest.id !== id && manifest.facts.servers.some((each) => findMatchingServer(each, spec) !== undefined),
    );
    const by = [...new Set([...byRecord.map(([, other]) => other.name), ...byManifest.map(({ name }) => name)])];
    if (by.length === 0) gone.push(server);
    else needed.push({ id: server.id, by });
  }
  return { gone, needed };
}

function thereBefore(record: InstalledSkill | undefined, { config }: InstallContext): string[] {
  const own = record?.servers.filter(({ added }) => !added) ?? [];
  return own.map(({ id }) => id).filter((id) => config.servers.some((spec) => spec.id === id));
}

/** Whether a server that stays has a reference to the secret too. */
function isSecretUsed(secret: string, gone: ServersToRemove["gone"], { config }: InstallContext): boolean {
  return config.servers
    .filter((spec) => !gone.some(({ id }) => id === spec.id))
    .some((spec) => specStrings(spec).some(({ text }) => text.includes(`/${secret}`)));
}

function isWrittenByOthers(
  others: readonly (readonly [string, InstalledSkill])[],
  file: string,
  server: string,
): boolean {
  return others.some(([, { entries }]) => entries.some((each) => each.file === file && each.ids.includes(server)));
}

/** A server of the skill that another skill uses belongs to the other one from now on. */
function recordsAfter(
  now: Installed,
  id: string,
  everywhere: boolean,
  isMeant: (client: string) => boolean,
): Installed {
  const record = recordOf(now, id);
  if (record === undefined) return now;
  if (!everywhere) {
    const folders = record.folders
      .map((folder) => ({ ...folder, clients: folder.clients.filter((client) => !isMeant(client)) }))
      .filter(({ clients }) => clients.length > 0);
    return { ...now, [id]: { ...record, folders, entries: record.entries.filter(({ client }) => !isMeant(client)) } };
  }
  const left = Object.entries(now).filter(([other]) => other !== id);
  const inherited = new Set<string>();
  return Object.fromEntries(
    left.map(([other, theirs]) => {
      const servers = theirs.servers.map((server) => {
        const mine = record.servers.find((each) => each.id === server.id);
        if (mine?.added !== true || inherited.has(server.id)) return server;
        inherited.add(server.id);
        return { ...server, added: true, file: mine.file, secrets: [...server.secrets, ...mine.secrets] };
      });
      return [other, { ...theirs, servers }];
    }),
  );
}

function unknownSkill(named: string, manifests: readonly SkillManifest[]): ToolcribError {
  const near = findNearest(
    named,
    manifests.map(({ name }) => name),
  );
  return new ToolcribError("not_found", `There is no skill ${JSON.stringify(named)}.`, {
    hint: near === undefined ? "toolcrib skill list shows them." : `Did you mean ${JSON.stringify(near)}?`,
  });
}
