/** Reads every skill of some folders, going on past what cannot be read. */
import { asToolcribError } from "../../model/errors.ts";
import type { Skill } from "../../model/skill.ts";
import { readSkill } from "../read/read-skill.ts";
import { type FindProblem, findSkills } from "./find-skills.ts";
import { inParallel } from "./in-parallel.ts";

export interface ReadFolders {
  /** In order of the folders given, then of path. */
  readonly skills: Skill[];
  /** Of finding and of reading. `path` is the folder; the code is `unreadable` and the like, or of the error table. */
  readonly problems: FindProblem[];
}

const AT_ONCE = 8;

/** Never rejects: a folder that is not there is a problem too. `onRead` is told of each skill that was looked at. */
export async function readSkillFolders(
  dirs: readonly string[],
  options: { readonly onRead?: (done: number, of: number) => void } = {},
): Promise<ReadFolders> {
  const problems: FindProblem[] = [];
  const found = new Set<string>();
  for (const dir of dirs) {
    try {
      const { dirs: skillDirs, problems: told } = await findSkills(dir);
      for (const skillDir of skillDirs) found.add(skillDir);
      problems.push(...told);
    } catch (error) {
      problems.push(problemOf(dir, error));
    }
  }
  let done = 0;
  const read = await inParallel([...found], AT_ONCE, async (dir): Promise<Skill | undefined> => {
    try {
      return await readSkill(dir);
    } catch (error) {
      problems.push(problemOf(dir, error));
      return undefined;
    } finally {
      options.onRead?.(++done, found.size);
    }
  });
  return { skills: read.filter((skill) => skill !== undefined), problems };
}

function problemOf(path: string, error: unknown): FindProblem {
  const { code, message } = asToolcribError(error);
  return { path, code, message };
}
