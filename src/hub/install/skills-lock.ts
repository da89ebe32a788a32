/** `toolcrib-skills.lock`: which state of which skill was installed, for colleagues and for the next install. */
import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { z } from "zod";
import { ToolcribError } from "../../model/errors.ts";
import type { Skill } from "../../model/skill.ts";

export const LOCK_NAME = "toolcrib-skills.lock";

const LockedSkillSchema = z.object({
  /** A path is relative to the lock file where it lies beside or below it. */
  source: z.string(),
  resolved: z.string().optional(),
  version: z.string(),
  digest: z.string(),
  servers: z.array(z.object({ id: z.string(), package: z.string().optional() })),
  clients: z.array(z.string()),
});

const LockSchema = z.object({ lockfileVersion: z.literal(1), skills: z.record(z.string(), LockedSkillSchema) });

export type LockedSkill = z.output<typeof LockedSkillSchema>;
export type SkillsLock = Readonly<Record<string, LockedSkill>>;

export async function readSkillsLock(file: string): Promise<SkillsLock> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw new ToolcribError("invalid_config", `${file} cannot be read.`, { cause: error });
  });
  return parseSkillsLock(file, text);
}

export function parseSkillsLock(file: string, text: string | null): SkillsLock {
  if (text === null || text.trim() === "") return {};
  try {
    return LockSchema.parse(JSON.parse(text)).skills;
  } catch (cause) {
    throw new ToolcribError("invalid_config", `${file} is no lock file that this Toolcrib can read.`, {
      hint: "Bring back an earlier version of it, or remove it and install again.",
      cause,
    });
  }
}

/** null for one without skills: then there is no file. */
export function renderSkillsLock(skills: SkillsLock): string | null {
  const names = Object.keys(skills).toSorted();
  if (names.length === 0) return null;
  const sorted = Object.fromEntries(names.map((name) => [name, skills[name]]));
  return `${JSON.stringify({ lockfileVersion: 1, skills: sorted }, null, 2)}\n`;
}

/** The source as it stands in the lock file: what lies below the file's folder is written relative to it. */
export function lockedSource(source: string, lockFile: string): string {
  if (!isAbsolute(source)) return source;
  const way = relative(dirname(lockFile), source);
  if (way === "") return ".";
  return way.startsWith("..") || isAbsolute(way) ? source : `./${way.split(sep).join("/")}`;
}

/** The other way round. */
export function sourceFromLock(source: string, lockFile: string): string {
  return source === "." || source.startsWith("./") ? resolve(dirname(lockFile), source) : source;
}

/** What differs from the lock file; undefined if nothing does, or if it does not speak of this skill. */
export function lockedDifference(
  lock: SkillsLock,
  lockFile: string,
  { skill, source }: { readonly skill: Skill; readonly source: string },
): string | undefined {
  const locked = Object.hasOwn(lock, skill.name) ? lock[skill.name] : undefined;
  if (locked === undefined || locked.digest === skill.digest) return undefined;
  if (sourceFromLock(locked.source, lockFile) !== source) return undefined;
  return `${skill.name} from ${locked.source} has changed: ${short(locked.digest)} then, ${short(skill.digest)} now`;
}

function short(digest: string): string {
  return digest.slice(0, "sha256:".length + 12);
}

/** Beside package.json for a project, else beside Toolcrib's config. */
export function lockFileIn(folder: string): string {
  return join(folder, LOCK_NAME);
}
