/** A skill as it is offered to agents, wherever its files are. */
import { createHash } from "node:crypto";
import { isAbsolute } from "node:path";
import type { MissingNeeds, SkillFacts, SkillFinding, SkillManifest } from "../../model/skill.ts";

export interface OfferedSkill {
  readonly id: string;
  /** The end of its names: `skill__<key>`. */
  readonly key: string;
  readonly facts: SkillFacts;
  /** Needs that this machine does not meet. */
  readonly missing: MissingNeeds;
  readonly findings: readonly SkillFinding[];
  /** The place that it was imported from, its folder in the config, or `server:<id>`. */
  readonly from: string;
  /** The folder of its files, if they are on this machine. */
  readonly dir?: string;
  /** The prefix of its files' URIs: `skill://<name>/`. */
  readonly base: string;
  /** There for one that was imported. */
  readonly manifest?: SkillManifest;
  /** A file as it was when the skill was read. Rejects with `blocked` if it has changed since. */
  readonly read: (path: string) => Promise<Uint8Array>;
}

/** Source id of the user's own skills; those that a server offers are `toolcrib:skills:<server>`. No server can have it. */
export const SKILLS_SOURCE = "toolcrib:skills";
export function serverSkills(server: string): string {
  return `${SKILLS_SOURCE}:${server}`;
}

export function isSkillsSource(source: string): boolean {
  return source === SKILLS_SOURCE || source.startsWith(`${SKILLS_SOURCE}:`);
}

/** Of names at a skills source, which rules may use. The public ones follow `tools.naming`. */
export const SKILL_PREFIX = "skill__";
export const MAIN_FILE = "SKILL.md";

/** Of the user's own skills. A key has no dot and no `__`, so these never meet those of servers. */
export function baseUri(key: string): string {
  return `skill://${encodeURIComponent(key)}/`;
}

export function serverSkillBase(server: string, name: string): string {
  return `skill://server.${encodeURIComponent(server)}/${encodeURIComponent(name)}/`;
}

/** `<server>__<name>`; ids of servers that become the same when letters are replaced stay apart by a hash. */
export function serverSkillKey(server: string, name: string): string {
  const clean = server.replaceAll(/[^A-Za-z0-9_-]/g, "-");
  const mark = clean === server ? "" : `-${createHash("sha256").update(server).digest("hex").slice(0, 6)}`;
  return `${clean}${mark}__${name}`;
}

/** The path of its SKILL.md: the first of its files, which some write in small letters. */
export function mainFile({ facts }: OfferedSkill): string {
  return facts.files[0]?.path ?? MAIN_FILE;
}

export function fileUri({ base }: OfferedSkill, path: string): string {
  return base + path.split("/").map(encodeURIComponent).join("/");
}

/** The missing needs as text; undefined if there are none. */
export function describeMissing({ bins, anyBins, env, config, os, servers }: MissingNeeds): string | undefined {
  const parts = [
    ...bins.map((name) => `the program ${name}`),
    ...(anyBins.length === 0 ? [] : [`one of the programs ${anyBins.join(", ")}`]),
    ...env.map((name) => `the environment variable ${name}`),
    ...config.map((path) => `OpenClaw's setting ${path}`),
    ...(os.length === 0 ? [] : [`the system ${os.join(" or ")}`]),
    ...servers.map((name) => `the MCP server ${name}`),
  ];
  return parts.length === 0 ? undefined : parts.join(", ");
}

/** The command that sets up its servers; undefined for a skill that is not on this machine. */
export function setupCommand({
  manifest,
  from,
  dir,
}: Pick<OfferedSkill, "manifest" | "from" | "dir">): string | undefined {
  if (dir === undefined) return undefined;
  const source = manifest !== undefined && isAbsolute(from) ? manifest.sourcePath : from;
  return `toolcrib skill install ${/^[\w@%+=:,./~#-]+$/.test(source) ? source : JSON.stringify(source)} --with-mcp`;
}
