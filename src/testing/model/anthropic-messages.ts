/** The messages of a request to Anthropic, checked as the provider checks them. */
import { z } from "zod";
import { signature } from "./answer.ts";
import { checkHistory } from "./check-history.ts";
import { merged, message, type ModelMessage, type RequestImage } from "./model-request.ts";
import { RejectedRequest } from "./protocol.ts";
import { readBody } from "./read-body.ts";

const Text = z.looseObject({
  type: z.literal("text"),
  text: z.string().min(1, "text content blocks must be non-empty"),
});
const Image = z.looseObject({
  type: z.literal("image"),
  source: z.discriminatedUnion("type", [
    z.looseObject({ type: z.literal("base64"), media_type: z.string(), data: z.string() }),
    z.looseObject({ type: z.literal("url"), url: z.string() }),
  ]),
});
const Document = z.looseObject({ type: z.literal("document") });
const Id = z.string().regex(/^[a-zA-Z0-9_-]+$/);
const Result = z.looseObject({
  type: z.literal("tool_result"),
  tool_use_id: Id,
  content: z.union([z.string(), z.array(z.discriminatedUnion("type", [Text, Image, Document]))]).optional(),
  is_error: z.boolean().optional(),
});
const Use = z.looseObject({
  type: z.literal("tool_use"),
  id: Id,
  name: z.string().min(1),
  input: z.record(z.string(), z.unknown()),
});
const Thinking = z.looseObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() });
const NOT_EMPTY = "all messages must have non-empty content";

const Messages = z.array(
  z.discriminatedUnion("role", [
    z.looseObject({
      role: z.literal("user"),
      content: z.union([
        z.string().min(1, NOT_EMPTY),
        z.array(z.discriminatedUnion("type", [Text, Image, Document, Result])).min(1, NOT_EMPTY),
      ]),
    }),
    z.looseObject({
      role: z.literal("assistant"),
      content: z.union([
        z.string().min(1, NOT_EMPTY),
        z.array(z.discriminatedUnion("type", [Text, Use, Thinking])).min(1, NOT_EMPTY),
      ]),
    }),
  ]),
);

type Entry = z.output<typeof Messages>[number];

export function readAnthropicMessages(raw: readonly unknown[]): ModelMessage[] {
  const entries = readBody(z.object({ messages: Messages }), { messages: raw }).messages;
  if (entries[0]?.role !== "user") throw new RejectedRequest('messages: first message must use the "user" role');
  const messages = merged(entries.flatMap(readEntry), ["assistant", "tool"]);
  const problem = checkHistory(messages);
  switch (problem?.kind) {
    case undefined:
      return messages;
    case "unanswered":
      throw new RejectedRequest(
        `messages.${problem.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${problem.ids.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      );
    case "unexpected":
      throw new RejectedRequest(
        `messages.${problem.index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${problem.id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    case "doubled":
      throw new RejectedRequest(
        `messages.${problem.index}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${problem.id}`,
      );
  }
}

/** Results come first in a message; what the user says beside them is a message of its own here. */
function readEntry(entry: Entry, index: number): ModelMessage[] {
  if (typeof entry.content === "string") return [message(entry.role, { text: entry.content })];
  if (entry.role === "assistant") return [readAssistant(entry.content, index)];
  const results = entry.content.flatMap((block) => (block.type === "tool_result" ? readResult(block) : []));
  const rest = entry.content.slice(results.length);
  if (rest.some((block) => block.type === "tool_result"))
    throw new RejectedRequest(`messages.${index}: \`tool_result\` blocks must come before other content`);
  return [
    ...(results.length === 0 ? [] : [message("tool", { results })]),
    ...(rest.length === 0 ? [] : [message("user", { text: textOf(rest), images: imagesOf(rest) })]),
  ];
}

type Block = z.output<typeof Text> | z.output<typeof Image> | z.output<typeof Document> | z.output<typeof Result>;
type AssistantBlock = z.output<typeof Text> | z.output<typeof Use> | z.output<typeof Thinking>;

function readAssistant(blocks: readonly AssistantBlock[], index: number): ModelMessage {
  const thoughts = blocks.flatMap((block) => (block.type === "thinking" ? block : []));
  if (thoughts.some((block) => block.signature !== signature(block.thinking)))
    throw new RejectedRequest(`messages.${index}: Invalid \`signature\` in \`thinking\` block`);
  return message("assistant", {
    text: blocks.map((block) => (block.type === "text" ? block.text : "")).join(""),
    thought: thoughts.map((block) => block.thinking).join(""),
    calls: blocks.flatMap((block) =>
      block.type === "tool_use" ? { id: block.id, name: block.name, arguments: block.input } : [],
    ),
  });
}

function readResult(block: z.output<typeof Result>) {
  const content = block.content ?? "";
  return {
    id: block.tool_use_id,
    text: typeof content === "string" ? content : textOf(content),
    images: typeof content === "string" ? [] : imagesOf(content),
    isError: block.is_error === true,
  };
}

function textOf(blocks: readonly Block[]): string {
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function imagesOf(blocks: readonly Block[]): RequestImage[] {
  return blocks.flatMap((block) => {
    if (block.type !== "image") return [];
    const { source } = block;
    return source.type === "url"
      ? { mimeType: "", data: source.url }
      : { mimeType: source.media_type, data: source.data };
  });
}
