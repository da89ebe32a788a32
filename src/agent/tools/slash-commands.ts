/** What a user can call by name, as `/name arguments`: skills, prompts of servers, and the end of a skill. */
import { wrappedModelContent } from "../../guard/wrap/model-content.ts";
import { unwrapUntrusted } from "../../guard/wrap/wrap.ts";
import type { Hub } from "../../hub/hub.ts";
import type { SkillInfo } from "../../hub/skills/hub-skills.ts";
import type { AskCallback } from "../../model/ask.ts";
import { errorText, errorTextForModel } from "../../model/error-text.ts";
import { asToolcribError, type ErrorObject } from "../../model/errors.ts";
import type { Outcome } from "../../model/outcome.ts";
import type { CallToolResult, ContentBlock, GetPromptResult } from "../../model/protocol.ts";
import type { SessionNotice } from "../../sessions/own/own-parts.ts";
import type { Session } from "../../sessions/session.ts";
import type { SlashCommand } from "../agent-options.ts";
import { promptArguments, promptCommands } from "./prompt-commands.ts";
import { bySayableName } from "./skill-tool.ts";
import { layDownSkill, takeUpSkill } from "./take-up-skill.ts";
import { oneLine } from "./tool-words.ts";

const SKILL_OFF = "skill-off";
const LONGEST = 300;

export type SlashResult =
  /** No command: the text is for the model as it is. */
  | { readonly kind: "none" }
  /** For the model, in the place of what the user wrote. */
  | { readonly kind: "prompt"; readonly content: ContentBlock[]; readonly notice?: SessionNotice }
  /** For the user; the model is not asked. `forModel` is the same with untrusted text between markers, for the history. */
  | {
      readonly kind: "answer";
      readonly content: readonly ContentBlock[];
      readonly forModel: readonly ContentBlock[];
      readonly isError: boolean;
    };

export interface SlashOptions {
  readonly signal?: AbortSignal | undefined;
  /** Answers if a call needs a yes; the session's own callback if absent. */
  readonly onAsk?: AskCallback | undefined;
}

export function slashCommands(hub: Hub, session: Session): SlashCommand[] {
  const skills = [...userSkills(hub, session)].map(([name, { description, facts }]) => ({
    name,
    description: oneLine(description, LONGEST),
    ...(facts.argumentHint === undefined ? {} : { hint: oneLine(facts.argumentHint, LONGEST) }),
  }));
  const taken = new Set(skills.map(({ name }) => name));
  const prompts = [...promptCommands(hub, session).values()].map(({ command }) => command);
  const others = prompts.filter(({ name }) => !taken.has(name));
  const active = hub.skills.activeList(session).map(({ name }) => name);
  const off = { name: SKILL_OFF, description: `Ends a skill that is active: ${active.join(", ")}.`, hint: "name" };
  return [...skills, ...others, ...(active.length === 0 ? [] : [off])];
}

export async function runSlashCommand(
  hub: Hub,
  session: Session,
  text: string,
  options: SlashOptions = {},
): Promise<SlashResult> {
  const [, name, given = ""] = /^\/(\S+)(?:\s+([^]*))?$/.exec(text.trim()) ?? [];
  if (name === undefined) return { kind: "none" };
  try {
    const skill = userSkills(hub, session).get(name);
    if (skill !== undefined) return await runSkill(hub, session, skill, given.trim(), options);
    const prompt = promptCommands(hub, session).get(name)?.prompt;
    if (prompt !== undefined) {
      const request = { name: prompt.name, arguments: promptArguments(prompt, given.trim()), ...options };
      const result = promptOf(await hub.prompt(session, { ...request, audience: "agent" }));
      return opened(result, `The user calls the prompt /${name} of a server, and wants what it asks for:`);
    }
  } catch (thrown) {
    return failure(asToolcribError(thrown).toObject());
  }
  return name === SKILL_OFF ? endSkill(hub, session, given.trim()) : { kind: "none" };
}

function userSkills(hub: Hub, session: Session): ReadonlyMap<string, SkillInfo> {
  return bySayableName(hub.skills.list({ session }).filter(({ facts }) => facts.userInvocable));
}

async function runSkill(
  hub: Hub,
  session: Session,
  skill: SkillInfo,
  given: string,
  options: SlashOptions,
): Promise<SlashResult> {
  const { tool, prompt } = hub.skills.offersOf(skill.id, { session });
  if (skill.facts.dispatch !== undefined) {
    // One that models may not take up has no tool, and what it hands over to is decided on by itself.
    const wanted =
      tool === undefined
        ? hub.skills.dispatched(skill.id, given, { session })
        : { name: tool.name, arguments: { arguments: given } };
    if (wanted !== undefined) return answerOf(await hub.call(session, { ...wanted, ...options, audience: "agent" }));
  }
  if (prompt === undefined) return { kind: "none" };
  const request = { name: prompt.name, arguments: { arguments: given }, ...options };
  const result = promptOf(await hub.prompt(session, { ...request, audience: "agent" }));
  if (result.kind !== "prompt") return result;
  const notice = takeUpSkill(hub, session, skill);
  const shown = opened(result, `The user calls the skill "${skill.name}". Its instructions:`);
  return notice === undefined ? shown : { ...shown, notice };
}

/** Where the text that follows comes from, so that the model does not take it for the user's own. */
function opened<Given extends SlashResult>(result: Given, text: string): Given {
  return result.kind === "prompt" ? { ...result, content: [{ type: "text", text }, ...result.content] } : result;
}

function endSkill(hub: Hub, session: Session, name: string): SlashResult {
  const wasLaidDown = layDownSkill(hub, session, name);
  const text = wasLaidDown
    ? `The skill "${name}" is no longer active.`
    : `The skill "${name}" is not active, or the role of this session has it.`;
  return answer([{ type: "text", text }], !wasLaidDown);
}

function promptOf(outcome: Outcome<GetPromptResult>): SlashResult {
  if (!outcome.ok) return failure(outcome.error);
  return { kind: "prompt", content: outcome.result.messages.map(({ content }) => content) };
}

function answerOf(outcome: Outcome<CallToolResult>): SlashResult {
  if (outcome.ok) return answer(wrappedModelContent(outcome.result), false);
  const { result, error } = outcome;
  return result === undefined ? failure(error) : answer(wrappedModelContent(result), true);
}

function failure(error: ErrorObject): SlashResult {
  return {
    kind: "answer",
    content: [{ type: "text", text: errorText(error) }],
    forModel: [{ type: "text", text: errorTextForModel(error) }],
    isError: true,
  };
}

/** People know where it comes from: they asked for it. */
function answer(forModel: readonly ContentBlock[], isError: boolean): SlashResult {
  const content = forModel.map((block) => {
    const text = block["text"];
    const inner = typeof text === "string" ? unwrapUntrusted(text)?.text : undefined;
    return inner === undefined ? block : { ...block, text: inner };
  });
  return { kind: "answer", content, forModel, isError };
}
