/** Everything that one wants to know of the skills below a folder before taking them in. */
import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { Worker } from "node:worker_threads";
import { asToolcribError } from "../../model/errors.ts";
import type { LocatedSkill, MissingNeeds, SkillFinding } from "../../model/skill.ts";
import { type Machine, missingNeeds } from "../needs.ts";
import { readSkill } from "../read/read-skill.ts";
import { scanSkill } from "../scan/scan-skill.ts";
import { type FindProblem, findSkills } from "./find-skills.ts";
import { mapLimit } from "../../base/async.ts";
import { ThreadPool } from "../../base/thread-calls.ts";

/** A skill that was read and scanned. Thousands are kept at once, so its texts are not. */
export interface ScannedSkill {
  readonly skill: LocatedSkill;
  readonly findings: readonly SkillFinding[];
}

/** With what it needs and this machine lacks. */
export interface Candidate extends ScannedSkill {
  readonly missing: MissingNeeds;
}

/** One that could not be read at all, or not be put into the registry. */
export interface UnreadableSkill {
  /** The folder. */
  readonly path: string;
  /** The folder's. */
  readonly name: string;
  /** Of the error table. */
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

/** A skill that cannot be read does not stop the others. Rejects only if the folder does not exist. */
export async function inspectSkills(
  root: string,
  machine: Machine,
  options: { readonly onProgress?: (done: number, of: number) => void } = {},
): Promise<InspectedSkills> {
  const { dirs, problems } = await findSkills(root);
  const candidates: Candidate[] = [];
  const unreadable: UnreadableSkill[] = [];
  const looked = await readAll(dirs, (done) => options.onProgress?.(done, dirs.length));
  for (const each of looked) {
    if ("skill" in each) candidates.push({ ...each, missing: missingNeeds(each.skill, machine) });
    else unreadable.push(each);
  }
  return { candidates, unreadable, problems, totalScanned: dirs.length };
}

/** One skill; never rejects. */
export async function inspectSkill(dir: string, machine: Machine): Promise<Candidate | UnreadableSkill> {
  const read = await readOrReport(dir);
  return "skill" in read ? { ...read, missing: missingNeeds(read.skill, machine) } : read;
}

/** Never rejects. */
export async function readOrReport(dir: string): Promise<ScannedSkill | UnreadableSkill> {
  try {
    return await readAndScan(dir);
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

// Many skills are read by threads: by all processors, and without the garbage of their texts in this thread's heap, which
// V8 would let grow to several times of what is in use.

type Looked = ScannedSkill | UnreadableSkill;

/** Fewer are read here: a thread takes a while to start. */
const MIN_SKILLS_FOR_THREADS = 100;
/** More would be faster, and take more memory than all the skills. */
const MAX_THREADS = Math.min(2, availableParallelism());
const SKILLS_PER_MESSAGE = 8;
/** Reading and scanning keep the processor busy, and what is in progress at once is in memory at once. */
const CONCURRENCY_HERE = 2;
/** Memory of a thread for short-lived objects; by default it is several times as much. */
const YOUNG_MB = 4;
/** Several times what a large skill takes. One that needs more is read here. */
const OLD_MB = 64;

async function readAll(dirs: readonly string[], onProgress: (done: number) => void): Promise<Looked[]> {
  let done = 0;
  if (dirs.length < MIN_SKILLS_FOR_THREADS) {
    return mapLimit(dirs, CONCURRENCY_HERE, async (dir) => {
      const read = await readOrReport(dir);
      onProgress(++done);
      return read;
    });
  }
  const groups = Array.from({ length: Math.ceil(dirs.length / SKILLS_PER_MESSAGE) }, (_, index) =>
    dirs.slice(index * SKILLS_PER_MESSAGE, (index + 1) * SKILLS_PER_MESSAGE),
  );
  const threads = new ThreadPool({ most: MAX_THREADS, start: startThread });
  let failures = 0;
  try {
    const read = await mapLimit(groups, MAX_THREADS, async (group) => {
      let looked: Looked[] | undefined;
      // Each failure costs the start of a thread: after a few, such as where no thread can be had, the rest is read here.
      if (failures < MAX_THREADS) looked = await threads.call<Looked[]>("read", group).catch(() => void failures++);
      looked ??= await mapLimit(group, 1, readOrReport);
      onProgress((done += group.length));
      return looked;
    });
    return read.flat();
  } finally {
    await threads.close(0);
  }
}

function startThread(): Worker {
  return new Worker(new URL("./inspect-worker.ts", import.meta.url), {
    name: "toolcrib skills",
    // Nothing of the hub's is for a thread that works on what strangers wrote.
    env: {},
    argv: [],
    execArgv: [],
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB, maxOldGenerationSizeMb: OLD_MB },
  });
}
