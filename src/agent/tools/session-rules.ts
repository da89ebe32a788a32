/**
 * Rules that an agent sets on its session: the mode, the tools that it uses, and what active skills allow. They also apply
 * to tools that search tools reach.
 */
import type { Hub } from "../../hub/hub.ts";
import type { SkillInfo } from "../../hub/skills/hub-skills.ts";
import type { ToolCapability } from "../../model/capability.ts";
import type { SessionRules } from "../../model/tool-rules.ts";
import type { SessionNotice } from "../../sessions/session-parts.ts";
import type { Session } from "../../sessions/session.ts";
import { isSkillsSource } from "../../skills/offer/offered-skill.ts";
import type { AgentMode } from "../agent-options.ts";

/** An agent's own tools and the skills, which stay whatever list of tools there is; what skills run is decided by itself. */
const ALWAYS_ALLOWED = ["toolcrib_*", "skill__*"] as const;

export interface AgentPatterns {
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
}

export function applyToolPatterns(session: Session, patterns: AgentPatterns): void {
  session.narrow("agent", patternRules(patterns));
}

function patternRules({ include, exclude = [] }: AgentPatterns): SessionRules | undefined {
  if (include === undefined && exclude.length === 0) return undefined;
  const namesOwn = exclude.some((pattern) => pattern.startsWith("toolcrib_"));
  return {
    ...(include === undefined ? {} : { allow: [...include, ...ALWAYS_ALLOWED] }),
    ...(exclude.length === 0 ? {} : { deny: [...exclude, ...(namesOwn ? [] : ["!toolcrib_*"])] }),
  };
}

/** A skill returns instructions, or dispatches to a tool that has its own rules: one approval is enough. */
const EXCLUDE_SKILLS = "!skill__*";

/** The rules of each mode. They only narrow: an `ask` or `deny` of the config applies in every mode. */
const MODE_RULES: Readonly<Record<AgentMode, SessionRules | undefined>> = {
  auto: undefined,
  ask: { ask: ["writes", EXCLUDE_SKILLS] },
  "read-only": { deny: ["writes", EXCLUDE_SKILLS] },
};

export function clearMode(session: Session): void {
  session.narrow("mode", undefined);
}

export function applyMode(session: Session, mode: AgentMode): void {
  session.narrow("mode", MODE_RULES[mode]);
}

/** Rule slots that are in use: the slot of a skill that is no longer active is cleared. */
const filledSlots = new WeakMap<Session, Set<string>>();

/**
 * Makes `allowed-tools` of the active skills rules of the session. Each skill narrows by itself, and none permits
 * anything.
 */
export function applyActiveSkillRules(hub: Hub, session: Session): void {
  const narrowing = hub.skills.activeList(session).filter(({ facts }) => facts.allowedTools.length > 0);
  const wanted = new Set(narrowing.map(slotOf));
  for (const slot of filledSlots.get(session) ?? []) if (!wanted.has(slot)) session.narrow(slot, undefined);
  for (const skill of narrowing) {
    session.narrow(slotOf(skill), { allow: skillPatterns(skill), ownNames: true, exempt: ALWAYS_ALLOWED });
  }
  filledSlots.set(session, wanted);
}

/** The notice for a skill that leaves the session without any other tool; undefined if it does not. */
export function noToolsLeftNotice(hub: Hub, session: Session, skill: SkillInfo): SessionNotice | undefined {
  const { name, allowedTools } = skill.facts;
  if (allowedTools.length === 0) return undefined;
  const isOther = ({ name: tool, origin }: ToolCapability): boolean =>
    !tool.startsWith("toolcrib_") && !isSkillsSource(origin.source);
  if (hub.view(session).tools.some(isOther)) return undefined;
  return {
    level: "warning",
    message: `The skill "${name}" is active and allows only these tools: ${describeAllowedTools(skill)}. None of them is available here, so no tool is left.`,
    hint: `/skill-off ${name} ends it.`,
  };
}

function slotOf({ id }: SkillInfo): string {
  return `skill:${id}`;
}

/**
 * `Bash(git:*)` counts by its name, as we cannot look into what a tool is asked to do. `mcp__files__read` is how Claude Code
 * names a server's tool, `mcp__files` all of them. Tools that other agents have built in match nothing here.
 */
function skillPatterns({ facts }: SkillInfo): string[] {
  return facts.allowedTools
    .map((entry) => entry.replace(/\(.*$/s, "").trim())
    .filter((name) => name !== "" && !name.startsWith("!"))
    .flatMap((name) => [name, ...claudeName(name)]);
}

function claudeName(name: string): string[] {
  const [, server, tool] = /^mcp__(.+?)(?:__(.+))?$/.exec(name) ?? [];
  return server === undefined ? [] : [`${server}__${tool ?? "*"}`];
}

/** From now on the skill is active, and what it allows narrows the session. Says so if that leaves no tool. */
export function activateSkill(hub: Hub, session: Session, skill: SkillInfo): SessionNotice | undefined {
  hub.skills.activate(session, skill.id);
  applyActiveSkillRules(hub, session);
  return noToolsLeftNotice(hub, session, skill);
}

/** False if it was not active, or stays so because the role has it. */
export function deactivateSkill(hub: Hub, session: Session, idOrName: string): boolean {
  const isActive = (): boolean =>
    hub.skills.activeList(session).some(({ id, name }) => id === idOrName || name === idOrName);
  if (!isActive()) return false;
  hub.skills.deactivate(session, idOrName);
  applyActiveSkillRules(hub, session);
  return !isActive();
}

const MAX_SHOWN_PATTERNS = 20;
/** As long as the name of a tool can be, and in its letters. */
const PLAIN_PATTERN = /^[A-Za-z0-9_*?:()./-]{1,64}$/;

/**
 * The tools that a skill allows, for a model. They are words of whoever wrote the skill and stand where ours do: of what is no
 * plain name, and of all that comes from a server, it says how many there are, since words in a row are a sentence.
 */
export function describeAllowedTools({ dir, facts }: Pick<SkillInfo, "dir" | "facts">): string {
  const { allowedTools } = facts;
  const shown =
    dir === undefined ? [] : allowedTools.filter((pattern) => PLAIN_PATTERN.test(pattern)).slice(0, MAX_SHOWN_PATTERNS);
  const rest = allowedTools.length - shown.length;
  if (shown.length === 0) return `the tools that match its ${rest} patterns`;
  return `${shown.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}
