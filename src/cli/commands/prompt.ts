import { describeBlock } from "../../model/content.ts";
import type { PromptCapability } from "../../model/capability.ts";
import type { ContentBlock, GetPromptResult, PromptMessage } from "../../model/protocol.ts";
import { findNearest } from "../../base/near-matches.ts";
import { ToolcribError } from "../../model/errors.ts";
import { type Assignment, parseAssignment } from "../tool-arguments.ts";
import type { Invocation } from "../command.ts";
import { findCapability, withHub } from "../running-hub.ts";
import { partsOfBlocks, saveTarget, showOutcome } from "../call-result.ts";

export async function run(invocation: Invocation): Promise<number> {
  const [name = "", ...typed] = invocation.args;
  const assignments = typed.map((each) => parseAssignment(each, invocation.cwd));
  const target = saveTarget(invocation);
  return withHub(invocation, async (running) => {
    const { hub, signal } = running;
    const prompt = await findCapability(running, name, (view) => view.prompts);
    const outcome = await hub.prompt(hub.session, { name, arguments: promptArguments(assignments, prompt), signal });
    return showOutcome(invocation, running, outcome, {
      show: (result) => {
        for (const message of result.messages) invocation.out.line(`${message.role}: ${messageText(message)}`);
      },
      parts: (result) => partsOfBlocks(blocksOf(result), prompt?.origin.name ?? name),
      target,
    });
  });
}

/** Prompts take text only. */
function promptArguments(
  assignments: readonly Assignment[],
  prompt: PromptCapability | undefined,
): Record<string, string> {
  const values = Object.fromEntries(assignments.map((assignment) => [assignment.key, textOf(assignment)]));
  const known = prompt?.definition.arguments;
  if (known === undefined) return values;
  const names = known.map((argument) => argument.name);
  const problems = [
    ...Object.keys(values)
      .filter((key) => !names.includes(key))
      .map((key) => unknownArgument(key, names)),
    ...known
      .filter((argument) => argument.required === true && !Object.hasOwn(values, argument.name))
      .map((argument) => `"${argument.name}" is missing`),
  ];
  if (problems.length === 0) return values;
  throw new ToolcribError("invalid_arguments", `The prompt's arguments: ${problems.join("; ")}.`, {
    hint: `toolcrib list --prompts --json shows them.`,
    details: { problems },
  });
}

function unknownArgument(key: string, names: readonly string[]): string {
  const near = findNearest(key, names);
  if (near !== undefined) return `"${key}" is unknown; did you mean "${near}"`;
  return `"${key}" is unknown; ${names.length === 0 ? "there are none" : `known are ${names.join(", ")}`}`;
}

function textOf(assignment: Assignment): string {
  switch (assignment.kind) {
    case "text":
      return assignment.text;
    case "file":
      return assignment.bytes.toString("utf8");
    case "json":
      return typeof assignment.value === "string" ? assignment.value : JSON.stringify(assignment.value);
  }
}

function blocksOf(result: GetPromptResult): ContentBlock[] {
  return result.messages.map((message) => message.content);
}

function messageText(message: PromptMessage): string {
  return describeBlock(message.content);
}
