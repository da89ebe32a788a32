/** The content of a result as a model gets it: degraded to what it can read, and each text of it inside the boundary. */
import { describeBlock, modelContent, resultText, saysNothing } from "../../model/content.ts";
import type { CallToolResult, ContentBlock } from "../../model/protocol.ts";
import { markOf } from "../untrusted-mark.ts";
import { isWrappedWith, wrapUntrusted } from "./wrap.ts";

/**
 * Degrading makes texts out of addresses, types and structured content. In a result that the guard has wrapped these are
 * the server's words too, so they get the same boundary.
 */
export function wrappedModelContent(result: CallToolResult): ContentBlock[] {
  const blocks = modelContent(result);
  const mark = markOf(result);
  if (mark?.boundary === undefined) return blocks;
  const { boundary: id, server, tool, findings } = mark;
  return blocks.map((block) => {
    const text = block["text"];
    if (block.type !== "text" || typeof text !== "string") return block;
    return isWrappedWith(text, id) || saysNothing(text)
      ? block
      : { ...block, text: wrapUntrusted(text, { id, server, tool, findings }) };
  });
}

/** The whole result as text, for whoever it is meant for. */
export function readableText(result: CallToolResult): string {
  if (markOf(result)?.boundary === undefined) return resultText(result);
  return wrappedModelContent(result).map(describeBlock).join("\n");
}
