/** The blocks of a prompt. ACP took them from MCP, so most stay as they are. */
import type { ContentBlock as AcpBlock } from "@agentclientprotocol/sdk/unstable";
import { ToolcribError } from "../../model/errors.ts";
import type { ContentBlock } from "../../model/protocol.ts";

/** Throws `invalid_arguments` for what the model cannot take: leaving it out would change what was asked. */
export function promptContent(prompt: readonly AcpBlock[], model: { id: string; images: boolean }): ContentBlock[] {
  if (prompt.length === 0) throw new ToolcribError("invalid_arguments", "The prompt is empty.");
  return prompt.map((block) => {
    if (block.type === "audio") {
      throw new ToolcribError("invalid_arguments", "The prompt holds audio, which this agent does not take.", {
        hint: "Write what it says instead.",
      });
    }
    if (block.type === "image" && !model.images) {
      throw new ToolcribError("invalid_arguments", `The prompt holds an image, which ${model.id} cannot see.`, {
        hint: "Choose a model that sees images, or describe it.",
      });
    }
    return { ...block };
  });
}
