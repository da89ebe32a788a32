/** The manifests of imported skills. */
import type {
  LocatedSkill,
  MissingNeeds,
  Skill,
  SkillDialect,
  SkillFacts,
  SkillFinding,
  SkillManifest,
  SkillSource,
} from "../../model/skill.ts";
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
    from: source,
    sourcePath: skill.dir,
    findings,
    missing,
  });
  return { ...record, keywords: ["imported", ...record.keywords], importedAt, digest, dir, facts };
}

interface RecordParts {
  readonly id: string;
  /** Public name of the tool that the skill is, if it is one. */
  readonly tool: string;
  readonly from: string;
  readonly sourcePath: string;
  readonly findings: readonly SkillFinding[];
  readonly missing: MissingNeeds;
}

/** Of a skill that brings none: a piece of a puzzle. */
export const DEFAULT_ICON = "\u{1F9E9}";

const SOURCES: Readonly<Record<SkillDialect, SkillSource>> = {
  "agent-skills": "agentskills",
  "claude-code": "claude-code",
  openclaw: "openclaw",
};

export function sourceOf({ dialect }: Pick<SkillFacts, "dialect">): SkillSource {
  return SOURCES[dialect];
}

export function recordOf(facts: SkillFacts, { tool, missing, ...parts }: RecordParts): SkillRecord {
  const { dialect, dispatch, disableModelInvocation, description } = facts;
  const source = sourceOf(facts);
  return {
    id: parts.id,
    name: facts.name,
    version: facts.version ?? "1.0.0",
    author: facts.author ?? (dialect === "openclaw" ? "OpenClaw Community" : "unknown"),
    description,
    category: "tools",
    icon: facts.emoji ?? DEFAULT_ICON,
    // A skill that models may not invoke is not a tool and dispatches to none.
    tools: disableModelInvocation ? [] : [{ name: dispatch?.tool ?? tool, description }],
    keywords: [...new Set([source, ...facts.needs.os])],
    source,
    from: parts.from,
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
