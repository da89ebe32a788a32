/** Tools in the shapes of OpenAI's APIs: Chat Completions, which many others speak too, and Responses. */
import type { JsonObject } from "../../model/json.ts";
import type { Tool } from "../../model/tool.ts";
import { readableBlocks, type ReadableBlock, readableText, runCall, type RunCallOptions } from "./run-call.ts";

export interface OpenAIChatTool {
  type: "function";
  function: { name: string; description: string; parameters: JsonObject; strict?: boolean };
}

export interface OpenAIResponsesTool {
  type: "function";
  name: string;
  description: string;
  parameters: JsonObject;
  strict: boolean;
}

export interface OpenAIToolsOptions {
  /** For tools of `hub.tools({ for: "openai-strict" })`. */
  readonly strict?: boolean;
}

/** As `tools` of a Chat Completions request. */
export function toOpenAITools(tools: readonly Tool[], { strict }: OpenAIToolsOptions = {}): OpenAIChatTool[] {
  return tools.map(({ name, description, parameters }) => ({
    type: "function",
    function: { name, description, parameters, strict },
  }));
}

/** As `tools` of a Responses request. */
export function toOpenAIResponsesTools(
  tools: readonly Tool[],
  { strict = false }: OpenAIToolsOptions = {},
): OpenAIResponsesTool[] {
  return tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    description,
    parameters,
    strict,
  }));
}

/** One of `tool_calls` of a Chat Completions message. */
export interface OpenAIChatCall {
  id: string;
  function: { name: string; arguments: string };
}

/** The other kind of `tool_calls`: none of our tools is one, so it gets an answer that says so. */
export interface OpenAICustomCall {
  id: string;
  custom: { name: string; input: string };
}

/** An item `function_call` of a Responses output. */
export interface OpenAIResponsesCall {
  call_id: string;
  name: string;
  arguments: string;
}

export interface OpenAIChatResult {
  role: "tool";
  tool_call_id: string;
  content: string;
}

export interface OpenAIResponsesResult {
  type: "function_call_output";
  call_id: string;
  output: string | (OpenAITextPart | OpenAIImagePart)[];
}

export interface OpenAITextPart {
  type: "input_text";
  text: string;
}

export interface OpenAIImagePart {
  type: "input_image";
  image_url: string;
  detail: "auto";
}

/** Runs the requested call and returns the message, or the input item, that answers it. Never throws. */
export async function runOpenAICall(
  tools: readonly Tool[],
  call: OpenAIChatCall | OpenAICustomCall,
  options?: RunCallOptions,
): Promise<OpenAIChatResult>;
export async function runOpenAICall(
  tools: readonly Tool[],
  call: OpenAIResponsesCall,
  options?: RunCallOptions,
): Promise<OpenAIResponsesResult>;
export async function runOpenAICall(
  tools: readonly Tool[],
  call: OpenAIChatCall | OpenAICustomCall | OpenAIResponsesCall,
  options: RunCallOptions = {},
): Promise<OpenAIChatResult | OpenAIResponsesResult> {
  if ("id" in call) {
    const { name, input } =
      "function" in call ? { name: call.function.name, input: call.function.arguments } : call.custom;
    const result = await runCall(tools, { id: call.id, name, input }, options);
    // A tool message takes text only; an image becomes a line of text.
    return { role: "tool", tool_call_id: call.id, content: readableText(result) };
  }
  const result = await runCall(tools, { id: call.call_id, name: call.name, input: call.arguments }, options);
  const blocks = readableBlocks(result);
  const output = blocks.every(({ type }) => type === "text") ? readableText(result) : blocks.map(partOf);
  return { type: "function_call_output", call_id: call.call_id, output };
}

function partOf(block: ReadableBlock): OpenAITextPart | OpenAIImagePart {
  if (block.type === "text") return { type: "input_text", text: block.text };
  return { type: "input_image", image_url: `data:${block.mimeType};base64,${block.data}`, detail: "auto" };
}
