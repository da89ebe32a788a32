/** Gets the skills of one source that are to be installed. */
import { basename } from "node:path";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import type { Skill } from "../../model/skill.ts";
import { findSkills } from "../../skills/find/find-skills.ts";
import { type Fetched, fetchSkills } from "../../skills/fetch/fetch-skills.ts";
import { readSkill } from "../../skills/read/read-skill.ts";

export interface WantedSource {
  readonly source: string;
  /** Where a relative source starts. */
  readonly cwd: string;
  /** What package.json calls it: the skill of that name, if the source holds several. */
  readonly name?: string;
}

export interface ReadOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
  /** Names of skills or of their folders. */
  readonly select?: readonly string[];
  readonly all?: boolean;
}

export interface ReadSource {
  readonly fetched: Fetched;
  readonly skills: readonly Skill[];
  readonly warnings: readonly string[];
}

/** The caller disposes what was fetched. */
export async function readSource(wanted: WantedSource, options: ReadOptions): Promise<ReadSource> {
  const { env, signal } = options;
  const fetched = await fetchSkills(wanted.source, { cwd: wanted.cwd, env, signal });
  try {
    const { skills, problems } = await readAll(fetched.dir);
    const told = problems.map(({ path, message }) => `${shortPath(path, fetched)}: ${message}`);
    if (skills.length === 0) {
      throw new ToolcribError("not_found", `${fetched.source} holds no skill that can be read.`, {
        hint: told.length === 0 ? "A skill is a folder with a SKILL.md." : told.join("\n  "),
      });
    }
    return { fetched, ...choose(skills, told, fetched.source, wanted.name, options) };
  } catch (error) {
    await fetched.dispose();
    throw error;
  }
}

async function readAll(dir: string): Promise<{ skills: Skill[]; problems: { path: string; message: string }[] }> {
  const found = await findSkills(dir);
  const problems: { path: string; message: string }[] = [...found.problems];
  const skills: Skill[] = [];
  for (const path of found.dirs) {
    try {
      skills.push(await readSkill(path));
    } catch (error) {
      problems.push({ path, message: asToolcribError(error).message });
    }
  }
  return { skills, problems };
}

function choose(
  skills: readonly Skill[],
  told: readonly string[],
  source: string,
  name: string | undefined,
  { select = [], all = false }: ReadOptions,
): Pick<ReadSource, "skills" | "warnings"> {
  if (name !== undefined) return declared(skills, name, source);
  if (select.length > 0) {
    const missing = select.filter((each) => !skills.some((skill) => isCalled(skill, each)));
    if (missing.length > 0) {
      throw new ToolcribError("not_found", `${source} holds no skill called ${missing.join(", ")}.`, {
        hint: `It holds ${names(skills)}.`,
      });
    }
    return { skills: skills.filter((skill) => select.some((each) => isCalled(skill, each))), warnings: [] };
  }
  if (skills.length === 1 || all) return { skills, warnings: told };
  throw new ToolcribError("invalid_arguments", `${source} holds ${skills.length} skills: ${names(skills)}.`, {
    hint: "--select a,b takes some of them, --all takes all.",
    details: { skills: skills.map((skill) => skill.name) },
  });
}

function declared(skills: readonly Skill[], name: string, source: string): Pick<ReadSource, "skills" | "warnings"> {
  const named = skills.filter((skill) => isCalled(skill, name));
  const [first] = skills;
  if (named.length > 0) return { skills: named.slice(0, 1), warnings: [] };
  if (first !== undefined && skills.length === 1) {
    return { skills, warnings: [`package.json calls the skill of ${source} ${name}; it calls itself ${first.name}.`] };
  }
  throw new ToolcribError("not_found", `${source} holds no skill called ${name}.`, {
    hint: `It holds ${names(skills)}.`,
  });
}

function isCalled(skill: Skill, name: string): boolean {
  return skill.name === name || basename(skill.dir) === name;
}

const SHOWN = 30;

function names(skills: readonly Skill[]): string {
  const shown = skills.slice(0, SHOWN).map((skill) => skill.name);
  return skills.length > SHOWN ? `${shown.join(", ")} and ${skills.length - SHOWN} more` : shown.join(", ");
}

/** A temporary folder means nothing to anybody. */
function shortPath(path: string, { dir, temporary }: Fetched): string {
  return temporary && path.startsWith(dir) ? path.slice(dir.length).replace(/^[/\\]/, "") || "." : path;
}
