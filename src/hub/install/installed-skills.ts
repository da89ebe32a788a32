/**
 * The two records of installed skills. `$TOOLCRIB_HOME/installed.json` has what was put where, so that exactly that is removed.
 * `toolcrib-skills.lock` has the version of each skill, for colleagues and for the next install.
 */
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { z } from "zod";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Skill } from "../../model/skill.ts";
import { readTextIfPresent } from "../clients/client-files.ts";

const Scope = z.enum(["user", "project"]);

const InstalledSkillSchema = z.object({
  name: z.string(),
  source: z.string(),
  digest: z.string(),
  /** The install that wrote it. */
  run: z.string(),
  /** Copies of the skill in clients' folders. */
  folders: z.array(
    z.object({
      clients: z.array(z.string()),
      path: z.string(),
      digest: z.string(),
      /** The user's own folder that was there: a copy of it, or the target of a link. */
      replaced: z
        .object({ copy: z.string() })
        .or(z.object({ link: z.string() }))
        .optional(),
    }),
  ),
  servers: z.array(
    z.object({
      id: z.string(),
      /** Whether the install put it into the config; else it was there. */
      added: z.boolean(),
      /** The config that it is in. */
      file: z.string(),
      secrets: z.array(
        z.object({ name: z.string(), stored: z.enum(["keychain", "file"]), file: z.string().optional() }),
      ),
    }),
  ),
  /** Servers in files of clients. */
  entries: z.array(z.object({ client: z.string(), scope: Scope, file: z.string(), ids: z.array(z.string()) })),
  /** The copy that servers of the skill run from, where they do. */
  home: z.string().optional(),
  lockFile: z.string(),
});

const InstalledSchema = z.object({ version: z.literal(1), skills: z.record(z.string(), InstalledSkillSchema) });

export type InstalledSkill = z.output<typeof InstalledSkillSchema>;
/** By id of the skill. */
export type Installed = Readonly<Record<string, InstalledSkill>>;

export function installedFile(home: string): string {
  return join(home, "installed.json");
}

export async function readInstalled(home: string): Promise<Installed> {
  const file = installedFile(home);
  return parseInstalled(file, await readTextIfPresent(file));
}

/** Throws for a damaged file: overwriting it would lose the record of what to remove. */
export function parseInstalled(file: string, text: string | null): Installed {
  const damaged = {
    message: `${file}, where Toolcrib keeps what it installed, is damaged.`,
    hint: "Move it away. Then remove what was installed before yourself.",
  };
  return parseRecords(text, InstalledSchema, damaged);
}

export function renderInstalled(skills: Installed): string | null {
  return renderRecords({ version: 1 }, skills);
}

/** Changes the records as part of a change set. */
export async function editInstalled(
  changes: ChangeSet,
  home: string,
  edit: (installed: Installed) => Installed,
): Promise<void> {
  const file = installedFile(home);
  await changes.editFile(file, (text) => renderInstalled(edit(parseInstalled(file, text))));
}

/** The record of this key; undefined for a name such as `constructor` too, which every object has. */
export function recordOf<Entry>(records: Readonly<Record<string, Entry>>, key: string): Entry | undefined {
  return Object.hasOwn(records, key) ? records[key] : undefined;
}

function parseRecords<Entry>(
  text: string | null,
  schema: z.ZodType<{ skills: Record<string, Entry> }>,
  { message, hint }: { readonly message: string; readonly hint: string },
): Readonly<Record<string, Entry>> {
  if (text === null || text.trim() === "") return {};
  try {
    return schema.parse(JSON.parse(text)).skills;
  } catch (cause) {
    throw new ToolcribError("invalid_config", message, { hint, cause });
  }
}

/** Sorted; null without any: then there is no file. */
function renderRecords(version: object, records: Readonly<Record<string, unknown>>): string | null {
  const keys = Object.keys(records).toSorted();
  if (keys.length === 0) return null;
  const skills = Object.fromEntries(keys.map((key) => [key, records[key]]));
  return `${JSON.stringify({ ...version, skills }, null, 2)}\n`;
}

const LOCK_NAME = "toolcrib-skills.lock";

const LockedSkillSchema = z.object({
  /** A path beside or below the lock file is relative to it. */
  source: z.string(),
  resolved: z.string().optional(),
  version: z.string(),
  digest: z.string(),
  servers: z.array(z.object({ id: z.string(), package: z.string().optional() })),
  clients: z.array(z.string()),
});

const LockSchema = z.object({ lockfileVersion: z.literal(1), skills: z.record(z.string(), LockedSkillSchema) });

export type LockedSkill = z.output<typeof LockedSkillSchema>;
type SkillsLock = Readonly<Record<string, LockedSkill>>;

export async function readSkillsLock(file: string): Promise<SkillsLock> {
  return parseSkillsLock(file, await readTextIfPresent(file));
}

export function parseSkillsLock(file: string, text: string | null): SkillsLock {
  const damaged = {
    message: `${file} is not a lock file that this Toolcrib can read.`,
    hint: "Bring back an earlier version of it, or remove it and install again.",
  };
  return parseRecords(text, LockSchema, damaged);
}

export function renderSkillsLock(skills: SkillsLock): string | null {
  return renderRecords({ lockfileVersion: 1 }, skills);
}

/** The source as written in the lock file: a path below the file's folder is relative. */
export function lockedSource(source: string, lockFile: string): string {
  if (!isAbsolute(source)) return source;
  const way = relative(dirname(lockFile), source);
  if (way === "") return ".";
  return way.startsWith("..") || isAbsolute(way) ? source : `./${way.split(sep).join("/")}`;
}

export function sourceFromLock(source: string, lockFile: string): string {
  return source === "." || source.startsWith("./") ? resolve(dirname(lockFile), source) : source;
}

/** The difference from the lock file; undefined if there is none, or the file does not have this skill. */
export function lockedDifference(
  lock: SkillsLock,
  lockFile: string,
  { skill, source }: { readonly skill: Skill; readonly source: string },
): string | undefined {
  const locked = recordOf(lock, skill.name);
  if (locked === undefined || locked.digest === skill.digest) return undefined;
  if (sourceFromLock(locked.source, lockFile) !== source) return undefined;
  return `${skill.name} from ${locked.source} has changed: ${shortDigest(locked.digest)} then, ${shortDigest(skill.digest)} now`;
}

function shortDigest(digest: string): string {
  return digest.slice(0, "sha256:".length + 12);
}

/** Beside package.json for a project, else beside Toolcrib's config. */
export function lockFileIn(folder: string): string {
  return join(folder, LOCK_NAME);
}
