/** One tool for all skills that a model may take up, in place of a tool for each. */
import { wrappedModelContent } from "../../guard/wrap/model-content.ts";
import type { Hub } from "../../hub/hub.ts";
import type { SkillInfo } from "../../hub/skills/hub-skills.ts";
import { errorTextForModel } from "../../model/error-text.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { Tool, ToolResult } from "../../model/tool.ts";
import type { SessionNotice } from "../../sessions/own/own-parts.ts";
import type { Session } from "../../sessions/session.ts";
import { askScope } from "./ask-scope.ts";
import { shownPatterns } from "./shown-patterns.ts";
import { takeUpSkill } from "./take-up-skill.ts";

export const SKILL_TOOL = "toolcrib_skill";

/** What a model calls each skill: its name, or the id where another one has the name. */
export function invocableSkills(hub: Hub, session: Session): ReadonlyMap<string, SkillInfo> {
  const skills = hub.skills.list({ session }).filter(({ facts }) => !facts.disableModelInvocation);
  return bySayableName(skills);
}

export function bySayableName(skills: readonly SkillInfo[]): ReadonlyMap<string, SkillInfo> {
  const named = new Map<string, SkillInfo>();
  for (const skill of skills) named.set(named.has(skill.name) ? skill.id : skill.name, skill);
  return named;
}

export function skillTool(
  hub: Hub,
  session: Session,
  names: readonly string[],
  onNotice: (notice: SessionNotice) => void,
): Tool {
  return {
    name: SKILL_TOOL,
    label: "Use skill",
    description:
      "Take up a skill: returns its instructions, which hold from then on. Do so before you begin a task that the " +
      "description of a skill in <available_skills> fits.",
    parameters: {
      type: "object",
      properties: {
        name: { type: "string", enum: [...names] },
        arguments: { type: "string", description: "What the skill is to be applied to, if anything." },
      },
      required: ["name"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    async execute(_toolCallId, params, signal, onUpdate) {
      const name = String(params["name"]);
      const given = typeof params["arguments"] === "string" ? params["arguments"] : "";
      const skill = invocableSkills(hub, session).get(name);
      const tool = skill && hub.skills.offersOf(skill.id, { session }).tool;
      if (skill === undefined || tool === undefined) return failure(`There is no skill "${name}" any more.`);
      if (given === "" && hub.skills.activeList(session).some(({ id }) => id === skill.id)) {
        return text(`The skill "${name}" is active already: its instructions are in the system prompt.`);
      }
      const outcome = await hub.call(session, {
        name: tool.name,
        arguments: given === "" ? {} : { arguments: given },
        signal,
        audience: "agent",
        onAsk: askScope.getStore(),
        onProgress: onUpdate && (({ message = "" }) => onUpdate(text(message))),
      });
      if (!outcome.ok) {
        const { result, error } = outcome;
        const content = result === undefined ? text(errorTextForModel(error)).content : wrappedModelContent(result);
        return { content, details: { error }, isError: true };
      }
      const content = wrappedModelContent(outcome.result);
      // One that hands over to a tool has nothing to keep: what it does is done.
      if (skill.facts.dispatch !== undefined) return { content };
      const notice = takeUpSkill(hub, session, skill);
      if (notice !== undefined) onNotice(notice);
      return { content: [...content, ...noteOn(skill, notice)] };
    },
  };
}

function noteOn(skill: SkillInfo, notice: SessionNotice | undefined): ContentBlock[] {
  if (notice !== undefined) return text(notice.message).content;
  if (skill.facts.allowedTools.length === 0) return [];
  return text(`While this skill is active, only these tools can be used: ${shownPatterns(skill)}.`).content;
}

function text(value: string): ToolResult {
  return { content: [{ type: "text", text: value }] };
}

function failure(value: string): ToolResult {
  return { ...text(value), isError: true };
}
