/** What became, or would become, of the skills of a batch. */
import type { SkillManifest } from "../../model/skill.ts";
import type { SkillToPut } from "./manifest.ts";
import { baseIdOf, type PutStep } from "./plan-put.ts";

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

/** As planned; a double counts as unchanged until it is known what becomes of the other. */
export function expected(item: SkillToPut, step: PutStep | undefined): PutOutcome {
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
export function withDoubles(
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

export function failed({ skill }: SkillToPut, code: string, message: string): PutOutcome {
  return { status: "failed", failure: { path: skill.dir, name: skill.name, code, message } };
}

function conflictMessage({ skill }: SkillToPut, { name, source, id }: SkillManifest): string {
  const other = name === skill.name ? "A skill of that name" : `The skill ${name}, whose id would be the same,`;
  return `${other} is there from ${source} (${id}). --force replaces it, \`toolcrib skill remove ${id}\` removes it.`;
}
