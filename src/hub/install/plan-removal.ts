/** What removing a skill comes to. Nothing is written. */
import { existsSync } from "node:fs";
import { nearest } from "../../config/nearest.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { SkillManifest } from "../../model/skill.ts";
import { specStrings } from "../../secrets/spec-strings.ts";
import { skillNamed } from "../../skills/registry/registry.ts";
import { satisfiedBy } from "../../skills/servers/resolve.ts";
import type { InstallPlace } from "./install-place.ts";
import { type Installed, type InstalledSkill, readInstalled } from "./installed-file.ts";
import type { Restoration } from "./replaced-folders.ts";
import { folderState } from "./skill-copies.ts";

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
  /** What was in the place of folders, and comes back. */
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

export async function planRemoval(named: string, place: InstallPlace, options: RemovalOptions): Promise<RemovalPlan> {
  const manifests = await place.registry.list();
  const installed = await readInstalled(place.home);
  const names = new Map(Object.entries(installed).map(([each, { name }]) => [each, name]));
  for (const { id: each, name } of manifests) names.set(each, name);
  const id = skillNamed(
    [...names].map(([each, name]) => ({ id: each, name })),
    named,
  )?.id;
  if (id === undefined) throw unknown(named, manifests);
  const manifest = manifests.find((each) => each.id === id);
  const record = Object.hasOwn(installed, id) ? installed[id] : undefined;
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
    if (replaced !== undefined && !stays && isStillThere(replaced)) restored.push({ path, replaced });
    else if (replaced !== undefined && "copy" in replaced && stays) keptCopies.push({ path, copy: replaced.copy });
  }
  if (everywhere && record?.home !== undefined && existsSync(record.home)) folders.push(record.home);

  const others = Object.entries(installed).filter(([other]) => other !== id);
  const entries = (record?.entries ?? [])
    .filter(({ client }) => isMeant(client))
    .map((entry) => ({ ...entry, ids: entry.ids.filter((server) => !isWritten(others, entry.file, server)) }))
    .filter(({ ids }) => ids.length > 0);
  const servers = everywhere && options.withServers ? serversToRemove(id, record, others, manifests, place) : NONE;
  const clients = new Set([
    ...(record?.folders ?? []).flatMap((folder) => folder.clients),
    ...(record?.entries ?? []).map(({ client }) => client),
  ]);
  return {
    id,
    name: manifest?.name ?? record?.name ?? named,
    everywhere,
    isRegistered: manifest !== undefined,
    clients: [...clients].filter(isMeant).toSorted(),
    folders,
    keptFolders,
    restored,
    keptCopies,
    entries,
    servers: servers.gone.map(({ id: server, file }) => ({ id: server, file })),
    secrets: servers.gone.flatMap(({ secrets }) => secrets).filter(({ name }) => !isUsed(name, servers.gone, place)),
    stillNeeded: servers.needed,
    thereBefore: everywhere && options.withServers ? thereBefore(record, place) : [],
    lockFile: record?.lockFile,
    recordsAfter: (now) => recordsAfter(now, id, everywhere, isMeant),
  };
}

function isStillThere(replaced: Restoration["replaced"]): boolean {
  return "link" in replaced || existsSync(replaced.copy);
}

interface ServersToRemove {
  readonly gone: InstalledSkill["servers"];
  readonly needed: readonly { readonly id: string; readonly by: readonly string[] }[];
}

const NONE: ServersToRemove = { gone: [], needed: [] };

function serversToRemove(
  id: string,
  record: InstalledSkill | undefined,
  others: readonly (readonly [string, InstalledSkill])[],
  manifests: readonly SkillManifest[],
  { config }: InstallPlace,
): ServersToRemove {
  const gone: InstalledSkill["servers"] = [];
  const needed: { id: string; by: string[] }[] = [];
  for (const server of record?.servers.filter(({ added }) => added) ?? []) {
    const spec = config.servers.filter((each) => each.id === server.id);
    const byRecord = others.filter(([, other]) => other.servers.some((each) => each.id === server.id));
    const byManifest = manifests.filter(
      (manifest) => manifest.id !== id && manifest.facts.servers.some((each) => satisfiedBy(each, spec) !== undefined),
    );
    const by = [...new Set([...byRecord.map(([, other]) => other.name), ...byManifest.map(({ name }) => name)])];
    if (by.length === 0) gone.push(server);
    else needed.push({ id: server.id, by });
  }
  return { gone, needed };
}

function thereBefore(record: InstalledSkill | undefined, { config }: InstallPlace): string[] {
  const own = record?.servers.filter(({ added }) => !added) ?? [];
  return own.map(({ id }) => id).filter((id) => config.servers.some((spec) => spec.id === id));
}

/** Whether a server that stays has a reference to the secret too. */
function isUsed(secret: string, gone: ServersToRemove["gone"], { config }: InstallPlace): boolean {
  return config.servers
    .filter((spec) => !gone.some(({ id }) => id === spec.id))
    .some((spec) => specStrings(spec).some(({ text }) => text.includes(`/${secret}`)));
}

function isWritten(others: readonly (readonly [string, InstalledSkill])[], file: string, server: string): boolean {
  return others.some(([, { entries }]) => entries.some((each) => each.file === file && each.ids.includes(server)));
}

/** A server that the skill brought and that another one uses is the other one's from now on. */
function recordsAfter(
  now: Installed,
  id: string,
  everywhere: boolean,
  isMeant: (client: string) => boolean,
): Installed {
  const record = Object.hasOwn(now, id) ? now[id] : undefined;
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

function unknown(named: string, manifests: readonly SkillManifest[]): ToolcribError {
  const near = nearest(
    named,
    manifests.map(({ name }) => name),
  );
  return new ToolcribError("not_found", `There is no skill ${JSON.stringify(named)}.`, {
    hint: near === undefined ? "toolcrib skill list shows them." : `Did you mean ${JSON.stringify(near)}?`,
  });
}
