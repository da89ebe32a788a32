/** What an agent gets to read when it takes up a skill. */
import { describeMissing, fileUri, mainFile, type OfferedSkill } from "./offered-skill.ts";

/** The rest is counted. */
const MOST_FILES = 100;

/** @param given What the user wrote after the skill's name. */
export async function instructionsOf(skill: OfferedSkill, given = ""): Promise<string> {
  const { facts, dir, missing } = skill;
  const bytes = await skill.read(mainFile(skill));
  // Loaded here, because a hub whose skills nobody takes up needs no YAML.
  const { parseSkill } = await import("../read/read-skill.ts");
  const { body } = parseSkill(bytes, facts.name);
  const notes = [
    ...(dir === undefined ? [] : [`Base directory of this skill: ${dir}`]),
    ...noteOnMissing(describeMissing(missing)),
    ...noteOnServers(skill),
  ];
  const text = withArguments(body.trim(), given).replaceAll("{baseDir}", () => dir ?? skill.base.slice(0, -1));
  return [notes.join("\n"), text, filesOf(skill)].filter((part) => part !== "").join("\n\n");
}

/** Where the text has no place for them, arguments stand at its end. */
function withArguments(body: string, given: string): string {
  if (body.includes("$ARGUMENTS")) return body.replaceAll("$ARGUMENTS", () => given);
  return given === "" ? body : `${body}\n\nARGUMENTS: ${given}`;
}

function noteOnMissing(missing: string | undefined): string[] {
  return missing === undefined ? [] : [`Not there, and needed by this skill: ${missing}.`];
}

function noteOnServers({ facts: { servers } }: OfferedSkill): string[] {
  return servers.length === 0
    ? []
    : [`MCP servers that this skill uses: ${servers.map(({ name }) => name).join(", ")}`];
}

function filesOf(skill: OfferedSkill): string {
  const others = skill.facts.files.slice(1);
  if (others.length === 0) return "";
  const lines = others.slice(0, MOST_FILES).map(({ path }) => `- ${path}: ${fileUri(skill, path)}`);
  if (others.length > MOST_FILES) lines.push(`- and ${others.length - MOST_FILES} more`);
  return ["Files of this skill, readable as resources:", ...lines].join("\n");
}
