/** OpenAI's responses, which its own models are reached by. It remembers the items that it gave, as the provider does. */
import { z } from "zod";
import type { JsonObject } from "../../model/json.ts";
import {
  imageAt,
  mergeMessages,
  message,
  type ModelMessage,
  type OfferedTool,
  parsedArguments,
  type ReadRequest,
  type RequestImage,
} from "./model-request.ts";
import { checkOpenAiTools, openAiError } from "./openai-chat-protocol.ts";
import { assertHistory, type Frame, type Protocol, readBody, RejectedRequest } from "./provider-protocol.ts";
import { type ScriptedAnswer, signature } from "./scenario.ts";

export function openAiResponses(): Protocol {
  const items = new Map<string, JsonObject>();
  const namespaces = new Map<string, NamespacedName>();
  return {
    name: "openai-responses",
    callPrefix: "call_",
    read: (body) => readResponses(body, items, namespaces),

    *frames(answer) {
      let sequence = 0;
      const frame = (type: string, fields: JsonObject): Frame => ({
        event: type,
        data: { type, sequence_number: sequence++, ...fields },
      });
      const pending = { ...envelope(answer, []), status: "in_progress", incomplete_details: null, usage: null };
      yield frame("response.created", { response: pending });
      yield frame("response.in_progress", { response: pending });
      const output = outputItems(answer, namespaces);
      for (const [index, item] of output.entries()) {
        yield frame("response.output_item.added", { output_index: index, item: item.added });
        for (const { type, fields, piece } of item.events) {
          const place = { item_id: item.whole["id"], output_index: index };
          yield { ...frame(type, { ...place, ...fields }), ...(piece ? { piece: true as const } : {}) };
        }
        yield frame("response.output_item.done", { output_index: index, item: item.whole });
      }
      const response = envelope(answer, rememberItems(items, output));
      const end = answer.finish === "length" ? "response.incomplete" : "response.completed";
      yield frame(end, { response });
    },

    whole: (answer) => envelope(answer, rememberItems(items, outputItems(answer, namespaces))),
    error: openAiError,
    failure: (message) => ({
      event: "error",
      data: { type: "error", sequence_number: 0, code: "server_error", message, param: null },
    }),
  };
}

/** A tool of a namespace, which is called by both. */
interface NamespacedName {
  readonly namespace: string;
  readonly name: string;
}

/** The name of such a tool where a request is looked at. */
function flatName({ namespace, name }: NamespacedName): string {
  return `${namespace}__${name}`;
}

function rememberItems(items: Map<string, JsonObject>, output: readonly OutputItem[]): JsonObject[] {
  for (const { whole } of output) items.set(String(whole["id"]), whole);
  return output.map((item) => item.whole);
}

function envelope(answer: ScriptedAnswer, output: readonly JsonObject[]): JsonObject {
  const { input, output: written, cached } = answer.usage;
  const cut = answer.finish === "length";
  return {
    id: `resp_${answer.number}`,
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    status: cut ? "incomplete" : "completed",
    error: null,
    incomplete_details: cut ? { reason: "max_output_tokens" } : null,
    model: answer.model,
    output,
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: written,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + written,
    },
  };
}

interface OutputItem {
  readonly added: JsonObject;
  readonly events: readonly ItemEvent[];
  readonly whole: JsonObject;
}

interface ItemEvent {
  readonly type: string;
  readonly fields: JsonObject;
  readonly piece: boolean;
}

function outputItems(answer: ScriptedAnswer, namespaces: ReadonlyMap<string, NamespacedName>): OutputItem[] {
  return [
    ...(answer.thought === "" ? [] : [reasoningItem(answer)]),
    ...(answer.texts.length === 0 ? [] : [messageItem(answer, `msg_${answer.number}`, TEXT, answer.texts)]),
    ...(answer.refusal === "" ? [] : [messageItem(answer, `msg_${answer.number}_refusal`, REFUSAL, [answer.refusal])]),
    ...answer.calls.map((call, index): OutputItem => {
      const called = namespaces.get(call.name) ?? { name: call.name };
      const item = { type: "function_call", id: `fc_${answer.number}_${index + 1}`, call_id: call.id, ...called };
      const done = { name: called.name, arguments: call.json };
      return {
        added: { ...item, arguments: "", status: "in_progress" },
        events: [
          ...call.halves.map((delta) => itemEvent("response.function_call_arguments.delta", { delta }, true)),
          itemEvent("response.function_call_arguments.done", done),
        ],
        whole: { ...item, arguments: call.json, status: "completed" },
      };
    }),
  ];
}

const TEXT = { events: "response.output_text", part: "output_text", field: "text" };
const REFUSAL = { events: "response.refusal", part: "refusal", field: "refusal" };

function messageItem(answer: ScriptedAnswer, id: string, form: typeof TEXT, texts: readonly string[]): OutputItem {
  const item = { type: "message", id, role: "assistant" };
  const part = (text: string) => ({
    type: form.part,
    [form.field]: text,
    ...(form === TEXT ? { annotations: [] } : {}),
  });
  const whole = texts.join("");
  const place = { content_index: 0 };
  return {
    added: { ...item, status: "in_progress", content: [] },
    events: [
      itemEvent("response.content_part.added", { ...place, part: part("") }),
      ...texts.map((delta) => itemEvent(`${form.events}.delta`, { ...place, delta }, true)),
      itemEvent(`${form.events}.done`, { ...place, [form.field]: whole }),
      itemEvent("response.content_part.done", { ...place, part: part(whole) }),
    ],
    whole: { ...item, status: answer.finish === "length" ? "incomplete" : "completed", content: [part(whole)] },
  };
}

function reasoningItem({ number, thought }: ScriptedAnswer): OutputItem {
  const item = { type: "reasoning", id: `rs_${number}`, encrypted_content: signature(thought) };
  const part = { type: "summary_text", text: thought };
  const place = { summary_index: 0 };
  return {
    added: { ...item, summary: [] },
    events: [
      itemEvent("response.reasoning_summary_part.added", { ...place, part: { ...part, text: "" } }),
      itemEvent("response.reasoning_summary_text.delta", { ...place, delta: thought }, true),
      itemEvent("response.reasoning_summary_text.done", { ...place, text: thought }),
      itemEvent("response.reasoning_summary_part.done", { ...place, part }),
    ],
    whole: { ...item, summary: [part] },
  };
}

function itemEvent(type: string, fields: JsonObject, piece = false): ItemEvent {
  return { type, fields, piece };
}

const Part = z.discriminatedUnion("type", [
  z.looseObject({ type: z.enum(["input_text", "output_text"]), text: z.string() }),
  z.looseObject({ type: z.literal("refusal"), refusal: z.string() }),
  z.looseObject({ type: z.literal("input_image"), image_url: z.string().optional() }),
  z.looseObject({ type: z.literal("input_file") }),
]);
const Content = z.union([z.string(), z.array(Part)]);
const Said = z.looseObject({
  type: z.literal("message").optional(),
  role: z.enum(["system", "developer", "user", "assistant"]),
  content: Content,
});
const Item = z.union([
  z.discriminatedUnion("type", [
    z.looseObject({
      type: z.literal("function_call"),
      call_id: z.string().min(1),
      name: z.string().min(1),
      namespace: z.string().nullish(),
      arguments: z.string(),
    }),
    z.looseObject({ type: z.literal("function_call_output"), call_id: z.string().min(1), output: Content }),
    z.looseObject({ type: z.literal("reasoning"), summary: z.array(z.looseObject({ text: z.string() })) }),
    z.looseObject({ type: z.literal("item_reference"), id: z.string() }),
  ]),
  Said,
]);
const FunctionTool = z.looseObject({
  type: z.literal("function"),
  name: z.string(),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
});
const Body = z.looseObject({
  model: z.string().min(1),
  instructions: z.string().nullish(),
  input: z.union([z.string(), z.array(Item)]),
  stream: z.boolean().nullish(),
  max_output_tokens: z.int().positive().nullish(),
  tools: z
    .array(
      z.discriminatedUnion("type", [
        FunctionTool,
        z.looseObject({ type: z.literal("namespace"), name: z.string(), tools: z.array(FunctionTool) }),
        // Run by the provider itself.
        z.looseObject({ type: z.literal("web_search") }),
      ]),
    )
    .nullish(),
});

type Content = z.output<typeof Content>;

/** Checks a request as OpenAI does, with references to earlier items resolved. `items`: those of earlier answers. */
function readResponses(
  raw: JsonObject,
  items: ReadonlyMap<string, JsonObject>,
  namespaces: Map<string, NamespacedName>,
): ReadRequest {
  const body = readBody(Body, raw);
  const tools = (body.tools ?? []).flatMap((tool) => {
    if (tool.type === "function") return [offeredTool(tool, tool.name)];
    if (tool.type !== "namespace") return [];
    return tool.tools.map((each) => {
      const named = { namespace: tool.name, name: each.name };
      namespaces.set(flatName(named), named);
      return offeredTool(each, flatName(named));
    });
  });
  checkOpenAiTools(tools, (index) => `tools[${index}].name`);
  const system: string[] = typeof body.instructions === "string" ? [body.instructions] : [];
  const said: ModelMessage[] = [];
  const input = typeof body.input === "string" ? [{ role: "user" as const, content: body.input }] : body.input;
  for (const item of input.map((item) => resolveReference(item, items))) {
    const isMessage = item.type === "message" || item.type === undefined;
    if (isMessage && (item.role === "system" || item.role === "developer")) system.push(textOf(item.content));
    else said.push(readItem(item));
  }
  const messages = mergeMessages(said, ["assistant", "tool"]);
  assertHistory(messages, {
    unanswered: ({ id }) => `No tool output found for function call ${id}.`,
    unexpected: ({ id }) => `No tool call found for function call output with call_id ${id}.`,
    doubled: ({ id }) => `More than one output for the function call with call_id ${id}.`,
  });
  return {
    model: body.model,
    stream: body.stream === true,
    system: system.join("\n\n"),
    messages,
    tools,
    maxTokens: body.max_output_tokens ?? undefined,
  };
}

function offeredTool({ description, parameters }: z.output<typeof FunctionTool>, name: string): OfferedTool {
  return { name, description: description ?? "", inputSchema: parameters ?? { type: "object", properties: {} } };
}

type Item = z.output<typeof Item>;

function resolveReference(item: Item, items: ReadonlyMap<string, JsonObject>): Item {
  if (item.type !== "item_reference") return item;
  const known = items.get(item.id);
  if (known === undefined) throw new RejectedRequest(`Item with id '${item.id}' not found.`, 404);
  return readBody(Item, known);
}

function readItem(item: Item): ModelMessage {
  switch (item.type) {
    case "function_call": {
      const { call_id: id, name: own, namespace, arguments: text } = item;
      const name = typeof namespace === "string" ? flatName({ namespace, name: own }) : own;
      return message("assistant", { calls: [{ id, name, arguments: parsedArguments(text) }] });
    }
    case "function_call_output": {
      const { call_id: id, output } = item;
      return message("tool", { results: [{ id, text: textOf(output), images: imagesOf(output), isError: false }] });
    }
    case "reasoning":
      return message("assistant", { thought: item.summary.map((part) => part.text).join("") });
    case "item_reference":
      return message("assistant", {});
    case "message":
    case undefined: {
      const role = item.role === "assistant" ? "assistant" : "user";
      return message(role, { text: textOf(item.content), images: imagesOf(item.content) });
    }
  }
}

function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content
    .map((part) => {
      if (part.type === "refusal") return part.refusal;
      return part.type === "input_text" || part.type === "output_text" ? part.text : "";
    })
    .join("");
}

function imagesOf(content: Content): RequestImage[] {
  if (typeof content === "string") return [];
  return content.flatMap((part) =>
    part.type === "input_image" && part.image_url !== undefined ? imageAt(part.image_url) : [],
  );
}
