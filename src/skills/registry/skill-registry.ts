/**
 * Imported skills: their manifests in the store, their files in folders of the home. Files are copied into a new folder,
 * then the manifests change in one transaction, then the old folder is removed. A process that dies at any point leaves
 * the old or the new state, and at most a copy without a manifest.
 */
import { mkdir, readdir, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock, systemClock } from "../../base/clock.ts";
import { withLock } from "../../files/lock-file.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { SkillManifest } from "../../model/skill.ts";
import { mapLimit } from "../../base/async.ts";
import {
  copySkill,
  isSafePath,
  isTooLarge,
  pruneFiles,
  publishFiles,
  readIfUnchanged,
  unpackFiles,
} from "../verified-files.ts";
import {
  type BrokenSkill,
  LOCK_WAIT_MS,
  type ManifestStore,
  noStore,
  openManifests,
  type OpenSkillStore,
  registryLock,
  stampOf,
  type StoredManifests,
} from "./manifest-store.ts";
import {
  baseIdOf,
  failedOutcome,
  plannedOutcome,
  planPut,
  type PutOutcome,
  type PutResult,
  type PutStep,
  resultOf,
  withDuplicates,
} from "./plan-put.ts";
import { isOpenclawId, skillId } from "./skill-id.ts";
import { manifestOf, type SkillToPut } from "./skill-manifest.ts";

/** A manifest before and after a change; null if there is none. */
export interface ManifestChange {
  readonly id: string;
  readonly before: SkillManifest | null;
  readonly after: SkillManifest | null;
}

/** How manifests change where more changes along with them. */
export interface WithinChanges {
  /**
   * To call `write` in its own time. The files of what was there before stay, so that it can be put back with `undoChanges`;
   * `sweep` removes what is over in the end.
   */
  readonly within?: (changes: readonly ManifestChange[], write: () => Promise<void>) => Promise<void>;
}

export interface PutOptions extends WithinChanges {
  /** Replace a skill of another source that has the same id. */
  readonly replace?: boolean;
  readonly onProgress?: (done: number) => void;
}

const COPY_CONCURRENCY = 16;

export class SkillRegistry {
  readonly dir: string;
  readonly #home: string;
  readonly #open: OpenSkillStore;
  readonly #clock: Clock;
  readonly #lock: string;
  readonly #warn: (message: string) => void;
  readonly #warnedLarge = new Set<string>();
  /** Folders of manifests before this object changed them. */
  readonly #named = new Set<string>();
  #known: (StoredManifests & { readonly stamp: string }) | undefined;

  /** @param open Opens the store when it is needed; writing creates a missing one. */
  constructor(
    home: string,
    open: OpenSkillStore,
    clock: Clock = systemClock,
    warn: (message: string) => void = () => {},
  ) {
    this.dir = join(home, "skills");
    this.#home = home;
    this.#open = open;
    this.#clock = clock;
    this.#lock = registryLock(home);
    this.#warn = warn;
  }

  /** In order of id. Read again only after a change. */
  async list(): Promise<readonly SkillManifest[]> {
    return (await this.#read()).manifests;
  }

  /** Those whose record cannot be used. */
  async broken(): Promise<readonly BrokenSkill[]> {
    return (await this.#read()).broken;
  }

  async #read(): Promise<StoredManifests> {
    const store = await this.#manifests();
    if (store === undefined) return { manifests: [], broken: [] };
    // Before reading: after a change in between, the next call reads again.
    const stamp = await store.stamp();
    if (this.#known?.stamp === stamp) return this.#known;
    const { manifests, broken } = await store.read();
    const read = { manifests: Object.freeze(manifests), broken };
    // The next call tries again to unpack what is missing.
    this.#known = (await this.#unpack(store, manifests)) ? { stamp, ...read } : undefined;
    return read;
  }

  /** By id, else by name. Rejects with `invalid_arguments` for a name that several have. */
  async get(idOrName: string): Promise<SkillManifest | undefined> {
    return skillNamed(await this.list(), idOrName);
  }

  /** The outcomes that `put` would have, in the order of the skills. */
  async preview(skills: readonly SkillToPut[], options: Pick<PutOptions, "replace"> = {}): Promise<PutOutcome[]> {
    const steps = await planWith(await this.list(), skills, options);
    const outcomes = skills.map((item, index) => plannedOutcome(item, steps[index]));
    return withDuplicates(skills, steps, outcomes);
  }

  /** Copies the files and stores the manifests; all skills of a batch appear at once. */
  async put(skills: readonly SkillToPut[], options: PutOptions = {}): Promise<PutResult> {
    const store = await this.#openToWrite();
    return this.#locked(() => this.#put(store, skills, options));
  }

  /** One whose record is broken is removed as well, at once. */
  async remove(id: string, { within }: WithinChanges = {}): Promise<Pick<SkillManifest, "id" | "name">> {
    const store = await this.#manifests();
    // Without the folder there is nothing to lock, and nothing to remove.
    if (store === undefined || (await stampOf(this.dir)) === undefined) throw unknownSkill(id);
    return this.#locked(async () => {
      const { manifests, broken } = await store.read();
      const damaged = broken.find((each) => each.id === id);
      if (damaged !== undefined) {
        await store.change([], [id]);
        await this.#sweep(store, { manifests, broken: broken.filter((each) => each.id !== id) }, await store.owner());
        return damaged;
      }
      const before = manifests.find((each) => each.id === id);
      if (before === undefined) throw unknownSkill(id);
      this.#named.add(before.dir);
      await commitChanges(store, [{ id, before, after: null }], within);
      if (within === undefined) await discardNamedCopy(this.dir, before, await store.owner());
      return before;
    });
  }

  /** Undoes changes that were made with `within`. A manifest that has changed since is kept. */
  async undoChanges(changes: readonly ManifestChange[]): Promise<"restored" | "kept" | "same"> {
    const store = await this.#openToWrite();
    return this.#locked(async () => {
      const present = new Map((await store.read()).manifests.map((manifest) => [manifest.id, manifest]));
      const isNow = (id: string, manifest: SkillManifest | null): boolean =>
        isSameManifest(present.get(id) ?? null, manifest);
      const undone = changes.filter(({ id, before }) => !isNow(id, before));
      const ours = undone.filter(({ id, after }) => isNow(id, after));
      const reversed = ours.map(({ id, before, after }) => ({ id, before: after, after: before }));
      await writeChanges(store, reversed);
      if (ours.length < undone.length) return "kept";
      return ours.length > 0 ? "restored" : "same";
    });
  }

  /** Removes copies without a manifest. Never rejects. */
  async sweep(): Promise<void> {
    if ((await stampOf(this.dir)) === undefined) return;
    try {
      const store = await this.#manifests();
      if (store !== undefined)
        await this.#locked(async () => this.#sweep(store, await store.read(), await store.owner()));
    } catch {
      // The next `put` tries again.
    }
  }

  /** The absolute path of a file of the skill, or of its folder for `.`. */
  fileOf(manifest: Pick<SkillManifest, "name" | "dir">, path: string): string {
    const folder = join(this.dir, ...manifest.dir.split("/"));
    if (path === ".") return folder;
    if (!isSafePath(path)) throw noSuchFile(manifest, path);
    return join(folder, ...path.split("/"));
  }

  /** The bytes, checked against the manifest; rejects with `blocked` if they were changed. */
  async readFile(manifest: SkillManifest, path: string): Promise<Uint8Array> {
    const file = manifest.facts.files.find((each) => each.path === path);
    if (file === undefined) throw noSuchFile(manifest, path);
    const at = this.fileOf(manifest, path);
    const read = await readIfUnchanged(at, file);
    if (read.bytes !== undefined) return read.bytes;
    const now = (await this.list()).find(({ id }) => id === manifest.id);
    if (now?.dir !== manifest.dir) {
      throw new ToolcribError("conflict", `The skill ${manifest.name} was updated or removed in the meantime.`, {
        hint: "Try again.",
      });
    }
    // `list` may have unpacked it.
    const again = await readIfUnchanged(at, file);
    if (again.bytes !== undefined) return again.bytes;
    throw new ToolcribError("blocked", `${at} is ${again.reason}: it is not the file that was imported.`, {
      hint: `Import the skill again from ${manifest.from}.`,
      details: { skill: manifest.id, path },
    });
  }

  #manifests(create = false): Promise<ManifestStore | undefined> {
    return openManifests(this.#home, this.#open, { create });
  }

  async #openToWrite(): Promise<ManifestStore> {
    const store = await this.#manifests(true);
    if (store === undefined) throw noStore();
    await mkdir(this.dir, { recursive: true, mode: 0o700 });
    return store;
  }

  /**
   * Unpacks skills that another machine imported. A skill without files fails when it is read. False if some files may
   * become available later.
   */
  async #unpack({ files }: ManifestStore, manifests: readonly SkillManifest[]): Promise<boolean> {
    if (files === undefined) return true;
    let isWhole = true;
    for (const manifest of manifests) {
      const folder = this.fileOf(manifest, ".");
      if ((await stampOf(folder)) !== undefined) continue;
      if (isTooLarge(manifest)) {
        this.#warnLarge(manifest, "They are only where it was imported; import it here too.");
        continue;
      }
      await mkdir(dirname(folder), { recursive: true, mode: 0o700 });
      const isUnpacked = await unpackFiles(files, manifest, folder).catch(() => false);
      // Another process of this home may be faster.
      if (!isUnpacked && (await stampOf(folder)) === undefined) isWhole = false;
    }
    return isWhole;
  }

  #warnLarge({ name, dir }: SkillManifest, meaning: string): void {
    if (this.#warnedLarge.has(dir)) return;
    this.#warnedLarge.add(dir);
    this.#warn(`The files of the skill ${name} are too large to be shared through the store. ${meaning}`);
  }

  /** Files of a broken skill stay: a backup may bring its record back. */
  async #sweep(store: ManifestStore, { manifests, broken }: StoredManifests, owner: string): Promise<void> {
    if (store.files !== undefined && broken.length === 0) await pruneFiles(store.files, manifests, this.#clock.now());
    const kept = new Set(broken.map(({ id }) => id));
    await removeUnreferencedCopies(this.dir, manifests, { owner, named: this.#named, kept });
  }

  #locked<T>(task: () => Promise<T>): Promise<T> {
    return withLock(this.#lock, task, { waitMs: LOCK_WAIT_MS });
  }

  async #put(
    store: ManifestStore,
    skills: readonly SkillToPut[],
    { replace = false, onProgress, within }: PutOptions,
  ): Promise<PutResult> {
    const stored = await store.read();
    const present = stored.manifests;
    const owner = await store.owner();
    await this.#sweep(store, stored, owner);
    const steps = await planWith(present, skills, { replace });
    let finished = 0;
    const own = await mapLimit(skills, COPY_CONCURRENCY, async (item, index): Promise<PutOutcome> => {
      const outcome = await this.#take(item, steps[index], owner);
      onProgress?.(++finished);
      return outcome;
    });
    const taken = own.flatMap((outcome) => ("manifest" in outcome && outcome.manifest ? [outcome.manifest] : []));
    const known = new Map(present.map((manifest) => [manifest.id, manifest]));
    const changes = taken
      .map((after) => ({ id: after.id, before: known.get(after.id) ?? null, after }))
      .filter(({ before, after }) => !isSameManifest(before, after));
    const copied = changes.filter(({ before, after }) => before?.dir !== after.dir);
    const moved = takenFrom(present, taken);
    for (const { before } of copied) if (before !== null) this.#named.add(before.dir);
    try {
      const { files } = store;
      if (files !== undefined) {
        for (const { after } of copied) {
          if (isTooLarge(after)) this.#warnLarge(after, "Other machines must import it themselves.");
          else await publishFiles(files, after, this.fileOf(after, "."));
        }
      }
      await commitChanges(store, [...changes, ...moved], within);
    } catch (error) {
      for (const { after } of copied) await discardCopy(this.fileOf(after, "."));
      throw error;
    }
    for (const { before } of within === undefined ? [...copied, ...moved] : []) {
      if (before !== null) await discardNamedCopy(this.dir, before, owner);
    }
    return resultOf(withDuplicates(skills, steps, own));
  }

  async #take(item: SkillToPut, step: PutStep | undefined, owner: string): Promise<PutOutcome> {
    const outcome = plannedOutcome(item, step);
    // A duplicate waits for the other skill's outcome; a conflict is final.
    if (outcome.status === "failed" || step === undefined || !("id" in step)) return outcome;
    try {
      if (step.action === "unchanged" && (await this.#isWhole(step.before))) {
        return { ...outcome, manifest: await this.#checkedAgain(item, step.before) };
      }
      const manifest = await this.#copied(item, step.id, owner);
      return { status: step.action === "add" ? "added" : "updated", id: step.id, manifest };
    } catch (error) {
      const { code, message } = asToolcribError(error);
      return failedOutcome(item, code, code === "internal" ? `It could not be copied: ${message}` : message);
    }
  }

  async #copied(item: SkillToPut, id: string, owner: string): Promise<SkillManifest> {
    // Before the copy, so that later changes of the source have a later time.
    const importedAt = new Date(this.#clock.now()).toISOString();
    const content = item.skill.digest.replace(/^sha256:/, "").slice(0, 16);
    const dir = await this.#freeDir(`files/${id}/${content}-${owner}`);
    const manifest = manifestOf(item, { id, dir, importedAt });
    const folder = this.fileOf(manifest, ".");
    try {
      await copySkill(item.skill, folder);
    } catch (error) {
      await discardCopy(folder);
      throw error;
    }
    return manifest;
  }

  /** Needs, findings and what the reader says are as of now; a source that is still there stays. */
  async #checkedAgain(item: SkillToPut, before: SkillManifest): Promise<SkillManifest> {
    const { id, dir, importedAt, from, sourcePath } = before;
    const manifest = manifestOf(item, { id, dir, importedAt });
    return (await isSourcePresent(before)) ? { ...manifest, from, sourcePath } : manifest;
  }

  async #isWhole(manifest: SkillManifest): Promise<boolean> {
    for (const file of manifest.facts.files) {
      const read = await readIfUnchanged(this.fileOf(manifest, file.path), file);
      if (read.bytes === undefined) return false;
    }
    return true;
  }

  /** Always a new folder, also for the same files again: the one that is there may be in use. */
  async #freeDir(base: string): Promise<string> {
    for (let number = 1; ; number++) {
      const dir = number === 1 ? base : `${base}-${number}`;
      if ((await stampOf(join(this.dir, dir))) === undefined) return dir;
    }
  }
}

async function commitChanges(
  store: ManifestStore,
  changes: readonly ManifestChange[],
  within: WithinChanges["within"] = (_changes, done) => done(),
): Promise<void> {
  if (changes.length > 0) await within(changes, () => writeChanges(store, changes));
}

async function writeChanges(store: ManifestStore, changes: readonly ManifestChange[]): Promise<void> {
  const put = changes.flatMap(({ after }) => after ?? []);
  const removed = changes.filter(({ after }) => after === null).map(({ id }) => id);
  await store.change(put, removed);
}

/** The same folder under the id of another source: as a skill of OpenClaw, or no longer as one. */
function takenFrom(present: readonly SkillManifest[], taken: readonly SkillManifest[]): ManifestChange[] {
  const byPlace = new Map(taken.map((manifest) => [manifest.sourcePath, manifest]));
  return present.flatMap((before): ManifestChange[] => {
    const after = byPlace.get(before.sourcePath);
    const isMoved = after?.name === before.name && isOpenclawId(after.id) !== isOpenclawId(before.id);
    return isMoved ? [{ id: before.id, before, after: null }] : [];
  });
}

/** By id, else by name; undefined if there is none. Throws `invalid_arguments` with the ids if several have the name. */
export function skillNamed<S extends Pick<SkillManifest, "id" | "name">>(
  skills: readonly S[],
  idOrName: string,
): S | undefined {
  const byId = skills.find(({ id }) => id === idOrName);
  if (byId !== undefined) return byId;
  const named = skills.filter(({ name }) => name === idOrName);
  if (named.length <= 1) return named[0];
  const ids = named.map(({ id }) => id);
  throw new ToolcribError("invalid_arguments", `${named.length} skills are called ${JSON.stringify(idOrName)}.`, {
    hint: `Use an id: ${ids.join(", ")}.`,
    details: { ids },
  });
}

async function planWith(
  present: readonly SkillManifest[],
  skills: readonly SkillToPut[],
  { replace = false }: Pick<PutOptions, "replace">,
): Promise<PutStep[]> {
  const bases = new Set(skills.map(baseIdOf));
  const concerned = present.filter(({ name, facts }) => bases.has(skillId(name, facts.dialect)));
  const there = new Set<string>();
  await mapLimit(concerned, COPY_CONCURRENCY, async (manifest) => {
    if (await isSourcePresent(manifest)) there.add(manifest.id);
  });
  return planPut(present, skills, { replace, isThere: ({ id }) => there.has(id) });
}

async function isSourcePresent({ sourcePath, facts }: SkillManifest): Promise<boolean> {
  const found = await stat(join(sourcePath, facts.files[0]?.path ?? "SKILL.md")).catch(() => undefined);
  return found?.isFile() === true;
}

/** As they are written: what is not JSON in them, such as a prototype, does not count. */
function isSameManifest(a: SkillManifest | null, b: SkillManifest | null): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function unknownSkill(id: string): ToolcribError {
  return new ToolcribError("not_found", `There is no imported skill "${id}".`, {
    hint: "toolcrib skill list shows them.",
  });
}

function noSuchFile({ name }: Pick<SkillManifest, "name">, path: string): ToolcribError {
  return new ToolcribError("not_found", `The skill ${name} has no file ${JSON.stringify(path)}.`);
}

// Copies without a manifest, such as those of a killed process, are removed under the lock. A home may serve several
// stores that do not know of each other, so the name of a copy says which store owns it.

/** Those of an earlier version say nothing: then the digest is followed by nothing or by a short number. */
function ownerOf(copy: string): string | undefined {
  const [, owner = ""] = copy.split("-");
  return owner.length < 8 ? undefined : owner;
}

interface SweepOptions {
  /** Whose copies go. */
  readonly owner: string;
  /** Folders that a manifest of this store spoke of until now, relative to `dir`. */
  readonly named: Iterable<string>;
  /** Ids whose copies all stay. */
  readonly kept: ReadonlySet<string>;
}

/** @param dir The registry's folder. */
async function removeUnreferencedCopies(
  dir: string,
  manifests: readonly Pick<SkillManifest, "dir">[],
  { owner, named, kept: keptIds }: SweepOptions,
): Promise<void> {
  const kept = new Set(manifests.map((manifest) => manifest.dir));
  const before = new Set(named);
  const ids = await readdir(join(dir, "files")).catch(() => []);
  await mapLimit(ids, 16, async (id) => {
    if (keptIds.has(id)) return;
    const copies = await readdir(join(dir, "files", id)).catch(() => []);
    for (const copy of copies) {
      const place = `files/${id}/${copy}`;
      const whose = ownerOf(copy);
      if (!kept.has(place) && (whose === owner || (whose === undefined && before.has(place))))
        await discardCopy(join(dir, place));
    }
  });
}

/** A copy that the manifests of a store spoke of, unless it is another store's: one that was restored names those too. */
async function discardNamedCopy(dir: string, { dir: place }: Pick<SkillManifest, "dir">, owner: string): Promise<void> {
  const whose = ownerOf(place.split("/").at(-1) ?? "");
  if (whose === undefined || whose === owner) await discardCopy(join(dir, place));
}

/** A copy that is in use on Windows is removed by the next sweep. */
async function discardCopy(copy: string): Promise<void> {
  await rm(copy, { recursive: true, force: true }).catch(() => undefined);
  // The folder of the id, if that was the last copy in it.
  await rmdir(dirname(copy)).catch(() => undefined);
}
