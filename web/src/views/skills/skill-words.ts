/** Names for the parts of a skill on the page. */
import type { ScannedSkill, SkillInfo } from "../../../../src/contract/skill-schemas.ts";
import { countText } from "../../text.ts";

type Tone = "neutral" | "accent" | "ok" | "warn" | "bad" | "info";
export type Needs = SkillInfo["requires"];
export type Finding = SkillInfo["findings"][number];

export const KIND_WORDS: Readonly<Record<SkillInfo["kind"], string>> = {
  imported: "Imported",
  folder: "Folder",
  server: "Server",
};

export const KIND_TITLES: Readonly<Record<SkillInfo["kind"], string>> = {
  imported: "Copied into the hub",
  folder: "Offered from a folder of the config",
  server: "Offered by a server",
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
  Record<ScannedSkill["status"], { readonly word: string; readonly tone: Tone; readonly meaning: string }>
> = {
  new: { word: "New", tone: "ok", meaning: "It is not imported yet." },
  updated: { word: "Update", tone: "info", meaning: "Its files differ from the imported ones." },
  unchanged: { word: "Unchanged", tone: "neutral", meaning: "It is imported and unchanged." },
  refused: { word: "Refused", tone: "bad", meaning: "The scan found signs of an attack." },
  conflict: { word: "Name taken", tone: "warn", meaning: "A skill of another source has this name." },
};

export const SEVERITY_WORDS: Readonly<Record<Finding["severity"], { readonly word: string; readonly tone: Tone }>> = {
  refuse: { word: "Refused", tone: "bad" },
  warn: { word: "Warning", tone: "warn" },
  note: { word: "Note", tone: "neutral" },
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
    ...each("program", requires.bins, missing.bins),
    ...(requires.anyBins.length === 0
      ? []
      : [{ kind: "program", name: requires.anyBins.join(" or "), found: missing.anyBins.length === 0 }]),
    ...each("variable", requires.env, missing.env),
    ...each("setting", requires.config, missing.config),
    ...(requires.os.length === 0
      ? []
      : [{ kind: "system", name: osText(requires.os), found: missing.os.length === 0 }]),
  ];
}

export function missingText(needs: readonly Need[]): string | undefined {
  const missing = needs.filter((need) => !need.found);
  return missing.length === 0 ? undefined : `${missing.length} missing`;
}

export function findingsText(findings: readonly Finding[]): string {
  return countText(findings.length, "finding");
}
