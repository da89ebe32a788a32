/** Tools in the shape of pi's `AgentTool`, which OpenClaw uses: like ours, but with a label, and only text and images. */
import type { JsonObject } from "../../model/json.ts";
import type { Tool, ToolResult } from "../../model/tool.ts";
import { orFailure, readableBlocks, type ReadableBlock } from "./run-call.ts";

export interface PiToolResult {
  content: ReadableBlock[];
  details: unknown;
  /** Only of a call that failed; the content is what the model is to read. */
  isError?: true;
}

export interface PiAgentTool {
  name: string;
  label: string;
  description: string;
  parameters: JsonObject;
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
      const update = onUpdate && ((partial: ToolResult) => onUpdate(piResult(partial)));
      // Tools of a hub never throw; those that a program has in a registry may.
      return piResult(await orFailure(() => tool.execute(toolCallId, params, signal, update)));
    },
  }));
}

function piResult(result: ToolResult): PiToolResult {
  const failed = result.isError === true ? { isError: true as const } : {};
  return { content: readableBlocks(result), details: result.details ?? {}, ...failed };
}
