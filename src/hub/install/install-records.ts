/** What is written down about an installed skill, for removing it and for the lock file. */
import type { InstalledSkill } from "./installed-file.ts";
import type { KeptSecret } from "./kept-secrets.ts";
import type { ResolvedServers } from "./new-servers.ts";
import type { PlannedSkill } from "./plan-install.ts";
import type { PlannedServer } from "./required-servers.ts";
import type { FolderRecord } from "./skill-copies.ts";
import { type LockedSkill, lockedSource } from "./skills-lock.ts";

interface RecordFacts {
  readonly run: string;
  /** Those that this skill needs. */
  readonly servers: readonly PlannedServer[];
  readonly resolved: ResolvedServers;
  readonly configFile: string;
  readonly secretsOf: (serverId: string) => readonly KeptSecret[];
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
    folders: joined(before?.folders ?? [], facts.folders, ({ path }) => path, sameFolder),
    servers,
    entries: joined(
      before?.entries ?? [],
      facts.entries.map((entry) => ({ ...entry, ids: entry.ids.filter((id) => needed.has(id)) })),
      ({ file }) => file,
      (old, now) => ({ ...now, ids: [...new Set([...old.ids, ...now.ids])] }),
    ),
    home,
    lockFile: facts.lockFile,
  };
}

function sameFolder(old: FolderRecord, now: FolderRecord): FolderRecord {
  const replaced = old.replaced ?? now.replaced;
  const clients = [...new Set([...old.clients, ...now.clients])];
  return { ...now, clients, ...(replaced === undefined ? {} : { replaced }) };
}

/** Both lists, with what is in both made one. */
function joined<T>(old: readonly T[], now: readonly T[], keyOf: (item: T) => string, both: (a: T, b: T) => T): T[] {
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
