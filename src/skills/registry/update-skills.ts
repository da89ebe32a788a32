/** Brings imported skills up to date with the place that they came from. */
import { asToolcribError } from "../../model/errors.ts";
import type { SkillManifest } from "../../model/skill.ts";
import { type FetchOptions, fetchSkills } from "../fetch/fetch-skills.ts";
import { type Candidate, inspectSkill, inspectSkills } from "../find/inspect-skills.ts";
import { mapLimit } from "../../base/async.ts";
import type { Machine } from "../needs.ts";
import { importSkills } from "./import-skills.ts";
import type { SkillToPut } from "./skill-manifest.ts";
import type { PutResult } from "./plan-put.ts";
import type { PutOptions, SkillRegistry } from "./skill-registry.ts";
import { skillId } from "./skill-id.ts";
import { isFolderSource, sourceState } from "./source-state.ts";

export interface UpdateOptions {
  readonly machine: Machine;
  readonly fetch: FetchOptions;
  /** Also what the scan refuses. */
  readonly force?: boolean;
  readonly dryRun?: boolean;
  /** In the place of `registry.put`, where more changes along with the registry. `resolved`: a commit, a version. */
  readonly put?: (
    skills: readonly SkillToPut[],
    options: PutOptions,
    resolved: string | undefined,
  ) => Promise<PutResult>;
  readonly onProgress?: (done: number, of: number) => void;
}

export interface UpdateOutcome {
  /** As it was before. */
  readonly before: SkillManifest;
  /** `skipped`: it cannot be read again and stays as it is. */
  readonly status: "updated" | "unchanged" | "skipped" | "failed";
  readonly code?: string;
  readonly message?: string;
  readonly candidate?: Candidate;
}

/** In the order of the manifests. One that fails stays as it was. */
export async function updateSkills(
  registry: SkillRegistry,
  manifests: readonly SkillManifest[],
  options: UpdateOptions,
): Promise<UpdateOutcome[]> {
  const bySource = Map.groupBy(manifests, ({ from }) => from);
  const outcomes = new Map<string, UpdateOutcome>();
  let done = 0;
  for (const [source, group] of bySource) {
    for (const outcome of await updateSource(registry, source, group, options))
      outcomes.set(outcome.before.id, outcome);
    options.onProgress?.((done += group.length), manifests.length);
  }
  return manifests.flatMap(({ id }) => outcomes.get(id) ?? []);
}

async function updateSource(
  registry: SkillRegistry,
  source: string,
  group: readonly SkillManifest[],
  options: UpdateOptions,
): Promise<UpdateOutcome[]> {
  if (source.startsWith("server:")) {
    return group.map((before) => skipped(before, "It comes from an MCP server, which keeps it up to date."));
  }
  try {
    if (group.every(isFolderSource)) {
      const looked = await mapLimit(group, 8, (before) => inspectAgain(before, options.machine));
      return await importOutcomes(registry, { source }, looked, options);
    }
    const fetched = await fetchSkills(source, options.fetch);
    try {
      const { candidates } = await inspectSkills(fetched.dir, options.machine);
      return await importOutcomes(
        registry,
        { source, resolved: fetched.resolved },
        matchCandidates(group, candidates),
        options,
      );
    } finally {
      await fetched.dispose();
    }
  } catch (error) {
    const { code, message } = asToolcribError(error);
    return group.map((before): UpdateOutcome => ({ before, status: "failed", code, message }));
  }
}

async function inspectAgain(before: SkillManifest, machine: Machine): Promise<UpdateOutcome> {
  switch (await sourceState(before)) {
    case "gone":
      return skipped(before, `${before.sourcePath} is gone.`);
    case "unchecked":
    case "same":
      return { before, status: "unchanged" };
    case "changed":
  }
  const read = await inspectSkill(before.sourcePath, machine);
  if (!("skill" in read)) return { before, status: "failed", code: read.code, message: read.message };
  const looked = asImported(before, read);
  return isSameSkill(before, looked) ? { before, status: "updated", candidate: looked } : renamed(before, looked);
}

/** Skills of one name are matched in order, which is that of their ids and of their paths. */
function matchCandidates(group: readonly SkillManifest[], candidates: readonly Candidate[]): UpdateOutcome[] {
  const left = [...candidates];
  return group.map((before) => {
    const same = left.findIndex((each) => isSameSkill(before, each) && each.skill.digest === before.digest);
    const at = same === -1 ? left.findIndex((each) => isSameSkill(before, each)) : same;
    const [found] = at === -1 ? [] : left.splice(at, 1);
    const candidate = found && asImported(before, found);
    if (candidate === undefined) return skipped(before, `${before.from} no longer has a skill of that name.`);
    return { before, status: candidate.skill.digest === before.digest ? "unchanged" : "updated", candidate };
  });
}

/**
 * Imports the candidates, including unchanged ones, so that the registry can distinguish skills of one name. Its outcomes
 * of the changed ones count.
 */
async function importOutcomes(
  registry: SkillRegistry,
  { source, resolved }: { readonly source: string; readonly resolved?: string | undefined },
  looked: readonly UpdateOutcome[],
  { force = false, dryRun = false, put }: UpdateOptions,
): Promise<UpdateOutcome[]> {
  const candidates = looked.flatMap(({ candidate }) => candidate ?? []);
  const into: Pick<SkillRegistry, "preview" | "put"> =
    put === undefined
      ? registry
      : {
          preview: (skills, given) => registry.preview(skills, given),
          put: (skills, given) => put(skills, given ?? {}, resolved),
        };
  const imported = await importSkills(into, candidates, { source, force, dryRun });
  const outcomes = new Map(imported.map(({ candidate, outcome }) => [candidate, outcome]));
  return looked.map((each): UpdateOutcome => {
    const outcome = each.candidate === undefined ? undefined : outcomes.get(each.candidate);
    if (each.status !== "updated" || outcome?.status !== "failed") return each;
    return { before: each.before, status: "failed", code: outcome.failure.code, message: outcome.failure.message };
  });
}

function isSameSkill(before: SkillManifest, candidate: Candidate): boolean {
  const { skill } = asImported(before, candidate);
  return skillId(skill.name, skill.dialect) === skillId(before.name, before.facts.dialect);
}

/** A skill that was imported as one of OpenClaw stays one, whatever its text says. */
function asImported({ facts: { dialect } }: SkillManifest, candidate: Candidate): Candidate {
  return dialect === "openclaw" ? { ...candidate, skill: { ...candidate.skill, dialect } } : candidate;
}

function renamed(before: SkillManifest, { skill }: Candidate): UpdateOutcome {
  const now = skillId(skill.name, skill.dialect);
  const message = `${before.sourcePath} is now the skill ${now}. Import it and remove ${before.id}.`;
  return { before, status: "failed", code: "conflict", message };
}

function skipped(before: SkillManifest, message: string): UpdateOutcome {
  return { before, status: "skipped", code: "not_found", message };
}
