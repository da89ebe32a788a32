/** Slash commands, `/name arguments`: skills, prompts of servers, and deactivating a skill. */
import { unwrapUntrusted, wrappedModelContent } from "../../guard/wrap-untrusted.ts";
import type { Hub } from "../../hub/hub.ts";
import type { SkillInfo } from "../../hub/skills/hub-skills.ts";
import type { PromptCapability } from "../../model/capability.ts";
import type { AskCallback } from "../../model/decision.ts";
import { textBlock } from "../../model/content.ts";
import { asToolcribError, type ErrorObject, errorText, errorTextForModel, type Outcome } from "../../model/errors.ts";
import type { CallToolResult, ContentBlock, GetPromptResult, PromptArgument } from "../../model/protocol.ts";
import type { SessionNotice } from "../../sessions/session-parts.ts";
import type { Session } from "../../sessions/session.ts";
import type { SlashCommand } from "../agent-options.ts";
import { byUniqueName } from "./built-in-tools.ts";
import { deactivateSkill, activateSkill } from "./session-rules.ts";
import { oneLine } from "./tool-facts.ts";

const SKILL_OFF = "skill-off";
const MAX_DESCRIPTION_LENGTH = 300;

export type SlashResult =
  /** Not a command: the text is for the model. */
  | { readonly kind: "none" }
  /** For the model, instead of the user's text. */
  | { readonly kind: "prompt"; readonly content: ContentBlock[]; readonly notice?: SessionNotice }
  /** For the user; the model is not asked. `forModel` is the same with untrusted text between markers, for the history. */
  | {
      readonly kind: "answer";
      readonly content: readonly ContentBlock[];
      readonly forModel: readonly ContentBlock[];
      readonly isError: boolean;
    };

interface SlashOptions {
  readonly signal?: AbortSignal;
  /** Answers approval requests; the session's own callback if absent. */
  readonly onAsk?: AskCallback;
}

export function slashCommands(hub: Hub, session: Session): SlashCommand[] {
  const skills = [...userSkills(hub, session)].map(([name, { description, facts }]) => ({
    name,
    description: oneLine(description, MAX_DESCRIPTION_LENGTH),
    ...(facts.argumentHint === undefined ? {} : { hint: oneLine(facts.argumentHint, MAX_DESCRIPTION_LENGTH) }),
  }));
  const taken = new Set(skills.map(({ name }) => name));
  const prompts = [...promptCommands(hub, session).values()].map(({ command }) => command);
  const others = prompts.filter(({ name }) => !taken.has(name));
  const active = hub.skills.activeList(session).map(({ name }) => name);
  const off = { name: SKILL_OFF, description: `Deactivates a skill: ${active.join(", ")}.`, hint: "name" };
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
      const result = promptFromOutcome(await hub.prompt({ session, ...request, audience: "agent" }));
      return withPreamble(result, `The user runs the prompt /${name} of a server and wants you to follow it:`);
    }
  } catch (thrown) {
    return failure(asToolcribError(thrown).toObject());
  }
  return name === SKILL_OFF ? endSkill(hub, session, given.trim()) : { kind: "none" };
}

function userSkills(hub: Hub, session: Session): ReadonlyMap<string, SkillInfo> {
  return byUniqueName(hub.skills.list({ session }).filter(({ facts }) => facts.userInvocable));
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
    // A skill that models must not use has no tool. The tool that it dispatches to has its own rules.
    const wanted =
      tool === undefined
        ? hub.skills.dispatched(skill.id, given, { session })
        : { name: tool.name, arguments: { arguments: given } };
    if (wanted !== undefined)
      return answerFromCall(await hub.call({ session, ...wanted, ...options, audience: "agent" }));
  }
  if (prompt === undefined) return { kind: "none" };
  const request = { name: prompt.name, arguments: { arguments: given }, ...options };
  const result = promptFromOutcome(await hub.prompt({ session, ...request, audience: "agent" }));
  if (result.kind !== "prompt") return result;
  const notice = activateSkill(hub, session, skill);
  const shown = withPreamble(result, `The user runs the skill "${skill.name}". Its instructions:`);
  return notice === undefined ? shown : { ...shown, notice };
}

/** Says where the text comes from, so that the model does not take it for the user's own. */
function withPreamble<Given extends SlashResult>(result: Given, text: string): Given {
  return result.kind === "prompt" ? { ...result, content: [textBlock(text), ...result.content] } : result;
}

function endSkill(hub: Hub, session: Session, name: string): SlashResult {
  const wasDeactivated = deactivateSkill(hub, session, name);
  const text = wasDeactivated
    ? `The skill "${name}" is no longer active.`
    : `The skill "${name}" is not active, or is set by the role of this session.`;
  return answer([textBlock(text)], !wasDeactivated);
}

function promptFromOutcome(outcome: Outcome<GetPromptResult>): SlashResult {
  if (!outcome.ok) return failure(outcome.error);
  return { kind: "prompt", content: outcome.result.messages.map(({ content }) => content) };
}

function answerFromCall(outcome: Outcome<CallToolResult>): SlashResult {
  if (outcome.ok) return answer(wrappedModelContent(outcome.result), false);
  const { result, error } = outcome;
  return result === undefined ? failure(error) : answer(wrappedModelContent(result), true);
}

function failure(error: ErrorObject): SlashResult {
  return {
    kind: "answer",
    content: [textBlock(errorText(error))],
    forModel: [textBlock(errorTextForModel(error))],
    isError: true,
  };
}

/** Without the markers: people know where it comes from. */
function answer(forModel: readonly ContentBlock[], isError: boolean): SlashResult {
  const content = forModel.map((block) => {
    const text = block["text"];
    const inner = typeof text === "string" ? unwrapUntrusted(text)?.text : undefined;
    return inner === undefined ? block : { ...block, text: inner };
  });
  return { kind: "answer", content, forModel, isError };
}

interface PromptCommand {
  readonly prompt: PromptCapability;
  readonly command: SlashCommand;
}

/**
 * Prompts of servers as slash commands, by command name: `/files:summarize notes.txt`. Only prompts for which one text is
 * enough.
 */
function promptCommands(hub: Hub, session: Session): ReadonlyMap<string, PromptCommand> {
  const servers = new Map([...hub.servers.list(), ...session.own.servers()].map(({ id, name }) => [id, name]));
  const found = new Map<string, PromptCommand>();
  for (const prompt of hub.view(session).prompts) {
    const server = servers.get(prompt.origin.source);
    if (server === undefined || requiredArguments(prompt).length > 1) continue;
    const name = `${server}:${prompt.origin.name}`.replaceAll(/\s+/g, "-");
    const { description, title } = prompt.definition;
    const hint = textArgument(prompt)?.name;
    const command = {
      name,
      description: oneLine(description ?? title ?? `Prompt of the server ${server}.`, MAX_DESCRIPTION_LENGTH),
      ...(hint === undefined ? {} : { hint: oneLine(hint, MAX_DESCRIPTION_LENGTH) }),
    };
    // Two names that are the same by chance: the second one keeps its public name.
    const key = found.has(name) ? prompt.name : name;
    found.set(key, { prompt, command: { ...command, name: key } });
  }
  return found;
}

/** The user's text becomes the one required argument, or else the first one. */
function promptArguments(prompt: PromptCapability, given: string): Record<string, string> {
  const argument = textArgument(prompt);
  return argument === undefined || given === "" ? {} : { [argument.name]: given };
}

function textArgument(prompt: PromptCapability): PromptArgument | undefined {
  return requiredArguments(prompt)[0] ?? prompt.definition.arguments?.[0];
}

function requiredArguments({ definition }: PromptCapability): PromptArgument[] {
  return (definition.arguments ?? []).filter((argument) => argument.required === true);
}
