/** What a tool returned or threw, as a result of the call. Tolerant: a sloppy tool should still be of use. */
import { isJsonObject } from "../model/json.ts";
import type { CallToolResult, ContentBlock } from "../model/protocol.ts";
import { holdsItself } from "./holds-itself.ts";

/**
 * `details` and other fields stay where they are: they are for the calling program, and doors to models leave them out.
 * Details that hold themselves are left out: nobody could write them down, or even measure them.
 */
export function asToolResult(tool: string, returned: unknown): CallToolResult {
  if (returned === undefined || returned === null) return { content: [] };
  if (typeof returned === "string") return { content: [textBlock(returned)] };
  if (!isJsonObject(returned) || !Array.isArray(returned["content"])) {
    return errorResult(`The tool "${tool}" returned something that is not a result: it has no list "content".`);
  }
  const content: ContentBlock[] = [];
  for (const block of returned["content"] as unknown[]) {
    if (typeof block === "string") content.push(textBlock(block));
    else if (isContentBlock(block)) content.push(block);
    else return errorResult(`The tool "${tool}" returned a content block without a type.`);
  }
  const { isError, details, ...rest } = returned;
  return {
    ...rest,
    content,
    ...(details === undefined || holdsItself(details) ? {} : { details }),
    ...(isError === true ? { isError } : {}),
  };
}

export function errorResult(message: string): CallToolResult {
  return { content: [textBlock(message)], isError: true };
}

/** The text of a partial or whole result, for a progress line. */
export function textOf(returned: unknown): string {
  if (typeof returned === "string") return returned;
  const content: unknown = isJsonObject(returned) ? returned["content"] : undefined;
  if (!Array.isArray(content)) return "";
  return content.flatMap((block: unknown) => (isText(block) ? [block.text] : [])).join("\n");
}

function textBlock(text: string): ContentBlock {
  return { type: "text", text };
}

function isContentBlock(block: unknown): block is ContentBlock {
  return isJsonObject(block) && typeof block["type"] === "string";
}

function isText(block: unknown): block is { text: string } {
  return isJsonObject(block) && typeof block["text"] === "string";
}
