/**
 * Imported skills: their manifests in `registry.json`, their files beside it. Files are copied into a new folder, then
 * the registry is replaced as a whole, then the old folder goes; so a process that dies at any point leaves either
 * what was there before or what came after, and at most a copy that nobody speaks of.
 */
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../../files/lock-file.ts";
import { writeAtomic } from "../../files/write-atomic.ts";
import { type Clock, systemClock } from "../../model/clock.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { SkillManifest } from "../../model/skill.ts";
import { inParallel } from "../find/in-parallel.ts";
import { copySkill } from "./copy-skill.ts";
import { manifestOf, type SkillToPut } from "./manifest.ts";
import { baseIdOf, planPut, type PutStep } from "./plan-put.ts";
import { readRegistry, renderRegistry, stampOf } from "./registry-file.ts";
import { isSafePath } from "./safe-path.ts";
import { readBack } from "./skill-file.ts";
import { skillId } from "./skill-id.ts";
import { discard, sweep } from "./sweep.ts";

export interface PutFailure {
  readonly path: string;
  readonly name: string;
  /** Of the error table. */
  readonly code: string;
  readonly message: string;
}

/** What became, or would become, of one skill of a batch. `manifest` is there if it is on record now. */
export type PutOutcome =
  | { readonly status: "added" | "updated" | "unchanged"; readonly id: string; readonly manifest?: SkillManifest }
  | { readonly status: "failed"; readonly failure: PutFailure };

export interface PutResult {
  /** New ones and updated ones. */
  readonly imported: SkillManifest[];
  readonly unchanged: SkillManifest[];
  readonly failed: PutFailure[];
  /** For each skill of the batch, in their order. */
  readonly outcomes: readonly PutOutcome[];
}

/** How `registry.json` gets its new text, where more changes along with it. */
export interface WithinChanges {
  /** What the old text speaks of stays, so that it can be put back; `sweep` removes what is over in the end. */
  readonly write?: (file: string, text: string) => Promise<unknown>;
}

export interface PutOptions extends WithinChanges {
  /** Take the id also from a skill of another source. */
  readonly replace?: boolean;
  readonly onProgress?: (done: number) => void;
}

const COPIES_AT_ONCE = 16;
/** A batch of thousands takes a while; whoever comes meanwhile waits for it. */
const LOCK_WAIT_MS = 120_000;

export class SkillRegistry {
  readonly dir: string;
  readonly file: string;
  readonly #clock: Clock;
  /** Not the file's own, which whoever writes it may want to have. */
  readonly #lock: string;
  #known: { readonly stamp: string; readonly manifests: readonly SkillManifest[] } | undefined;

  constructor(home: string, clock: Clock = systemClock) {
    this.dir = join(home, "skills");
    this.file = join(this.dir, "registry.json");
    this.#lock = join(this.dir, "registry");
    this.#clock = clock;
  }

  /** In order of id. Reads one file, and that only if it changed. */
  async list(): Promise<readonly SkillManifest[]> {
    const stamp = await stampOf(this.file);
    if (stamp === undefined) return [];
    if (this.#known?.stamp !== stamp) {
      const manifests = Object.freeze(await readRegistry(this.file));
      // Taken before reading: a change in between makes the next call read again.
      this.#known = { stamp, manifests };
    }
    return this.#known.manifests;
  }

  /** By id, else by name. Rejects with `invalid_arguments` for a name that several have. */
  async get(idOrName: string): Promise<SkillManifest | undefined> {
    return skillNamed(await this.list(), idOrName);
  }

  /** What `put` would do, without doing it: for each skill, in their order. */
  async preview(skills: readonly SkillToPut[], options: Pick<PutOptions, "replace"> = {}): Promise<PutOutcome[]> {
    const steps = await planWith(await this.list(), skills, options);
    const outcomes = skills.map((item, index) => expected(item, steps[index]));
    return withDoubles(skills, steps, outcomes);
  }

  /** Copies the files and enters the manifests; all of a batch appear at once. */
  async put(skills: readonly SkillToPut[], options: PutOptions = {}): Promise<PutResult> {
    await mkdir(this.dir, { recursive: true, mode: 0o700 });
    return withLock(this.#lock, () => this.#put(skills, options), { waitMs: LOCK_WAIT_MS });
  }

  async remove(id: string, { write }: WithinChanges = {}): Promise<SkillManifest> {
    const removed = async (): Promise<SkillManifest> => {
      const present = await readRegistry(this.file);
      const manifest = present.find((each) => each.id === id);
      if (manifest === undefined) throw unknownSkill(id);
      await (write ?? writeAtomic)(this.file, renderRegistry(present.filter((each) => each !== manifest)));
      if (write === undefined) await discard(join(this.dir, "files", id));
      return manifest;
    };
    // Without the folder there is nothing to lock, and nothing to remove.
    if ((await stampOf(this.file)) === undefined) throw unknownSkill(id);
    return withLock(this.#lock, removed, { waitMs: LOCK_WAIT_MS });
  }

  /** Removes copies that the registry does not speak of. Never rejects: what is left now is removed by the next `put`. */
  async sweep(): Promise<void> {
    if ((await stampOf(this.dir)) === undefined) return;
    const swept = async (): Promise<void> => sweep(this.dir, await readRegistry(this.file));
    await withLock(this.#lock, swept, { waitMs: LOCK_WAIT_MS }).catch(() => undefined);
  }

  /** The absolute path of a file of the skill, or of its folder for `.`. */
  fileOf(manifest: Pick<SkillManifest, "name" | "dir">, path: string): string {
    const folder = join(this.dir, ...manifest.dir.split("/"));
    if (path === ".") return folder;
    if (!isSafePath(path)) throw noSuchFile(manifest, path);
    return join(folder, ...path.split("/"));
  }

  /** The bytes after checking them against the manifest; rejects with `blocked` if somebody changed them. */
  async readFile(manifest: SkillManifest, path: string): Promise<Uint8Array> {
    const file = manifest.facts.files.find((each) => each.path === path);
    if (file === undefined) throw noSuchFile(manifest, path);
    const at = this.fileOf(manifest, path);
    const read = await readBack(at, file);
    if (read.bytes !== undefined) return read.bytes;
    const now = (await this.list()).find(({ id }) => id === manifest.id);
    if (now?.dir !== manifest.dir) {
      throw new ToolcribError("conflict", `The skill ${manifest.name} was updated or removed meanwhile.`, {
        hint: "Try again.",
      });
    }
    throw new ToolcribError("blocked", `${at} is ${read.reason}: it is not the file that was imported.`, {
      hint: `Import the skill again from ${manifest.source}.`,
      details: { skill: manifest.id, path },
    });
  }

  async #put(skills: readonly SkillToPut[], { replace = false, onProgress, write }: PutOptions): Promise<PutResult> {
    const present = await readRegistry(this.file);
    await sweep(this.dir, present);
    const steps = await planWith(present, skills, { replace });
    let finished = 0;
    const own = await inParallel(skills, COPIES_AT_ONCE, async (item, index): Promise<PutOutcome> => {
      const outcome = await this.#take(item, steps[index]);
      onProgress?.(++finished);
      return outcome;
    });
    const changed = own.flatMap((outcome) => ("manifest" in outcome && outcome.manifest ? [outcome.manifest] : []));
    const known = new Map(present.map((manifest) => [manifest.id, manifest]));
    const isFresh = ({ id, dir }: SkillManifest): boolean => known.get(id)?.dir !== dir;
    try {
      await this.#enter(present, changed, write);
    } catch (error) {
      for (const manifest of changed.filter(isFresh)) await discard(this.fileOf(manifest, "."));
      throw error;
    }
    for (const { id } of write === undefined ? changed.filter(isFresh) : []) {
      const before = known.get(id);
      if (before !== undefined) await discard(this.fileOf(before, "."));
    }
    return resultOf(withDoubles(skills, steps, own));
  }

  async #take(item: SkillToPut, step: PutStep | undefined): Promise<PutOutcome> {
    const outcome = expected(item, step);
    // A double waits for what becomes of the other; a conflict is settled.
    if (outcome.status === "failed" || step === undefined || !("id" in step)) return outcome;
    try {
      if (step.action === "unchanged" && (await this.#isWhole(step.before))) {
        return { ...outcome, manifest: await this.#checkedAgain(item, step.before) };
      }
      const manifest = await this.#copied(item, step.id);
      return { status: step.action === "add" ? "added" : "updated", id: step.id, manifest };
    } catch (error) {
      const { code, message } = asToolcribError(error);
      return failed(item, code, code === "internal" ? `It could not be copied: ${message}` : message);
    }
  }

  async #copied(item: SkillToPut, id: string): Promise<SkillManifest> {
    // From before the copy, so that whatever changes at the source from here on is later than it.
    const importedAt = new Date(this.#clock.now()).toISOString();
    const manifest = manifestOf(item, { id, dir: await this.#freeDir(id, item.skill.digest), importedAt });
    const folder = this.fileOf(manifest, ".");
    try {
      await copySkill(item.skill, folder);
    } catch (error) {
      await discard(folder);
      throw error;
    }
    return manifest;
  }

  /** Needs, findings and what the reader says are as of now; a source that is still there stays. */
  async #checkedAgain(item: SkillToPut, before: SkillManifest): Promise<SkillManifest> {
    const { id, dir, importedAt, source, sourcePath } = before;
    const manifest = manifestOf(item, { id, dir, importedAt });
    return (await isThere(before)) ? { ...manifest, source, sourcePath } : manifest;
  }

  async #isWhole(manifest: SkillManifest): Promise<boolean> {
    for (const file of manifest.facts.files) {
      const read = await readBack(this.fileOf(manifest, file.path), file);
      if (read.bytes === undefined) return false;
    }
    return true;
  }

  /** Always a new folder, also for the same files again: the one that is there may be in use. */
  async #freeDir(id: string, digest: string): Promise<string> {
    const base = `files/${id}/${digest.replace(/^sha256:/, "").slice(0, 16)}`;
    for (let number = 1; ; number++) {
      const dir = number === 1 ? base : `${base}-${number}`;
      if ((await stampOf(join(this.dir, dir))) === undefined) return dir;
    }
  }

  async #enter(
    present: readonly SkillManifest[],
    changed: readonly SkillManifest[],
    write: WithinChanges["write"] = writeAtomic,
  ): Promise<void> {
    const all = new Map(present.map((manifest) => [manifest.id, manifest]));
    for (const manifest of changed) all.set(manifest.id, manifest);
    const text = renderRegistry([...all.values()]);
    if (changed.length > 0 && text !== renderRegistry(present)) await write(this.file, text);
  }
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
  await inParallel(concerned, COPIES_AT_ONCE, async (manifest) => {
    if (await isThere(manifest)) there.add(manifest.id);
  });
  return planPut(present, skills, { replace, isThere: ({ id }) => there.has(id) });
}

async function isThere({ sourcePath, facts }: SkillManifest): Promise<boolean> {
  const found = await stat(join(sourcePath, facts.files[0]?.path ?? "SKILL.md")).catch(() => undefined);
  return found?.isFile() === true;
}

/** As planned; a double counts as unchanged until it is known what becomes of the other. */
function expected(item: SkillToPut, step: PutStep | undefined): PutOutcome {
  if (step === undefined) return failed(item, "internal", "It was not planned.");
  switch (step.action) {
    case "add":
      return { status: "added", id: step.id };
    case "update":
      return { status: "updated", id: step.id };
    case "unchanged":
      return { status: "unchanged", id: step.id };
    case "double":
      return { status: "unchanged", id: baseIdOf(item) };
    case "conflict":
      return failed(item, "conflict", conflictMessage(item, step.before));
  }
}

/** A double is the same as another one, so it fares the same, and is no change beside it. */
function withDoubles(
  skills: readonly SkillToPut[],
  steps: readonly PutStep[],
  outcomes: readonly PutOutcome[],
): PutOutcome[] {
  return outcomes.map((outcome, index): PutOutcome => {
    const step = steps[index];
    const other = step?.action === "double" ? outcomes[step.as] : undefined;
    if (other === undefined) return outcome;
    if (other.status !== "failed") return { ...other, status: "unchanged" };
    return { status: "failed", failure: { ...other.failure, path: skills[index]?.skill.dir ?? other.failure.path } };
  });
}

function resultOf(outcomes: readonly PutOutcome[]): PutResult {
  const result: PutResult = { imported: [], unchanged: [], failed: [], outcomes };
  for (const outcome of outcomes) {
    if (outcome.status === "failed") result.failed.push(outcome.failure);
    else if (outcome.manifest !== undefined) {
      (outcome.status === "unchanged" ? result.unchanged : result.imported).push(outcome.manifest);
    }
  }
  return result;
}

function failed({ skill }: SkillToPut, code: string, message: string): PutOutcome {
  return { status: "failed", failure: { path: skill.dir, name: skill.name, code, message } };
}

function conflictMessage({ skill }: SkillToPut, { name, source, id }: SkillManifest): string {
  const other = name === skill.name ? "A skill of that name" : `The skill ${name}, whose id would be the same,`;
  return `${other} is there from ${source} (${id}). --force replaces it, \`toolcrib skill remove ${id}\` removes it.`;
}

function unknownSkill(id: string): ToolcribError {
  return new ToolcribError("not_found", `There is no imported skill "${id}".`, {
    hint: "toolcrib skill list shows them.",
  });
}

function noSuchFile({ name }: Pick<SkillManifest, "name">, path: string): ToolcribError {
  return new ToolcribError("not_found", `The skill ${name} has no file ${JSON.stringify(path)}.`);
}
