/** Which skills of the list are shown. */
import type { SkillInfo } from "../../../../src/contract/skill-schemas.ts";

export type SkillFilter = Readonly<Partial<Record<"q" | "kind" | "source" | "from", string | undefined>>>;

/** Where a skill is from, as the filter names it: skills in one folder of the config are from one place. */
export function placeOf({ kind, from }: Pick<SkillInfo, "kind" | "from">): string {
  if (kind !== "folder") return from;
  const cut = Math.max(from.lastIndexOf("/"), from.lastIndexOf("\\"));
  return cut > 0 ? from.slice(0, cut) : from;
}

export function filterSkills(skills: readonly SkillInfo[], { q, kind, source, from }: SkillFilter): SkillInfo[] {
  const words = (q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return skills.filter((skill) => {
    if (kind !== undefined && skill.kind !== kind) return false;
    if (source !== undefined && skill.source !== source) return false;
    if (from !== undefined && placeOf(skill) !== from) return false;
    const text = `${skill.name} ${skill.description} ${skill.author ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Values with how many skills have each, the most frequent first; one from the address stays choosable. */
export function choices(
  values: readonly string[],
  asked: string | undefined,
): readonly (readonly [value: string, count: number])[] {
  const counts = new Map<string, number>(asked === undefined ? [] : [[asked, 0]]);
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].toSorted(([a, many], [b, more]) => more - many || a.localeCompare(b));
}

/** The end of a path says most. */
export function shortPath(path: string, longest = 34): string {
  if (path.length <= longest) return path;
  const cut = path.indexOf("/", path.length - longest);
  return `…${cut === -1 ? path.slice(-longest) : path.slice(cut)}`;
}
