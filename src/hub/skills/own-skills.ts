/** The user's own skills: those that were imported into the home, and those in the folders that the config names. */
import { hash } from "node:crypto";
import { resolve } from "node:path";
import type { LoadedConfig } from "../../config/load-config.ts";
import { nearest } from "../../config/nearest.ts";
import { asToolcribError } from "../../model/errors.ts";
import type { SkillFacts, SkillFinding } from "../../model/skill.ts";
import type { FindProblem } from "../../skills/find/find-skills.ts";
import { isMet, type Machine, missingNeeds } from "../../skills/needs/check-needs.ts";
import { baseUri, describeMissing, type OfferedSkill, SKILL_PREFIX } from "../../skills/offer/offered-skill.ts";
import { skillId, toolNameOf } from "../../skills/registry/skill-id.ts";
import { readVerified } from "../../skills/offer/verified-file.ts";
import type { HubRegistry } from "./hub-registry.ts";

export interface OwnSkillsOptions {
  /** Of imported ones; they are left out if absent. */
  readonly registry?: Pick<HubRegistry, "mayHaveSkills" | "get">;
  readonly machine: Machine;
  /** Findings by digest, from before; new ones are added. */
  readonly scans: Map<string, readonly SkillFinding[]>;
  readonly warn: (message: string) => void;
}

/** Never rejects: what cannot be read is warned about and left out. */
export async function readOwnSkills(
  { config, baseDir, inCode }: LoadedConfig,
  options: OwnSkillsOptions,
): Promise<OfferedSkill[]> {
  const dirs = config.skills.dirs.map((dir) => resolve(baseDir, dir));
  // A config given in code is complete, unless it says otherwise.
  const wantsImported = config.skills.imported ?? !inCode;
  const found = [...(await ofFolders(dirs, options)), ...(wantsImported ? await ofRegistry(options) : [])];
  const byKey = new Map<string, OfferedSkill>();
  for (const skill of found) {
    const before = byKey.get(skill.key);
    if (before === undefined) byKey.set(skill.key, skill);
    else options.warn(`The skill ${skill.key} of ${skill.source} is left out: ${before.source} has one of that name.`);
  }
  const kept = [...byKey.values()];
  const offered = config.skills.gates === "hide" ? kept.filter((skill) => isReady(skill, options)) : kept;
  const names = new Set(offered.map(({ facts }) => facts.name));
  for (const [role, { skills = [] }] of Object.entries(config.roles)) {
    for (const name of skills.filter((each) => !names.has(each))) options.warn(notOffered(role, name, [...names]));
  }
  return offered;
}

function notOffered(role: string, skill: string, names: readonly string[]): string {
  const near = nearest(skill, names);
  const hint = near === undefined ? "" : ` Did you mean ${near}?`;
  return `The role ${role} names the skill ${JSON.stringify(skill)}, which is not offered.${hint}`;
}

function isReady({ facts, missing }: OfferedSkill, { warn }: OwnSkillsOptions): boolean {
  if (facts.always || isMet(missing)) return true;
  warn(`The skill ${facts.name} is hidden: ${describeMissing(missing) ?? "something"} is missing.`);
  return false;
}

async function ofRegistry({ registry: kept, machine, warn }: OwnSkillsOptions): Promise<OfferedSkill[]> {
  if (kept?.mayHaveSkills() !== true) return [];
  try {
    const registry = await kept.get();
    return (await registry.list()).map((manifest) => ({
      ...offered(manifest.id, manifest.id, manifest.facts, machine),
      findings: manifest.findings,
      source: manifest.source,
      dir: registry.fileOf(manifest, "."),
      manifest,
      read: (path) => registry.readFile(manifest, path),
    }));
  } catch (error) {
    warn(`Imported skills are not offered: ${asToolcribError(error).message}`);
    return [];
  }
}

async function ofFolders(dirs: readonly string[], { machine, scans, warn }: OwnSkillsOptions): Promise<OfferedSkill[]> {
  if (dirs.length === 0) return [];
  const [{ readSkillFolders }, { scanSkill, worst }] = await Promise.all([
    import("../../skills/find/read-folders.ts"),
    import("../../skills/scan/scan-skill.ts"),
  ]);
  const { skills, problems } = await readSkillFolders(dirs);
  for (const problem of problems) warn(problemText(problem, dirs));
  const present = new Set(skills.map(({ digest }) => digest));
  for (const digest of scans.keys()) if (!present.has(digest)) scans.delete(digest);
  const result: OfferedSkill[] = [];
  for (const skill of skills) {
    const { dir, body: _body, bytes: _bytes, ...facts } = skill;
    const findings = scans.get(facts.digest) ?? (await scanSkill(skill));
    scans.set(facts.digest, findings);
    if (worst(findings) === "refuse") {
      const reasons = findings
        .filter(({ severity }) => severity === "refuse")
        .map(({ file, message }) => `${file}: ${message}`);
      warn(`The skill ${facts.name} in ${dir} is withheld: ${reasons.join("; ")}`);
      continue;
    }
    const id = skillId(facts.name, facts.dialect);
    result.push({
      ...offered(`${id}@${placeOf(dir)}`, id, facts, machine),
      findings,
      source: dir,
      dir,
      read: (path) => readVerified(dir, facts.files, path),
    });
  }
  return result;
}

/** Two folders may have skills of one name. The path itself would not fit into an address. */
function placeOf(dir: string): string {
  return hash("sha256", dir).slice(0, 8);
}

function problemText({ path, code, message }: FindProblem, dirs: readonly string[]): string {
  if (dirs.includes(path) && code === "not_found") return `The folder ${path} of skills.dirs is not there.`;
  if (dirs.includes(path) && code === "invalid_arguments") return `Of skills.dirs: ${message}`;
  // These are about looking, and name their folder themselves.
  if (["unreadable", "too_deep", "too_many", "nested"].includes(code)) return message;
  return `A skill in ${path} is left out: ${message}`;
}

function offered(
  id: string,
  skillIdOf: string,
  facts: SkillFacts,
  machine: Machine,
): Pick<OfferedSkill, "id" | "key" | "facts" | "missing" | "base"> {
  const key = toolNameOf(skillIdOf).slice(SKILL_PREFIX.length);
  return { id, key, facts, missing: missingNeeds(facts.needs, machine), base: baseUri(key) };
}
