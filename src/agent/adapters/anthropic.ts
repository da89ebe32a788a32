/** Tools in the shapes of Anthropic's Messages API. */
import type { JsonObject } from "../../model/json.ts";
import { describeBlock } from "../../model/content.ts";
import type { Tool } from "../../model/tool.ts";
import { readableBlocks, type ReadableBlock, readableText, runCall, type RunCallOptions } from "./run-call.ts";

export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: JsonObject & { type: "object" };
}

/** A block `tool_use` of an answer. */
export interface AnthropicToolUse {
  id: string;
  name: string;
  input: unknown;
}

export interface AnthropicToolResult {
  type: "tool_result";
  tool_use_id: string;
  content: (AnthropicText | AnthropicImage)[];
  is_error?: true;
}

export interface AnthropicText {
  type: "text";
  text: string;
}

type ImageType = "image/jpeg" | "image/png" | "image/gif" | "image/webp";

export interface AnthropicImage {
  type: "image";
  source: { type: "base64"; media_type: ImageType; data: string };
}

const IMAGES: readonly ImageType[] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

export function toAnthropicTools(tools: readonly Tool[]): AnthropicTool[] {
  return tools.map(({ name, description, parameters }) => ({
    name,
    description,
    input_schema: { ...parameters, type: "object" },
  }));
}

/** Runs the requested call and returns the block that answers it, for the next user message. Never throws. */
export async function runAnthropicCall(
  tools: readonly Tool[],
  { id, name, input }: AnthropicToolUse,
  options: RunCallOptions = {},
): Promise<AnthropicToolResult> {
  const result = await runCall(tools, { id, name, input }, options);
  if (result.isError === true) {
    // With an error the API takes text only.
    const content: AnthropicText[] = [{ type: "text", text: readableText(result) }];
    return { type: "tool_result", tool_use_id: id, content, is_error: true };
  }
  return { type: "tool_result", tool_use_id: id, content: readableBlocks(result).map(blockOf) };
}

function blockOf(block: ReadableBlock): AnthropicText | AnthropicImage {
  if (block.type === "text") return { type: "text", text: block.text };
  const mediaType = IMAGES.find((type) => type === block.mimeType);
  if (mediaType === undefined) return { type: "text", text: describeBlock(block) };
  return { type: "image", source: { type: "base64", media_type: mediaType, data: block.data } };
}
