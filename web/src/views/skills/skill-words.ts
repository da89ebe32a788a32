/** Names for the parts of a skill on the page. */
import type { ScannedSkill, SkillInfo } from "../../../../src/contract/skill-schemas.ts";
import { type Message, t } from "../../messages/messages.ts";
import { skillWords } from "../../messages/skill-words.ts";

type Tone = "neutral" | "accent" | "ok" | "warn" | "bad" | "info";
export type Needs = SkillInfo["requires"];
export type Finding = SkillInfo["findings"][number];

export const KIND_WORDS: Readonly<Record<SkillInfo["kind"], Message>> = {
  imported: skillWords.imported,
  folder: skillWords.folder,
  server: skillWords.server,
};

export const KIND_TITLES: Readonly<Record<SkillInfo["kind"], Message>> = {
  imported: skillWords.importedMeaning,
  folder: skillWords.folderMeaning,
  server: skillWords.serverMeaning,
};

const SOURCE_WORDS: Readonly<Record<string, string>> = {
  openclaw: "OpenClaw",
  agentskills: "Agent Skills",
  "claude-code": "Claude Code",
};

export function sourceWord(source: string): string {
  return SOURCE_WORDS[source] ?? source;
}

export const STATUS_WORDS: Readonly<
  Record<ScannedSkill["status"], { readonly word: Message; readonly tone: Tone; readonly meaning: Message }>
> = {
  new: { word: skillWords.statusNew, tone: "ok", meaning: skillWords.statusNewMeaning },
  updated: { word: skillWords.statusUpdated, tone: "info", meaning: skillWords.statusUpdatedMeaning },
  unchanged: { word: skillWords.unchanged, tone: "neutral", meaning: skillWords.unchangedMeaning },
  refused: { word: skillWords.severityRefuse, tone: "bad", meaning: skillWords.statusRefusedMeaning },
  conflict: { word: skillWords.nameTaken, tone: "warn", meaning: skillWords.nameTakenMeaning },
};

export const SEVERITY_WORDS: Readonly<Record<Finding["severity"], { readonly word: Message; readonly tone: Tone }>> = {
  refuse: { word: skillWords.severityRefuse, tone: "bad" },
  warn: { word: skillWords.severityWarn, tone: "warn" },
  note: { word: skillWords.severityNote, tone: "neutral" },
};

const SEVERITIES = ["refuse", "warn", "note"] as const;

/** The worst first, in the order of the files otherwise. */
export function byWeight(findings: readonly Finding[]): readonly Finding[] {
  return SEVERITIES.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
}

export function worst(findings: readonly Finding[]): Finding["severity"] | undefined {
  return SEVERITIES.find((severity) => findings.some((finding) => finding.severity === severity));
}

const OS_WORDS: Readonly<Record<string, string>> = { darwin: "macOS", linux: "Linux", win32: "Windows" };

export function osText(os: readonly string[]): string {
  return os.map((each) => OS_WORDS[each] ?? each).join(", ");
}

export interface Need {
  readonly kind: string;
  readonly name: string;
  readonly found: boolean;
}

/** Every requirement on its own; of programs that do for each other, all names are one requirement. */
export function needsOf(requires: Needs, missing: Needs): readonly Need[] {
  const each = (kind: string, names: readonly string[], lacking: readonly string[]): Need[] =>
    names.map((name) => ({ kind, name, found: !lacking.includes(name) }));
  return [
    ...each(t(skillWords.program), requires.bins, missing.bins),
    ...(requires.anyBins.length === 0
      ? []
      : [{ kind: t(skillWords.program), name: anyOf(requires.anyBins), found: missing.anyBins.length === 0 }]),
    ...each(t(skillWords.variable), requires.env, missing.env),
    ...each(t(skillWords.setting), requires.config, missing.config),
    ...(requires.os.length === 0
      ? []
      : [{ kind: t(skillWords.system), name: osText(requires.os), found: missing.os.length === 0 }]),
  ];
}

function anyOf(names: readonly string[]): string {
  return names.reduce((one, other) => t(skillWords.or, { one, other }));
}

export function missingText(needs: readonly Need[]): string | undefined {
  const missing = needs.filter((need) => !need.found);
  return missing.length === 0 ? undefined : t(skillWords.missingCount, { count: missing.length });
}

export function findingsText(findings: readonly Finding[]): string {
  return t(skillWords.findingsCount, { count: findings.length });
}
