/** Skills as the contract of the doors shows them. */
import type { ScannedSkill, SkillDetail, SkillInfo } from "../../contract/skill.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { SkillFinding, SkillNeeds, SkillWarning } from "../../model/skill.ts";
import type { Candidate } from "../../skills/find/look-at.ts";
import { isMet } from "../../skills/needs/check-needs.ts";
import { fileUri, mainFile, type OfferedSkill } from "../../skills/offer/offered-skill.ts";
import { catalogEntry } from "../../skills/offer/prompt-catalog.ts";
import { satisfiedBy } from "../../skills/servers/matching.ts";

export interface SkillSurroundings {
  /** The server that it comes from; undefined for the user's own. */
  readonly server: string | undefined;
  /** Of the config. */
  readonly servers: readonly ServerSpec[];
}

export function skillInfo(skill: OfferedSkill, { server, servers }: SkillSurroundings): SkillInfo {
  const { facts, manifest } = skill;
  const version = manifest?.version ?? facts.version;
  const author = manifest?.author ?? facts.author;
  return {
    id: skill.id,
    name: facts.name,
    description: facts.description,
    source: skill.source,
    kind: manifest !== undefined ? "imported" : server !== undefined ? "server" : "folder",
    dialect: facts.dialect,
    version,
    author,
    removable: manifest !== undefined,
    ...(manifest === undefined ? {} : { importedAt: manifest.importedAt }),
    requires: needs(facts.needs),
    missing: needs(skill.missing),
    dependenciesMet: isMet(skill.missing),
    servers: facts.servers.map((each) => ({ name: each.name, present: satisfiedBy(each, servers) !== undefined })),
    warnings: facts.warnings.map(shownWarning),
    findings: skill.findings.map(shownFinding),
  };
}

export interface SkillUse {
  /** Public names of what it offers to whoever asks. */
  readonly tools: readonly string[];
  readonly injectedFor: readonly string[];
}

export function skillDetail(skill: OfferedSkill, surroundings: SkillSurroundings, use: SkillUse): SkillDetail {
  return {
    ...skillInfo(skill, surroundings),
    uri: fileUri(skill, mainFile(skill)),
    files: skill.facts.files.map(({ path, size }) => ({ path, size })),
    tools: [...use.tools],
    injectedFor: [...use.injectedFor],
    promptEntry: catalogEntry(skill),
  };
}

export function scannedSkill({ skill, findings, missing }: Candidate, status: ScannedSkill["status"]): ScannedSkill {
  return {
    name: skill.name,
    description: skill.description,
    path: skill.dir,
    dialect: skill.dialect,
    status,
    requires: needs(skill.needs),
    missing: needs(missing),
    dependenciesMet: isMet(missing),
    otherOs: missing.os.length > 0,
    warnings: skill.warnings.map(shownWarning),
    findings: findings.map(shownFinding),
  };
}

export function shownWarning({ code, message, line }: SkillWarning): ScannedSkill["warnings"][number] {
  return { code, message, line };
}

function shownFinding({ code, severity, message, file, line }: SkillFinding): ScannedSkill["findings"][number] {
  return { code, severity, message, file, line };
}

function needs({ bins, anyBins, env, config, os }: SkillNeeds): ScannedSkill["requires"] {
  return { bins: [...bins], anyBins: [...anyBins], env: [...env], config: [...config], os: [...os] };
}
