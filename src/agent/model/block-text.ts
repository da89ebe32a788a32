/** A block of content as a model reads it where it is no image. */
import { describeBlock } from "../../model/content.ts";
import { isJsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";

export function blockText(block: ContentBlock): string {
  // Half a character would make the provider refuse the request.
  return rawText(block).toWellFormed();
}

function rawText(block: ContentBlock): string {
  if (block.type === "resource" && isJsonObject(block["resource"])) {
    const { uri, text } = block["resource"];
    if (typeof text === "string") return typeof uri === "string" ? fenced(oneLine(uri), text) : text;
  }
  if (block.type === "resource_link") {
    const words = [block["title"] ?? block["name"], block["description"]].filter((word) => typeof word === "string");
    return [describeBlock(block), ...words.map(oneLine)].join(" ");
  }
  return describeBlock(block);
}

/** The fence is longer than any in the text, so that the text cannot end it. */
function fenced(uri: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `[resource: ${uri}]\n${fence}\n${text}\n${fence}`;
}

function oneLine(text: string): string {
  return text
    .slice(0, 1024)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim();
}
