/** Everything that one wants to know of the skills below a folder before taking them in. */
import { basename } from "node:path";
import { asToolcribError } from "../../model/errors.ts";
import type { LocatedSkill, MissingNeeds, SkillFinding } from "../../model/skill.ts";
import { type Machine, missingNeeds } from "../needs.ts";
import { readSkill } from "../read/read-skill.ts";
import { scanSkill } from "../scan/scan-skill.ts";
import { type FindProblem, findSkills } from "./find-skills.ts";
import { mapLimit } from "../../base/async.ts";

/** A skill that was read and scanned. Thousands are kept at once, so its texts are not. */
export interface ScannedSkill {
  readonly skill: LocatedSkill;
  readonly findings: readonly SkillFinding[];
}

/** With what it needs and this machine lacks. */
export interface Candidate extends ScannedSkill {
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

/** Few: reading and scanning keep the processor busy, and what is in progress at once is in memory at once. */
const INSPECT_CONCURRENCY = 2;

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
    const scanned = await readAndScan(dir);
    return { ...scanned, missing: missingNeeds(scanned.skill.needs, machine) };
  } catch (error) {
    const { code, message } = asToolcribError(error);
    return { path: dir, name: basename(dir), code, message };
  }
}

/** @param before The skill as it was: the same files are not scanned again. */
export async function readAndScan(dir: string, before?: ScannedSkill): Promise<ScannedSkill> {
  const skill = await readSkill(dir);
  if (before?.skill.digest === skill.digest && before.skill.dir === skill.dir) return before;
  const { body: _body, bytes: _bytes, ...located } = skill;
  return withOwnStrings({ skill: located, findings: await scanSkill(skill) });
}

/** A copy of plain JSON. V8 keeps a whole text for as long as a word that was cut out of it is kept, and here that is all. */
function withOwnStrings<Value>(value: Value): Value {
  // Plain JSON has the same type afterwards.
  return JSON.parse(JSON.stringify(value)) as Value;
}
