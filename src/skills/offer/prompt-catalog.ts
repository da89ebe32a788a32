/** The list of skills for a system prompt: who is there and where to read on. */
import { describeMissing, fileUri, mainFile, type OfferedSkill, setupCommand } from "./offered-skill.ts";

export interface PromptCatalogOptions {
  /** Most characters of the whole; 30,000 if absent. */
  readonly budget?: number;
  /** Whether a location is a path on this machine, where there is one, or the URI of a resource; `path` if absent. */
  readonly location?: "path" | "uri";
}

const DEFAULT_BUDGET = 30_000;
/** Skills are omitted before a description is cut shorter than this. */
const MIN_DESCRIPTION_LENGTH = 60;
const OPEN = "<available_skills>\n";
const CLOSE = "</available_skills>";

/** Empty if there is nothing to list. Long descriptions are cut before skills are omitted, and omissions are counted. */
export function promptCatalog(skills: readonly OfferedSkill[], options: PromptCatalogOptions = {}): string {
  const { budget = DEFAULT_BUDGET, location = "path" } = options;
  const listed = skills.filter(({ facts }) => !facts.disableModelInvocation);
  if (listed.length === 0) return "";
  const room = budget - OPEN.length - CLOSE.length;
  const render = (longest: number): string[] => listed.map((skill) => renderEntry(skill, longest, location));
  const longest = longestThatFits(listed, room, render);
  const entries = render(longest);
  if (totalLength(entries) <= room) return OPEN + entries.join("") + CLOSE;

  const kept: string[] = [];
  let used = omittedComment(listed.length).length;
  for (const text of entries) {
    used += text.length;
    if (used > room) break;
    kept.push(text);
  }
  const whole = OPEN + kept.join("") + omittedComment(listed.length - kept.length) + CLOSE;
  return whole.length <= budget ? whole : "";
}

/** The longest cut of descriptions at which all entries fit, or the shortest one. */
function longestThatFits(
  skills: readonly OfferedSkill[],
  room: number,
  render: (longest: number) => readonly string[],
): number {
  let high = Math.max(MIN_DESCRIPTION_LENGTH, ...skills.map(({ facts }) => facts.description.length));
  if (totalLength(render(high)) <= room) return high;
  let low = MIN_DESCRIPTION_LENGTH;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (totalLength(render(middle)) <= room) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The uncut entry of one skill; empty for a skill that models may not invoke. */
export function catalogEntry(skill: OfferedSkill): string {
  return skill.facts.disableModelInvocation ? "" : renderEntry(skill, Infinity, "path");
}

function renderEntry(skill: OfferedSkill, longest: number, location: "path" | "uri"): string {
  const { facts, dir, missing } = skill;
  const lacking = describeMissing(missing);
  const setup = missing.servers.length === 0 ? undefined : setupCommand(skill);
  const where = dir === undefined || location === "uri" ? fileUri(skill, mainFile(skill)) : `${dir}/${mainFile(skill)}`;
  const lines = [
    "  <skill>",
    `    <name>${escapeXml(facts.name)}</name>`,
    `    <description>${escapeXml(truncate(facts.description, longest))}</description>`,
    `    <location>${escapeXml(where)}</location>`,
    ...(lacking === undefined ? [] : [`    <missing>${escapeXml(lacking)}</missing>`]),
    ...(setup === undefined ? [] : ["    <status>needs_setup</status>", `    <setup>${escapeXml(setup)}</setup>`]),
    "  </skill>",
  ];
  return `${lines.join("\n")}\n`;
}

function omittedComment(count: number): string {
  return `  <!-- ${count} more left out -->\n`;
}

function truncate(text: string, longest: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= longest ? line : `${line.slice(0, longest - 1).toWellFormed()}…`;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function totalLength(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}
