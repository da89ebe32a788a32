/** `allowed-tools` of active skills as rules of the session. Each narrows by itself, so of several all hold; none gives anything. */
import type { Hub } from "../../hub/hub.ts";
import type { SkillInfo } from "../../hub/skills/hub-skills.ts";
import type { SessionRules } from "../../model/tool-rules.ts";
import type { SessionNotice } from "../../sessions/own/own-parts.ts";
import type { Session } from "../../sessions/session.ts";
import { ALWAYS_ALLOWED } from "./agent-rules.ts";
import { sharedRules } from "./shared-rules.ts";
import { shownPatterns } from "./shown-patterns.ts";

/** Slots that were filled: a skill that is no longer active lets go of its own. */
const filled = new WeakMap<Session, Set<string>>();

/** Makes the rules those of the skills that are active now. */
export function followActiveSkills(hub: Hub, session: Session): void {
  const narrowing = hub.skills.activeList(session).filter(({ facts }) => facts.allowedTools.length > 0);
  const wanted = new Set(narrowing.map(slotOf));
  for (const slot of filled.get(session) ?? []) if (!wanted.has(slot)) session.narrow(slot, undefined);
  for (const skill of narrowing) session.narrow(slotOf(skill), rulesOf(skill));
  filled.set(session, wanted);
}

/** What to say of a skill that leaves the session without any other tool; undefined if it does not. */
export function emptiedBy(hub: Hub, session: Session, skill: SkillInfo): SessionNotice | undefined {
  const { name, allowedTools } = skill.facts;
  if (allowedTools.length === 0) return undefined;
  const isOther = (tool: string): boolean => !tool.startsWith("toolcrib_") && !tool.startsWith("skill__");
  if (hub.view(session).tools.some((tool) => isOther(tool.name))) return undefined;
  return {
    level: "warning",
    message: `The skill "${name}" is active and allows only these tools: ${shownPatterns(skill)}. None of them can be used here, so no tool is left.`,
    hint: `/skill-off ${name} ends it.`,
  };
}

function slotOf({ id }: SkillInfo): string {
  return `skill:${id}`;
}

function rulesOf(skill: SkillInfo): SessionRules {
  return sharedRules({ allow: patternsOf(skill), ownNames: true, exempt: ALWAYS_ALLOWED });
}

/**
 * `Bash(git:*)` counts by its name, as we cannot look into what a tool is asked to do. `mcp__files__read` is how Claude Code
 * names a server's tool, `mcp__files` all of them. Tools that other agents have built in match nothing here.
 */
function patternsOf({ facts }: SkillInfo): string[] {
  return facts.allowedTools
    .map((entry) => entry.replace(/\(.*$/s, "").trim())
    .filter((name) => name !== "" && !name.startsWith("!"))
    .flatMap((name) => [name, ...claudeName(name)]);
}

function claudeName(name: string): string[] {
  const [, server, tool] = /^mcp__(.+?)(?:__(.+))?$/.exec(name) ?? [];
  return server === undefined ? [] : [`${server}__${tool ?? "*"}`];
}
