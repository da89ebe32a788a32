/** Everything that one wants to know of the skills below a folder before taking them in. */
import { basename } from "node:path";
import { asToolcribError } from "../../model/errors.ts";
import type { MissingNeeds, Skill, SkillFinding } from "../../model/skill.ts";
import { type Machine, missingNeeds } from "../needs.ts";
import { readSkill } from "../read/read-skill.ts";
import { scanSkill } from "../scan/scan-skill.ts";
import { type FindProblem, findSkills } from "./find-skills.ts";
import { mapLimit } from "../../base/async.ts";

/** A skill that was read, with what was found out about it. */
export interface Candidate {
  readonly skill: Skill;
  readonly findings: readonly SkillFinding[];
  readonly missing: MissingNeeds;
}

/** One that could not be read at all. */
export interface UnreadableSkill {
  /** The folder. */
  readonly path: string;
  /** The folder's. */
  readonly name: string;
  readonly code: string;
  readonly message: string;
}

export interface InspectedSkills {
  readonly candidates: readonly Candidate[];
  readonly unreadable: readonly UnreadableSkill[];
  /** Problems of the search, such as folders that were not searched. */
  readonly problems: readonly FindProblem[];
  /** How many there are, readable or not. */
  readonly totalScanned: number;
}

const INSPECT_CONCURRENCY = 8;

/** A skill that cannot be read does not stop the others. Rejects only if the folder does not exist. */
export async function inspectSkills(
  root: string,
  machine: Machine,
  options: { readonly onProgress?: (done: number, of: number) => void } = {},
): Promise<InspectedSkills> {
  const { dirs, problems } = await findSkills(root);
  let done = 0;
  const looked = await mapLimit(dirs, INSPECT_CONCURRENCY, async (dir) => {
    const result = await inspectSkill(dir, machine);
    options.onProgress?.(++done, dirs.length);
    return result;
  });
  return {
    candidates: looked.filter((each) => "skill" in each),
    unreadable: looked.filter((each) => "code" in each),
    problems,
    totalScanned: dirs.length,
  };
}

/** One skill; never rejects. */
export async function inspectSkill(dir: string, machine: Machine): Promise<Candidate | UnreadableSkill> {
  try {
    const skill = await readSkill(dir);
    return { skill, findings: await scanSkill(skill), missing: missingNeeds(skill.needs, machine) };
  } catch (error) {
    const { code, message } = asToolcribError(error);
    return { path: dir, name: basename(dir), code, message };
  }
}
