/** Tools in the shape of pi's `AgentTool`, which OpenClaw uses: like ours, but with a label, only text and images, and errors thrown. */
import type { JsonObject } from "../../model/json.ts";
import type { Tool, ToolResult } from "../../model/tool.ts";
import { readableBlocks, type ReadableBlock, readableText } from "./run-call.ts";

export interface PiToolResult {
  content: ReadableBlock[];
  details: unknown;
}

export interface PiAgentTool {
  name: string;
  label: string;
  description: string;
  parameters: JsonObject;
  /** Throws if the call failed, with what the model is to read as the message. */
  execute(
    toolCallId: string,
    params: JsonObject,
    signal?: AbortSignal,
    onUpdate?: (partial: PiToolResult) => void,
  ): Promise<PiToolResult>;
}

export function toAgentTools(tools: readonly Tool[]): PiAgentTool[] {
  return tools.map((tool) => ({
    name: tool.name,
    label: tool.label ?? tool.name,
    description: tool.description,
    parameters: tool.parameters,
    async execute(toolCallId, params, signal, onUpdate) {
      const result = await tool.execute(
        toolCallId,
        params,
        signal,
        onUpdate && ((partial) => onUpdate(piResult(partial))),
      );
      if (result.isError === true) throw new Error(readableText(result));
      return piResult(result);
    },
  }));
}

function piResult(result: ToolResult): PiToolResult {
  return { content: readableBlocks(result), details: result.details ?? {} };
}
