/** Tokens where the model tells none, so that a budget holds all the same. */
import type { Tokens } from "../events.ts";
import type { AssistantPart } from "../messages.ts";
import type { ModelStep } from "../model/chat-model.ts";

const CHARACTERS_PER_TOKEN = 4;
/** An image costs by its size in pixels, of which its base64 says little. */
const CHARACTERS_OF_MEDIA = 4000;

export function estimatedUsage({ system, messages, tools }: ModelStep, answer: readonly AssistantPart[]): Tokens {
  return { input: tokensIn([system, messages, tools]), output: tokensIn(answer), estimated: true };
}

function tokensIn(value: unknown): number {
  return Math.ceil(charactersIn(value) / CHARACTERS_PER_TOKEN);
}

function charactersIn(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 1;
  let characters = 0;
  for (const [key, member] of Object.entries(value)) {
    const isMedia = (key === "data" || key === "blob") && typeof member === "string";
    characters += isMedia ? Math.min(member.length, CHARACTERS_OF_MEDIA) : charactersIn(member);
  }
  return characters;
}
