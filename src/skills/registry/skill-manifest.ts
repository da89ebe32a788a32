/** The manifests of imported skills. */
import type { LocatedSkill, MissingNeeds, Skill, SkillFacts, SkillFinding, SkillManifest } from "../../model/skill.ts";
import { isMet } from "../needs.ts";
import { toolNameOf } from "./skill-id.ts";

/** A skill that was read, and what was found out about it. */
export interface SkillToPut {
  readonly skill: LocatedSkill;
  /** As it was given; a folder as an absolute path. */
  readonly source: string;
  readonly findings: readonly SkillFinding[];
  readonly missing: MissingNeeds;
}

interface ManifestPlace {
  readonly id: string;
  /** Relative to the registry's folder. */
  readonly dir: string;
  readonly importedAt: string;
}

/** A manifest without what only an imported skill has. */
export type SkillRecord = Omit<SkillManifest, "importedAt" | "dir">;

export function manifestOf({ skill, source, findings, missing }: SkillToPut, place: ManifestPlace): SkillManifest {
  const { id, dir, importedAt } = place;
  const { digest, facts, ...record } = recordOf(factsOf(skill), {
    id,
    tool: toolNameOf(id),
    source,
    sourcePath: skill.dir,
    findings,
    missing,
  });
  return { ...record, importedAt, digest, dir, facts };
}

interface RecordParts {
  readonly id: string;
  /** Public name of the tool that the skill is, if it is one. */
  readonly tool: string;
  readonly source: string;
  readonly sourcePath: string;
  readonly findings: readonly SkillFinding[];
  readonly missing: MissingNeeds;
}

export function recordOf(facts: SkillFacts, { tool, missing, ...parts }: RecordParts): SkillRecord {
  const { dialect, dispatch, disableModelInvocation } = facts;
  return {
    id: parts.id,
    name: facts.name,
    version: facts.version ?? "1.0.0",
    author: facts.author ?? (dialect === "openclaw" ? "OpenClaw Community" : "unknown"),
    description: facts.description,
    category: "tools",
    icon: facts.emoji,
    // A skill that models may not invoke is not a tool and dispatches to none.
    tools: disableModelInvocation ? [] : [dispatch?.tool ?? tool],
    keywords: [...new Set([dialect, ...facts.needs.os])],
    source: parts.source,
    sourcePath: parts.sourcePath,
    warnings: facts.warnings,
    findings: parts.findings,
    dependenciesMet: isMet(missing),
    missing,
    digest: facts.digest,
    facts,
  };
}

function factsOf(skill: LocatedSkill): SkillFacts {
  // One that was just read has its texts too.
  const { dir: _dir, body: _body, bytes: _bytes, ...facts }: LocatedSkill & Partial<Skill> = skill;
  return facts;
}
