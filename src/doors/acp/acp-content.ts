/** Content of tools as ACP takes it; what it has no block for becomes text. */
import type { ContentBlock as AcpBlock, ToolCallContent } from "@agentclientprotocol/sdk/unstable";
import { describeBlock } from "../../model/content.ts";
import { isJsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import { shownText } from "./shown-text.ts";

export function acpBlock(block: ContentBlock): AcpBlock {
  const { type, text, data, mimeType, uri, name, resource } = block;
  if (type === "text" && typeof text === "string") return { type, text };
  if ((type === "image" || type === "audio") && typeof data === "string" && typeof mimeType === "string") {
    return { type, data, mimeType };
  }
  if (type === "resource_link" && typeof uri === "string") {
    return { type, uri, name: typeof name === "string" ? name : uri, ...mime(mimeType) };
  }
  if (type === "resource" && isJsonObject(resource) && typeof resource["uri"] === "string") {
    const place = { uri: resource["uri"], ...mime(resource["mimeType"]) };
    if (typeof resource["text"] === "string") return { type, resource: { ...place, text: resource["text"] } };
    if (typeof resource["blob"] === "string") return { type, resource: { ...place, blob: resource["blob"] } };
  }
  return { type: "text", text: describeBlock(block) };
}

export function toolContent(blocks: readonly ContentBlock[]): ToolCallContent[] {
  return blocks.map((block) => {
    const content = acpBlock(block);
    return content.type === "text" ? textContent(shownText(content.text)) : { type: "content", content };
  });
}

export function textContent(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text } };
}

function mime(value: unknown): { mimeType?: string } {
  return typeof value === "string" ? { mimeType: value } : {};
}
