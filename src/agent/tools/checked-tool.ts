import type { AskCallback } from "../../model/ask.ts";
import { errorTextForModel } from "../../model/error-text.ts";
import { asToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Tool, ToolResult } from "../../model/tool.ts";
import { fittingArguments } from "../fitting-arguments.ts";
import { askScope } from "./ask-scope.ts";

/** The tool with its arguments checked against the schema that the model was shown: what does not fit is told to the model. */
export function checkedTool(tool: Tool, onAsk: ((toolCallId: string) => AskCallback | undefined) | undefined): Tool {
  return {
    ...tool,
    async execute(toolCallId, params, signal, onUpdate) {
      const problem = await problemOf(tool, params);
      if (problem !== undefined) return problem;
      return askScope.run(onAsk?.(toolCallId), () => tool.execute(toolCallId, params, signal, onUpdate));
    },
  };
}

async function problemOf(tool: Tool, params: JsonObject): Promise<ToolResult | undefined> {
  try {
    await fittingArguments(tool, params);
    return undefined;
  } catch (thrown) {
    const error = asToolcribError(thrown).toObject();
    return { content: [{ type: "text", text: errorTextForModel(error) }], details: { error }, isError: true };
  }
}
