/** Which of the found skills are chosen for the import, and what is sent for them. */
import type { InputOf, OutputOf } from "../../../../src/contract/operations.ts";
import type { ScannedSkill, SkillPlace } from "../../../../src/contract/skill-schemas.ts";
import type { Message } from "../../messages/messages.ts";
import { skillWords } from "../../messages/skill-words.ts";

type ImportInput = InputOf<"importSkills">;
export type ImportResult = OutputOf<"importSkills">;

/** The boxes that the user changed, by path; the others are as suggested. */
export type Ticks = ReadonlyMap<string, boolean>;

const FORCED: ReadonlySet<ScannedSkill["status"]> = new Set(["refused", "conflict"]);

/** Importing it takes more than a tick. */
export function needsForce({ status }: Pick<ScannedSkill, "status">): boolean {
  return FORCED.has(status);
}

export function isSuggested({ status, otherOs }: Pick<ScannedSkill, "status" | "otherOs">): boolean {
  return (status === "new" || status === "updated") && !otherOs;
}

export function canChoose(skill: Pick<ScannedSkill, "status">, force: boolean): boolean {
  return skill.status !== "unchanged" && (force || !needsForce(skill));
}

export function chosenOf(skills: readonly ScannedSkill[], ticks: Ticks, force: boolean): ScannedSkill[] {
  return skills.filter((skill) => canChoose(skill, force) && (ticks.get(skill.path) ?? isSuggested(skill)));
}

/** Ticks after all of `shown` were chosen or left. */
export function tickAll(ticks: Ticks, shown: readonly ScannedSkill[], chosen: boolean, force: boolean): Ticks {
  const next = new Map(ticks);
  for (const skill of shown) if (!chosen || canChoose(skill, force)) next.set(skill.path, chosen);
  return next;
}

/** Force goes only with those that need it: one that turns out bad since the scan is refused all the same. */
export function importsFor(path: string, chosen: readonly ScannedSkill[]): ImportInput[] {
  const plain = chosen.filter((skill) => !needsForce(skill)).map((skill) => skill.path);
  const forced = chosen.filter(needsForce).map((skill) => skill.path);
  return [
    ...(plain.length === 0 ? [] : [{ path, only: plain }]),
    ...(forced.length === 0 ? [] : [{ path, only: forced, force: true }]),
  ];
}

export function joinResults(results: readonly ImportResult[]): ImportResult {
  return {
    imported: results.flatMap((result) => result.imported),
    unchanged: results.flatMap((result) => result.unchanged),
    failed: results.flatMap((result) => result.failed),
    totalScanned: Math.max(0, ...results.map((result) => result.totalScanned)),
  };
}

export const SHOWN = {
  all: { word: skillWords.showAll, fits: () => true },
  suggested: { word: skillWords.showSuggested, fits: isSuggested },
  missing: { word: skillWords.showMissing, fits: (skill) => !skill.dependenciesMet },
  findings: { word: skillWords.showFindings, fits: (skill) => skill.findings.length > 0 },
  otherOs: { word: skillWords.showOtherOs, fits: (skill) => skill.otherOs },
  refused: { word: skillWords.showRefused, fits: needsForce },
  unchanged: { word: skillWords.unchanged, fits: (skill) => skill.status === "unchanged" },
} as const satisfies Readonly<
  Record<string, { readonly word: Message; readonly fits: (skill: ScannedSkill) => boolean }>
>;

export type Shown = keyof typeof SHOWN;

export function shownOf(skills: readonly ScannedSkill[], which: Shown, text: string): ScannedSkill[] {
  const words = text.toLowerCase();
  return skills.filter(
    (skill) => SHOWN[which].fits(skill) && `${skill.name} ${skill.description}`.toLowerCase().includes(words),
  );
}

const USUAL = "/.openclaw/workspace/skills";

/** Places that exist first; the usual one of OpenClaw is always among the first. */
export function orderPlaces(places: readonly SkillPlace[]): {
  readonly first: readonly SkillPlace[];
  readonly more: readonly SkillPlace[];
} {
  const isUsual = ({ path }: SkillPlace): boolean => path.replaceAll("\\", "/").endsWith(USUAL);
  const usual = places.find(isUsual) ?? { path: `~${USUAL}`, label: "OpenClaw, workspace", exists: false };
  const others = places.filter((place) => !isUsual(place));
  return {
    first: [usual, ...others.filter((place) => place.exists)].toSorted((a, b) => Number(b.exists) - Number(a.exists)),
    more: others.filter((place) => !place.exists),
  };
}
