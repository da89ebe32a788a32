/** Imports skills into the registry as one batch, without those that the scan refuses. */
import type { Candidate } from "../find/inspect-skills.ts";
import type { PutOutcome } from "./plan-put.ts";
import type { SkillRegistry } from "./skill-registry.ts";

export interface ImportOptions {
  /** As it was given; a folder as an absolute path. */
  readonly source: string;
  /** Also what the scan refuses, and in the place of a skill of another source. */
  readonly force?: boolean;
  /** Only say what would happen. */
  readonly dryRun?: boolean;
  readonly onProgress?: (done: number, of: number) => void;
}

export interface Imported {
  readonly candidate: Candidate;
  readonly outcome: PutOutcome;
}

/** In the order of the candidates. */
export async function importSkills(
  registry: Pick<SkillRegistry, "preview" | "put">,
  candidates: readonly Candidate[],
  { source, force = false, dryRun = false, onProgress }: ImportOptions,
): Promise<Imported[]> {
  const refused = new Map<Candidate, PutOutcome>();
  for (const candidate of force ? [] : candidates) {
    const outcome = refusalOf(candidate);
    if (outcome !== undefined) refused.set(candidate, outcome);
  }
  const taken = candidates.filter((candidate) => !refused.has(candidate));
  const items = taken.map((candidate) => ({ ...candidate, source }));
  const outcomes = dryRun
    ? await registry.preview(items, { replace: force })
    : taken.length === 0
      ? []
      : (await registry.put(items, { replace: force, onProgress: (done) => onProgress?.(done, taken.length) }))
          .outcomes;
  const byCandidate = new Map(taken.map((candidate, index) => [candidate, outcomes[index]]));
  return candidates.flatMap((candidate) => {
    const outcome = refused.get(candidate) ?? byCandidate.get(candidate);
    return outcome === undefined ? [] : [{ candidate, outcome }];
  });
}

function refusalOf({ skill, findings }: Candidate): PutOutcome | undefined {
  const reasons = findings.filter(({ severity }) => severity === "refuse");
  const [first] = reasons;
  if (first === undefined) return undefined;
  const more = reasons.length > 1 ? `, and ${reasons.length - 1} more` : "";
  const what = first.message.replace(/\.$/, "");
  const place = first.line === undefined ? first.file : `${first.file}:${first.line}`;
  const message = `The scan refuses it: ${place}: ${what}${more}. Use --force to import it anyway.`;
  return { status: "failed", failure: { path: skill.dir, name: skill.name, code: "blocked", message } };
}
