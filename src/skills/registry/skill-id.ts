/** Ids of imported skills. An id is also the name of a folder, so it has safe characters only. */
import { createHash } from "node:crypto";
import type { SkillDialect } from "../../model/skill.ts";

/** As long as the standard lets a name be. */
const MAX_SLUG_LENGTH = 64;
const MAX_TOOL_NAME_LENGTH = 64;
const HASH_LENGTH = 8;

const OPENCLAW_ID_PREFIX = "openclaw-skill-";
const ID_PREFIX = "skill-";

/** `skill-<name>` or `openclaw-skill-<name>`; the same for every skill of that name and dialect. */
export function skillId(name: string, dialect: SkillDialect): string {
  return (dialect === "openclaw" ? OPENCLAW_ID_PREFIX : ID_PREFIX) + slugOf(name);
}

/** The id of a further skill of the same name: `skill-<name>-2`. */
export function numberedId(id: string, number: number): string {
  return `${id}-${number}`;
}

/** The public name of the tool that a skill with this id is: `skill__<name>`. */
export function toolNameOf(id: string): string {
  const tail = id.startsWith(OPENCLAW_ID_PREFIX) ? id.slice(OPENCLAW_ID_PREFIX.length) : id.slice(ID_PREFIX.length);
  const longest = MAX_TOOL_NAME_LENGTH - "skill__".length;
  // A double underscore separates a server's id from the name of its skill.
  const plain = tail.replaceAll(/_{2,}/g, "_");
  return `skill__${plain === tail ? shortened(tail, tail, longest) : `${plain.slice(0, longest - HASH_LENGTH - 1)}-${hashOf(tail)}`}`;
}

/** Case and blanks may go without a trace; whatever else is lost is made up for by a hash of the whole name. */
function slugOf(name: string): string {
  const plain = name.trim().toLowerCase().replaceAll(/\s+/g, "-");
  const slug = plain.replaceAll(/[^a-z0-9_-]+/g, "-").replaceAll(/^-+|(?<!-)-+$/g, "");
  if (slug === "") return hashOf(name);
  if (slug === plain) return shortened(slug, name, MAX_SLUG_LENGTH);
  return `${slug.slice(0, MAX_SLUG_LENGTH - HASH_LENGTH - 1)}-${hashOf(name)}`;
}

function shortened(slug: string, name: string, longest: number): string {
  return slug.length <= longest ? slug : `${slug.slice(0, longest - HASH_LENGTH - 1)}-${hashOf(name)}`;
}

function hashOf(name: string): string {
  return createHash("sha256").update(name).digest("hex").slice(0, HASH_LENGTH);
}

/** Whether it was imported as a skill of OpenClaw. */
export function isOpenclawId(id: string): boolean {
  return id.startsWith(OPENCLAW_ID_PREFIX);
}

/** Whether a text from a file can be an id, and so a part of a path. */
export function isSkillId(text: string): boolean {
  return /^(openclaw-)?skill-[a-z0-9_-]{1,80}$/.test(text);
}
