/** Finds the folders that hold a SKILL.md below a folder, within bounds. */
import type { Dirent } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { asToolcribError, ToolcribError, systemErrorCode } from "../../model/errors.ts";
import type { Skill } from "../../model/skill.ts";
import { readSkill } from "../read/read-skill.ts";
import { mapLimit } from "../../base/async.ts";
import { isInside } from "../../files/path-safety.ts";

export interface FindProblem {
  readonly path: string;
  /** `unreadable`, `too_deep`, `too_many`, `nested` */
  readonly code: string;
  readonly message: string;
}

interface FoundSkills {
  /** Absolute, in order of path. */
  readonly dirs: string[];
  readonly problems: FindProblem[];
}

interface FindOptions {
  /** How many folders below the root a skill may be; 6 if absent. */
  readonly depth?: number;
  /** How many folders are searched; 100,000 by default. */
  readonly folders?: number;
}

/** `plugins/<plugin>/.claude/skills/<group>/<skill>` is the deepest that is seen in the wild. */
const MAX_DEPTH = 6;
const MAX_FOLDERS = 100_000;
const FIND_CONCURRENCY = 32;

/** Folders of version control and package managers. */
const SKIPPED_FOLDERS = new Set([".git", ".hg", ".svn", "node_modules"]);

interface Folder {
  readonly path: string;
  /** Without links, so that a link back up or a second link to one folder ends there. */
  readonly real: string;
  /** Reached through a link: searched only if it is a skill itself or lies below the root. */
  readonly linked: boolean;
  /** The skill that it belongs to as one of its folders. */
  readonly partOf?: string;
}

/** Plugins have a SKILL.md at the top and their skills in a folder of this name. */
const SKILLS_FOLDER = "skills";

/**
 * The root itself may be a skill, and may be named by its SKILL.md. Folders below a skill belong to it; a further SKILL.md
 * there is a separate skill only in a folder called `skills`, and is reported elsewhere. The files of the outer skill
 * include those of the inner ones either way. Rejects with `not_found` or `invalid_arguments` for a missing folder.
 */
export async function findSkills(root: string, options: FindOptions = {}): Promise<FoundSkills> {
  const given = resolve(root);
  const start = await folderOf(given);
  if (start !== given) return { dirs: [start], problems: [] };
  const real = await realpath(start);
  const search = new SkillSearch(real, options.folders ?? MAX_FOLDERS);
  let level: Folder[] = [{ path: start, real, linked: false }];
  const depth = options.depth ?? MAX_DEPTH;
  for (let below = 0; level.length > 0; below++) {
    if (below > depth) {
      search.reportTooDeep(start, depth, level);
      break;
    }
    level = (await mapLimit(level, FIND_CONCURRENCY, (folder) => search.visit(folder))).flat();
  }
  return { dirs: search.dirs.toSorted(inOrder), problems: [...search.problems, ...search.nested()] };
}

class SkillSearch {
  readonly dirs: string[] = [];
  readonly problems: FindProblem[] = [];
  readonly #root: string;
  readonly #maxFolders: number;
  /** Real paths. */
  readonly #seen = new Set<string>();
  /** Folders with a SKILL.md that count as part of a skill, by that skill. */
  readonly #nested = new Map<string, string[]>();

  constructor(root: string, maxFolders: number) {
    this.#root = root;
    this.#maxFolders = maxFolders;
  }

  /** Gives the folders to look into next. */
  async visit(folder: Folder): Promise<Folder[]> {
    const { path, real, linked, partOf } = folder;
    if (this.#seen.has(real) || this.#isFull(path)) return [];
    this.#seen.add(real);
    let entries: Dirent[];
    try {
      entries = await readdir(path, { withFileTypes: true });
    } catch (error) {
      // Reading the skill reports it.
      if (partOf === undefined) this.#reportUnreadable(path, error);
      return [];
    }
    // In any case: most platforms have file systems that ignore it.
    const isSkill = entries.some((entry) => entry.name.toLowerCase() === "skill.md" && !entry.isDirectory());
    if (isSkill && partOf !== undefined) this.#nested.set(partOf, [...(this.#nested.get(partOf) ?? []), path]);
    else if (isSkill) this.dirs.push(path);
    // A skill elsewhere is often linked in on purpose; a whole tree elsewhere is not what was pointed at.
    if (linked && (isSkill || !isInside(this.#root, real))) return [];
    const owner = partOf ?? (isSkill ? path : undefined);
    const folders = await Promise.all(entries.map((entry) => asFolder(folder, entry)));
    return folders.flatMap((each) => {
      if (each === undefined) return [];
      if (owner === undefined || basename(each.path) === SKILLS_FOLDER) return [each];
      // Links are nothing that belongs to a skill.
      return each.linked ? [] : [{ ...each, partOf: owner }];
    });
  }

  reportTooDeep(start: string, depth: number, level: readonly Folder[]): void {
    const [first] = level.filter(({ partOf }) => partOf === undefined);
    if (first === undefined) return;
    const message = `Folders more than ${depth} below ${start} were not searched, starting with ${first.path}.`;
    this.problems.push({ path: start, code: "too_deep", message });
  }

  nested(): FindProblem[] {
    const byPath = [...this.#nested].toSorted(([a], [b]) => inOrder(a, b));
    return byPath.map(([path, inner]) => {
      const [first = ""] = inner.toSorted(inOrder);
      const count = inner.length === 1 ? "1 more skill" : `${inner.length} more skills`;
      const message =
        `${path} is a skill and contains ${count}, read as part of it: ${relative(path, first)}` +
        `${inner.length === 1 ? "" : " first"}. Name that folder to use it separately.`;
      return { path, code: "nested", message };
    });
  }

  #isFull(path: string): boolean {
    if (this.#seen.size < this.#maxFolders) return false;
    if (!this.problems.some(({ code }) => code === "too_many")) {
      const message = `Only ${this.#maxFolders} folders were searched. Name a folder closer to the skills.`;
      this.problems.push({ path, code: "too_many", message });
    }
    return true;
  }

  #reportUnreadable(path: string, error: unknown): void {
    const reason = systemErrorCode(error) ?? "unknown reason";
    // Gone since it was listed.
    if (reason === "ENOENT") return;
    this.problems.push({ path, code: "unreadable", message: `${path} cannot be read (${reason}).` });
  }
}

async function asFolder(parent: Folder, entry: Dirent): Promise<Folder | undefined> {
  if (SKIPPED_FOLDERS.has(entry.name)) return undefined;
  const path = join(parent.path, entry.name);
  if (entry.isDirectory()) return { path, real: join(parent.real, entry.name), linked: false };
  if (!entry.isSymbolicLink()) return undefined;
  try {
    const real = await realpath(path);
    return (await stat(real)).isDirectory() ? { path, real, linked: true } : undefined;
  } catch {
    // It leads nowhere, or round in a circle.
    return undefined;
  }
}

async function folderOf(root: string): Promise<string> {
  const found = await stat(root).catch((error: unknown) => {
    const code = systemErrorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR")
      throw new ToolcribError("not_found", `The folder ${root} does not exist.`);
    throw new ToolcribError("invalid_arguments", `${root} cannot be read (${code ?? "unknown reason"}).`);
  });
  if (found.isDirectory()) return root;
  if (basename(root).toLowerCase() === "skill.md") return dirname(root);
  throw new ToolcribError("invalid_arguments", `${root} is not a folder.`, {
    hint: "Name the folder of a skill or a folder that contains skills. For an archive, use `toolcrib skill install`.",
  });
}

/** By folder after folder, so that `a/z` comes before `a-b`. */
function inOrder(a: string, b: string): number {
  const [left, right] = [a.replaceAll(sep, "\u0000"), b.replaceAll(sep, "\u0000")];
  return left < right ? -1 : left > right ? 1 : 0;
}

interface ReadSkills<Read> {
  /** In order of the folders given, then of path. */
  readonly skills: Read[];
  /** Of finding and of reading. `path` is the folder; the code is `unreadable` and the like, or of the error table. */
  readonly problems: FindProblem[];
}

const READ_CONCURRENCY = 8;

/** Never rejects: a missing folder is reported as a problem, and so is what `read` rejects with. */
export function readSkillFolders(dirs: readonly string[]): Promise<ReadSkills<Skill>>;
export function readSkillFolders<Read extends object>(
  dirs: readonly string[],
  read: (dir: string) => Promise<Read>,
): Promise<ReadSkills<Read>>;
export async function readSkillFolders(
  dirs: readonly string[],
  read: (dir: string) => Promise<object> = readSkill,
): Promise<ReadSkills<object>> {
  const problems: FindProblem[] = [];
  const found = new Set<string>();
  for (const dir of dirs) {
    try {
      const search = await findSkills(dir);
      for (const skillDir of search.dirs) found.add(skillDir);
      problems.push(...search.problems);
    } catch (error) {
      problems.push(problemOf(dir, error));
    }
  }
  const skills = await mapLimit([...found], READ_CONCURRENCY, async (dir): Promise<object | undefined> => {
    try {
      return await read(dir);
    } catch (error) {
      problems.push(problemOf(dir, error));
      return undefined;
    }
  });
  return { skills: skills.filter((skill) => skill !== undefined), problems };
}

function problemOf(path: string, error: unknown): FindProblem {
  const { code, message } = asToolcribError(error);
  return { path, code, message };
}
