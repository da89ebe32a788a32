/** MCP's `sampling/createMessage` as a step of a model. */
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { AgentMessage, AssistantPart } from "../messages.ts";
import type { ModelStep } from "../model/chat-model.ts";

/**
 * `modelPreferences` and `includeContext` are hints that a client may leave aside, and are: the server gets the model of the
 * agent, and nothing of anybody's conversation. Throws `invalid_arguments` for what cannot be answered.
 */
export function samplingStep(params: JsonObject, options: { maxTokens: number; signal: AbortSignal }): ModelStep {
  const { tools, temperature, stopSequences, systemPrompt, maxTokens } = params;
  if ((Array.isArray(tools) && tools.length > 0) || asksForTools(params["toolChoice"])) {
    throw new ToolcribError("invalid_arguments", "Sampling with tools is not answered here.", {
      hint: "Ask without `tools` and `toolChoice`.",
    });
  }
  return {
    system: typeof systemPrompt === "string" ? systemPrompt : "",
    messages: readMessages(params["messages"]),
    tools: [],
    signal: options.signal,
    maxOutputTokens: Math.min(options.maxTokens, isCount(maxTokens) ? maxTokens : options.maxTokens),
    ...(typeof temperature === "number" && temperature >= 0 ? { temperature } : {}),
    ...(isTexts(stopSequences) && stopSequences.length > 0 ? { stopSequences } : {}),
  };
}

function asksForTools(choice: unknown): boolean {
  return isJsonObject(choice) && choice["mode"] === "required";
}

function readMessages(messages: unknown): AgentMessage[] {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new ToolcribError("invalid_arguments", "A sampling request needs at least one message.");
  }
  return messages.map((message: unknown, at) => {
    if (!isJsonObject(message)) throw badMessage(at);
    const blocks = (Array.isArray(message["content"]) ? message["content"] : [message["content"]]).filter(isBlock);
    if (blocks.length === 0) throw badMessage(at);
    if (message["role"] === "assistant") return { role: "assistant", parts: blocks.map((block) => said(block, at)) };
    if (message["role"] !== "user") throw badMessage(at);
    return { role: "user", content: blocks };
  });
}

/** A model says texts; anything else in its mouth is of a request that only makes sense with tools. */
function said(block: ContentBlock, at: number): AssistantPart {
  if (block.type === "text" && typeof block["text"] === "string") return { type: "text", text: block["text"] };
  throw badMessage(at);
}

function badMessage(at: number): ToolcribError {
  return new ToolcribError(
    "invalid_arguments",
    `Message ${at + 1} of the sampling request is none that can be answered.`,
    {
      hint: "A message has the role user or assistant, and content of the types text, image or audio.",
    },
  );
}

function isBlock(value: unknown): value is ContentBlock {
  return isJsonObject(value) && typeof value["type"] === "string" && !value["type"].startsWith("tool_");
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string" && text !== "");
}
