/**
 * Decides, before anything is written, what becomes of each skill of a batch. Ids follow from names, so skills meet:
 *
 * - The skill that is there from the same place is the same one: it is updated, or unchanged.
 * - Another one of the same source gets a numbered id. One source may well hold two of a name.
 * - One of another source is a conflict, because a name that people trust must not change hands by itself.
 */
import type { SkillManifest } from "../../model/skill.ts";
import type { UnreadableSkill } from "../find/inspect-skills.ts";
import { numberedId, skillId } from "./skill-id.ts";
import type { SkillToPut } from "./skill-manifest.ts";

export type PutStep =
  | { readonly action: "add"; readonly id: string }
  | { readonly action: "update" | "unchanged"; readonly id: string; readonly before: SkillManifest }
  /** The same files are in the batch already; `as` is the place of the other in it. */
  | { readonly action: "duplicate"; readonly of: number }
  | { readonly action: "conflict"; readonly id: string; readonly before: SkillManifest };

interface PlanOptions {
  readonly replace: boolean;
  /** Whether there still is a skill at the path that a manifest was read from. */
  readonly isThere: (manifest: SkillManifest) => boolean;
}

/** A step for each item, in their order. */
export function planPut(
  present: readonly SkillManifest[],
  items: readonly SkillToPut[],
  options: PlanOptions,
): PutStep[] {
  const plan = new PutPlan(present, items, options);
  // Certain matches come first, so that no other skill takes their id.
  plan.matchWhere((item, manifest) => manifest.sourcePath === item.skill.dir);
  const moved = (item: SkillToPut, manifest: SkillManifest): boolean =>
    manifest.from === item.source && !options.isThere(manifest);
  plan.matchWhere((item, manifest) => moved(item, manifest) && manifest.digest === item.skill.digest);
  plan.matchWhere(moved);
  plan.matchDuplicates();
  plan.takeFreeIds();
  plan.resolveCollisions();
  return plan.steps();
}

class PutPlan {
  readonly #items: readonly SkillToPut[];
  readonly #replace: boolean;
  readonly #steps: (PutStep | undefined)[];
  readonly #byBaseId = new Map<string, SkillManifest[]>();
  readonly #byId: Map<string, SkillManifest>;
  /** Manifests that an item of the batch has matched, with the source of the item. */
  readonly #matched = new Map<string, string>();
  readonly #updated = new Set<string>();
  /** Source of each id that is new. */
  readonly #added = new Map<string, string>();

  constructor(present: readonly SkillManifest[], items: readonly SkillToPut[], { replace }: PlanOptions) {
    this.#items = items;
    this.#replace = replace;
    this.#steps = items.map(() => undefined);
    this.#byId = new Map(present.map((manifest) => [manifest.id, manifest]));
    for (const manifest of present) {
      const base = skillId(manifest.name, manifest.facts.dialect);
      const family = this.#byBaseId.get(base);
      if (family === undefined) this.#byBaseId.set(base, [manifest]);
      else family.push(manifest);
    }
  }

  steps(): PutStep[] {
    return this.#steps.filter((step) => step !== undefined);
  }

  matchWhere(isSame: (item: SkillToPut, manifest: SkillManifest) => boolean): void {
    for (const [index, item] of this.#open()) {
      const before = this.#family(item).find((manifest) => !this.#matched.has(manifest.id) && isSame(item, manifest));
      if (before !== undefined) this.#take(index, item, before);
    }
  }

  /** The same files under the same name are imported once, wherever they come from. */
  matchDuplicates(): void {
    const seen = new Map<string, number>();
    for (const [index, item] of this.#items.entries()) {
      const key = `${baseIdOf(item)} ${item.skill.digest}`;
      const first = seen.get(key);
      if (first === undefined) seen.set(key, index);
      if (this.#steps[index] !== undefined) continue;
      if (first !== undefined) {
        this.#steps[index] = { action: "duplicate", of: first };
        continue;
      }
      const same = this.#family(item).find(({ digest }) => digest === item.skill.digest);
      if (same !== undefined && !this.#updated.has(same.id)) this.#take(index, item, same);
    }
  }

  takeFreeIds(): void {
    for (const [index, item] of this.#open()) {
      const id = baseIdOf(item);
      if (!this.#byId.has(id) && !this.#added.has(id)) this.#add(index, item, id);
    }
  }

  resolveCollisions(): void {
    for (const [index, item] of this.#open()) {
      const id = baseIdOf(item);
      const before = this.#byId.get(id);
      const sources = [before?.from, this.#matched.get(id), this.#added.get(id)];
      // Without a manifest it is one of the batch that has the id.
      const isOurs = before === undefined || sources.includes(item.source);
      if (!isOurs && !this.#replace) this.#steps[index] = { action: "conflict", id, before };
      else if (isOurs || this.#matched.has(id)) this.#add(index, item, this.#freeNumberedId(id));
      else this.#take(index, item, before);
    }
  }

  *#open(): Generator<[number, SkillToPut]> {
    for (const [index, item] of this.#items.entries()) if (this.#steps[index] === undefined) yield [index, item];
  }

  #family(item: SkillToPut): readonly SkillManifest[] {
    return this.#byBaseId.get(baseIdOf(item)) ?? [];
  }

  #take(index: number, item: SkillToPut, before: SkillManifest): void {
    this.#matched.set(before.id, item.source);
    const action = before.digest === item.skill.digest ? "unchanged" : "update";
    if (action === "update") this.#updated.add(before.id);
    this.#steps[index] = { action, id: before.id, before };
  }

  #add(index: number, item: SkillToPut, id: string): void {
    this.#added.set(id, item.source);
    this.#steps[index] = { action: "add", id };
  }

  #freeNumberedId(base: string): string {
    for (let number = 2; ; number++) {
      const id = numberedId(base, number);
      if (!this.#byId.has(id) && !this.#added.has(id)) return id;
    }
  }
}

export function baseIdOf({ skill }: SkillToPut): string {
  return skillId(skill.name, skill.dialect);
}

// Outcomes of a batch, planned or done.

/** The outcome of one skill of a batch. It has a `manifest` if the skill is in the registry now. */
export type PutOutcome =
  | { readonly status: "added" | "updated" | "unchanged"; readonly id: string; readonly manifest?: SkillManifest }
  | { readonly status: "failed"; readonly failure: UnreadableSkill };

export interface PutResult {
  /** New ones and updated ones. */
  readonly imported: SkillManifest[];
  readonly unchanged: SkillManifest[];
  readonly failed: UnreadableSkill[];
  /** For each skill of the batch, in their order. */
  readonly outcomes: readonly PutOutcome[];
}

/** As planned; a double counts as unchanged until it is known what becomes of the other. */
export function plannedOutcome(item: SkillToPut, step: PutStep | undefined): PutOutcome {
  if (step === undefined) return failedOutcome(item, "internal", "It was not planned.");
  switch (step.action) {
    case "add":
      return { status: "added", id: step.id };
    case "update":
      return { status: "updated", id: step.id };
    case "unchanged":
      return { status: "unchanged", id: step.id };
    case "duplicate":
      return { status: "unchanged", id: baseIdOf(item) };
    case "conflict":
      return failedOutcome(item, "conflict", conflictMessage(item, step.before));
  }
}

/** A duplicate has the outcome of the skill that it duplicates, and counts as unchanged. */
export function withDuplicates(
  skills: readonly SkillToPut[],
  steps: readonly PutStep[],
  outcomes: readonly PutOutcome[],
): PutOutcome[] {
  return outcomes.map((outcome, index): PutOutcome => {
    const step = steps[index];
    const other = step?.action === "duplicate" ? outcomes[step.of] : undefined;
    if (other === undefined) return outcome;
    if (other.status !== "failed") return { ...other, status: "unchanged" };
    return { status: "failed", failure: { ...other.failure, path: skills[index]?.skill.dir ?? other.failure.path } };
  });
}

export function resultOf(outcomes: readonly PutOutcome[]): PutResult {
  const result: PutResult = { imported: [], unchanged: [], failed: [], outcomes };
  for (const outcome of outcomes) {
    if (outcome.status === "failed") result.failed.push(outcome.failure);
    else if (outcome.manifest !== undefined) {
      (outcome.status === "unchanged" ? result.unchanged : result.imported).push(outcome.manifest);
    }
  }
  return result;
}

export function failedOutcome({ skill }: SkillToPut, code: string, message: string): PutOutcome {
  return { status: "failed", failure: { path: skill.dir, name: skill.name, code, message } };
}

function conflictMessage({ skill }: SkillToPut, { name, from, id }: SkillManifest): string {
  const other = name === skill.name ? "A skill of that name" : `The skill ${name}, whose id would be the same,`;
  return `${other} is already imported from ${from} (${id}). Use --force to replace it, or \`toolcrib skill remove ${id}\` to remove it.`;
}
