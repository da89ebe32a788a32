/**
 * Brings skills up to date with their sources, and with them what an install made of them: copies in clients' folders,
 * `installed.json` and the lock file. Servers, and the copy that a server runs from, only an install changes.
 */
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import type { SkillManifest } from "../../model/skill.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import { type UpdateOptions, type UpdateOutcome, updateSkills } from "../../skills/registry/update-skills.ts";
import {
  editInstalled,
  type InstalledSkill,
  parseSkillsLock,
  readInstalled,
  recordOf,
  renderSkillsLock,
  sourceFromLock,
} from "./installed-skills.ts";
import { withInstallChanges, withinChanges } from "./install-journal.ts";
import { folderState, placeSkillCopies } from "./skill-folders.ts";

export interface UpdatedSkills {
  /** In the order of the manifests. */
  readonly outcomes: readonly UpdateOutcome[];
  /** Copies that were renewed. */
  readonly renewed: readonly string[];
  /** Copies that were edited, and are not changed. */
  readonly kept: readonly string[];
}

interface UpdateInstalledOptions extends Omit<UpdateOptions, "put"> {
  /** Toolcrib's. */
  readonly home: string;
}

/** All that comes from one source changes at once, or stays as it was. */
export async function updateInstalled(
  registry: SkillRegistry,
  manifests: readonly SkillManifest[],
  { home, ...options }: UpdateInstalledOptions,
): Promise<UpdatedSkills> {
  const renewed: string[] = [];
  const kept: string[] = [];
  const force = options.force === true;
  const changing = <T>(change: (copies: SkillCopyUpdater) => Promise<T>): Promise<T> =>
    withInstallChanges(home, registry, async (changes) => {
      const copies = new SkillCopyUpdater(registry, changes, home, force);
      const result = await change(copies);
      await changes.done();
      renewed.push(...copies.renewed);
      kept.push(...copies.kept);
      return result;
    });
  const outcomes = await updateSkills(registry, manifests, {
    ...options,
    put: (skills, given, resolved) =>
      changing(async (copies) => {
        const result = await registry.put(skills, { ...given, ...withinChanges(copies.changes) });
        await copies.follow([...result.imported, ...result.unchanged], resolved);
        return result;
      }),
  });
  // The new version may have been imported before: then only the copies are outdated.
  const behind = options.dryRun === true ? [] : await outdatedOf(home, outcomes);
  if (behind.length > 0) await changing((copies) => copies.follow(behind, undefined));
  return { outcomes, renewed, kept };
}

async function outdatedOf(home: string, outcomes: readonly UpdateOutcome[]): Promise<SkillManifest[]> {
  const installed = await readInstalled(home);
  return outcomes
    .filter(({ status, before }) => status === "unchanged" && isOutdated(recordOf(installed, before.id), before))
    .map(({ before }) => before);
}

/** Updates the copies of skills from the registry, as part of a change set. */
class SkillCopyUpdater {
  readonly changes: ChangeSet;
  readonly renewed: string[] = [];
  readonly kept: string[] = [];
  readonly #registry: SkillRegistry;
  readonly #home: string;
  readonly #force: boolean;

  constructor(registry: SkillRegistry, changes: ChangeSet, home: string, force: boolean) {
    this.#registry = registry;
    this.changes = changes;
    this.#home = home;
    this.#force = force;
  }

  async follow(manifests: readonly SkillManifest[], resolved: string | undefined): Promise<void> {
    const installed = await readInstalled(this.#home);
    const records = new Map<string, InstalledSkill>();
    for (const manifest of manifests) {
      const record = recordOf(installed, manifest.id);
      if (record === undefined || !isOutdated(record, manifest)) continue;
      records.set(manifest.id, await this.#renew(manifest, record));
      await this.#lock(manifest, record, resolved);
    }
    if (records.size === 0) return;
    await editInstalled(this.changes, this.#home, (now) => ({ ...now, ...Object.fromEntries(records) }));
  }

  async #renew(manifest: SkillManifest, record: InstalledSkill): Promise<InstalledSkill> {
    const { digest } = manifest;
    const targets = new Set<string>();
    for (const folder of record.folders) {
      const state = await folderState(folder.path, folder.digest);
      // One that was taken away is not wanted any more.
      if (state === "absent") continue;
      if (state === "unchanged" || this.#force) targets.add(folder.path);
      else this.kept.push(folder.path);
    }
    const source = { dir: this.#registry.fileOf(manifest, "."), files: manifest.facts.files };
    await placeSkillCopies(this.changes, source, [...targets]);
    this.renewed.push(...targets);
    const folders = record.folders.map((folder) => (targets.has(folder.path) ? { ...folder, digest } : folder));
    return { ...record, digest, folders };
  }

  /** The lock file follows where it speaks of the same source. */
  async #lock(
    { name, version, digest, from }: SkillManifest,
    { lockFile }: InstalledSkill,
    resolved: string | undefined,
  ): Promise<void> {
    await this.changes.editFile(lockFile, (text) => {
      const lock = parseSkillsLock(lockFile, text);
      const own = recordOf(lock, name);
      if (own === undefined || own.digest === digest || sourceFromLock(own.source, lockFile) !== from) return text;
      return renderSkillsLock({ ...lock, [name]: { ...own, version, digest, resolved } });
    });
  }
}

/** Only for a skill from the same source. */
function isOutdated(record: InstalledSkill | undefined, { digest, from }: SkillManifest): boolean {
  return record !== undefined && record.source === from && record.digest !== digest;
}
