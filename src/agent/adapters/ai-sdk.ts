/** Tools for the Vercel AI SDK (`ai`): `generateText({ tools: await toAiTools(hub.tools({ for: "openai" })) })`. */
import { asToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Tool, ToolResult } from "../../model/tool.ts";
import { checkModelArguments } from "../../tools/check-arguments.ts";
import { readableBlocks, type ReadableBlock, readableText } from "./run-call.ts";

export interface AiToolsOptions {
  /**
   * False replaces each image with a line of text: for models without vision, and for `@ai-sdk/openai-compatible` and the chat
   * models of `@ai-sdk/openai`, which write the image into the message as JSON.
   */
  readonly images?: boolean;
}

/**
 * Asynchronous, because the SDK is loaded on first use. A tool returns a `ToolResult`; the model reads its content.
 * The caller names the type of the set, `ToolSet` of `ai`: naming it here would impose the SDK's types, and the DOM types that
 * they need, on everyone who uses this package.
 */
export async function toAiTools<AiTools extends object = Record<string, unknown>>(
  tools: readonly Tool[],
  { images = true }: AiToolsOptions = {},
): Promise<AiTools> {
  const { dynamicTool, jsonSchema } = await import("ai");
  const entries = tools.map((tool) => {
    const adapted = dynamicTool({
      description: tool.description,
      inputSchema: jsonSchema<JsonObject>(tool.parameters, { validate: (value) => validated(tool, value) }),
      execute: (input, { toolCallId, abortSignal }) =>
        // `validate` lets nothing else through.
        tool.execute(toolCallId, input as JsonObject, abortSignal),
      // The output is what `execute` returned.
      toModelOutput: ({ output }) => modelOutput(output as ToolResult, images),
    });
    return [tool.name, adapted] as const;
  });
  // A ToolSet is a record of tools, which is what this is.
  return Object.fromEntries(entries) as object as AiTools;
}

type Validated = { success: true; value: JsonObject } | { success: false; error: Error };

async function validated(tool: Tool, value: unknown): Promise<Validated> {
  if (!isJsonObject(value)) return { success: false, error: new Error("The arguments are not an object.") };
  try {
    return { success: true, value: await checkModelArguments(tool, value) };
  } catch (thrown) {
    return { success: false, error: asToolcribError(thrown) };
  }
}

function modelOutput(result: ToolResult, images: boolean) {
  if (result.isError === true) return { type: "error-text" as const, value: readableText(result) };
  const blocks = readableBlocks(result);
  // Some providers write parts as JSON into the message; a text is a text everywhere.
  const isText = !images || blocks.every(({ type }) => type === "text");
  if (isText) return { type: "text" as const, value: readableText(result) };
  return { type: "content" as const, value: blocks.map(partOf) };
}

function partOf(block: ReadableBlock) {
  if (block.type === "text") return { type: "text" as const, text: block.text };
  return {
    type: "file" as const,
    data: { type: "data" as const, data: block.data },
    mediaType: block.mimeType,
  };
}
