/** Anthropic's messages. */
import { z } from "zod";
import type { JsonObject } from "../../model/json.ts";
import {
  mergeMessages,
  message,
  type ModelMessage,
  type OfferedTool,
  parsedArguments,
  type RequestImage,
} from "./model-request.ts";
import {
  assertHistory,
  assertTools,
  type ErrorFacts,
  type Frame,
  type Protocol,
  readBody,
  RejectedRequest,
} from "./provider-protocol.ts";
import { type ScriptedAnswer, signature } from "./scenario.ts";

const NAME = /^[a-zA-Z0-9_-]{1,128}$/;

const Body = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.int().positive(),
  messages: z.array(z.unknown()).min(1),
  system: z
    .union([z.string(), z.array(z.looseObject({ type: z.literal("text"), text: z.string().min(1) }))])
    .optional(),
  stream: z.boolean().optional(),
  tools: z
    .array(
      z.looseObject({
        name: z.string(),
        description: z.string().optional(),
        input_schema: z.record(z.string(), z.unknown()),
      }),
    )
    .optional(),
});

const DEFAULT_ERRORS: Record<number, { readonly type: string; readonly message: string }> = {
  400: { type: "invalid_request_error", message: "The request is not valid." },
  401: { type: "authentication_error", message: "invalid x-api-key" },
  403: { type: "permission_error", message: "Your API key does not have permission to use the specified resource." },
  404: { type: "not_found_error", message: "Not found" },
  413: { type: "request_too_large", message: "Request exceeds the maximum size" },
  429: { type: "rate_limit_error", message: "This request would exceed your account's rate limit." },
  529: { type: "overloaded_error", message: "Overloaded" },
};
const STOP_REASONS = { stop: "end_turn", calls: "tool_use", length: "max_tokens", refusal: "refusal" } as const;

const SERVER_ERROR = { type: "api_error", message: "Internal server error" };

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
/** A tool that a search found. */
const ToolReference = z.looseObject({ type: z.literal("tool_reference"), tool_name: z.string().min(1) });
const Id = z.string().regex(/^[a-zA-Z0-9_-]+$/);
const Result = z.looseObject({
  type: z.literal("tool_result"),
  tool_use_id: Id,
  content: z
    .union([z.string(), z.array(z.discriminatedUnion("type", [Text, Image, Document, ToolReference]))])
    .optional(),
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
export const anthropic: Protocol = {
  name: "anthropic",
  callPrefix: "toolu_",

  read(raw, { headers }) {
    if (headers["anthropic-version"] === undefined) throw new RejectedRequest("anthropic-version: header is required");
    const body = readBody(Body, raw);
    const tools = (body.tools ?? []).map((tool) => ({
      name: tool.name,
      description: tool.description ?? "",
      inputSchema: tool.input_schema,
    }));
    checkOffered(tools);
    const system = body.system ?? "";
    return {
      model: body.model,
      stream: body.stream === true,
      system: typeof system === "string" ? system : system.map((block) => block.text).join("\n\n"),
      messages: readAnthropicMessages(body.messages),
      tools,
      maxTokens: body.max_tokens,
    };
  },

  *frames(answer) {
    const { cached, input } = answer.usage;
    const opened = { ...messageEnvelope(answer, []), stop_reason: null };
    const counted = { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: 1 };
    yield frame("message_start", { message: { ...opened, usage: counted } });
    yield frame("ping", {});
    let index = 0;
    for (const block of streamedBlocks(answer)) {
      yield frame("content_block_start", { index, content_block: block.start });
      for (const delta of block.deltas) yield { ...frame("content_block_delta", { index, delta }), piece: true };
      for (const delta of block.trailers) yield frame("content_block_delta", { index, delta });
      yield frame("content_block_stop", { index });
      index++;
    }
    const delta = { stop_reason: STOP_REASONS[answer.finish], stop_sequence: null };
    yield frame("message_delta", { delta, usage: { output_tokens: answer.usage.output } });
    yield frame("message_stop", {});
  },

  whole(answer) {
    const said = [...answer.texts, answer.refusal].join("");
    // Without a stream the protocol cannot express arguments that are not JSON: they become text.
    const blocks = [
      ...(answer.thought === ""
        ? []
        : [{ type: "thinking", thinking: answer.thought, signature: signature(answer.thought) }]),
      ...(said === "" ? [] : [{ type: "text", text: said }]),
      ...answer.calls.map((call) => ({
        type: "tool_use",
        id: call.id,
        name: call.name,
        input: parsedArguments(call.json),
      })),
    ];
    const { input, output, cached } = answer.usage;
    return {
      ...messageEnvelope(answer, blocks),
      usage: { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: output },
    };
  },

  error: errorBody,
  failure: (text) => ({ event: "error", data: errorBody({ status: 529, message: text }) }),
};

interface StreamedBlock {
  readonly start: JsonObject;
  readonly deltas: readonly JsonObject[];
  /** Added by the protocol; not a piece of the answer. */
  readonly trailers: readonly JsonObject[];
}

function* streamedBlocks(answer: ScriptedAnswer): Iterable<StreamedBlock> {
  const { thought } = answer;
  if (thought !== "") {
    const trailers = [{ type: "signature_delta", signature: signature(thought) }];
    const deltas = [{ type: "thinking_delta", thinking: thought }];
    yield { start: { type: "thinking", thinking: "", signature: "" }, deltas, trailers };
  }
  const texts = [...answer.texts, answer.refusal].filter((text) => text !== "");
  if (texts.length > 0) {
    const deltas = texts.map((text) => ({ type: "text_delta", text }));
    yield { start: { type: "text", text: "" }, deltas, trailers: [] };
  }
  for (const { id, name, halves } of answer.calls) {
    const deltas = halves.map((half) => ({ type: "input_json_delta", partial_json: half }));
    yield { start: { type: "tool_use", id, name, input: {} }, deltas, trailers: [] };
  }
}

function frame(type: string, fields: JsonObject): Frame {
  return { event: type, data: { type, ...fields } };
}

function messageEnvelope(answer: ScriptedAnswer, content: readonly JsonObject[]): JsonObject {
  return {
    id: `msg_${answer.number}`,
    type: "message",
    role: "assistant",
    model: answer.model,
    content,
    stop_reason: STOP_REASONS[answer.finish],
    stop_sequence: null,
  };
}

function checkOffered(tools: readonly OfferedTool[]): void {
  assertTools(tools, NAME, {
    name: ({ index }) => `tools.${index}.custom.name: String should match pattern '${NAME.source}'`,
    doubled: () => "tools: Tool names must be unique.",
    root: ({ index }) => `tools.${index}.custom.input_schema.type: Input should be 'object'`,
  });
  for (const [index, { inputSchema }] of tools.entries())
    if (["oneOf", "allOf", "anyOf"].some((keyword) => keyword in inputSchema))
      throw new RejectedRequest(
        `tools.${index}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`,
      );
}

function errorBody({ status, message, code }: ErrorFacts): JsonObject {
  const usual = DEFAULT_ERRORS[status] ?? SERVER_ERROR;
  const tooLong = "prompt is too long: 210000 tokens > 200000 maximum";
  const text = message ?? (code === "context_length_exceeded" ? tooLong : usual.message);
  return { type: "error", error: { type: usual.type, message: text }, request_id: "req_scripted" };
}

type Entry = z.output<typeof Messages>[number];

function readAnthropicMessages(raw: readonly unknown[]): ModelMessage[] {
  const entries = readBody(z.object({ messages: Messages }), { messages: raw }).messages;
  if (entries[0]?.role !== "user") throw new RejectedRequest('messages: first message must use the "user" role');
  const messages = mergeMessages(entries.flatMap(readEntry), ["assistant", "tool"]);
  assertHistory(messages, {
    unanswered: ({ id, index }) =>
      `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${id}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    unexpected: ({ id, index }) =>
      `messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
    doubled: ({ id, index }) =>
      `messages.${index}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
  });
  return messages;
}

/** Results come first in a message; other content of the user becomes a separate message here. */
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

type Block =
  | z.output<typeof Text>
  | z.output<typeof Image>
  | z.output<typeof Document>
  | z.output<typeof ToolReference>
  | z.output<typeof Result>;
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
