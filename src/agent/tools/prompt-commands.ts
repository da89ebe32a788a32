/** Prompts of servers as slash commands: `/files:summarise notes.txt`. Only those that one text is enough for. */
import type { Hub } from "../../hub/hub.ts";
import type { PromptCapability } from "../../model/capability.ts";
import type { PromptArgument } from "../../model/protocol.ts";
import type { Session } from "../../sessions/session.ts";
import type { SlashCommand } from "../agent-options.ts";
import { oneLine } from "./tool-words.ts";

const LONGEST = 300;

export interface PromptCommand {
  readonly prompt: PromptCapability;
  readonly command: SlashCommand;
}

/** By the name of the command. */
export function promptCommands(hub: Hub, session: Session): ReadonlyMap<string, PromptCommand> {
  const servers = new Map([...hub.servers(), ...session.own.servers()].map(({ id, name }) => [id, name]));
  const found = new Map<string, PromptCommand>();
  for (const prompt of hub.view(session).prompts) {
    const server = servers.get(prompt.origin.source);
    if (server === undefined || required(prompt).length > 1) continue;
    const name = `${server}:${prompt.origin.name}`.replaceAll(/\s+/g, "-");
    const { description, title } = prompt.definition;
    const hint = textArgument(prompt)?.name;
    const command = {
      name,
      description: oneLine(description ?? title ?? `Prompt of the server ${server}.`, LONGEST),
      ...(hint === undefined ? {} : { hint: oneLine(hint, LONGEST) }),
    };
    // Two names that are the same by chance: the second one keeps its public name.
    const key = found.has(name) ? prompt.name : name;
    found.set(key, { prompt, command: { ...command, name: key } });
  }
  return found;
}

/** What the user wrote goes to the one argument that must be there, else to the first. */
export function promptArguments(prompt: PromptCapability, given: string): Record<string, string> {
  const argument = textArgument(prompt);
  return argument === undefined || given === "" ? {} : { [argument.name]: given };
}

function textArgument(prompt: PromptCapability): PromptArgument | undefined {
  return required(prompt)[0] ?? prompt.definition.arguments?.[0];
}

function required({ definition }: PromptCapability): PromptArgument[] {
  return (definition.arguments ?? []).filter((argument) => argument.required === true);
}
