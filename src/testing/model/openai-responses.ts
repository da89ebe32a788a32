/** OpenAI's responses, which its own models are reached by. It remembers the items that it gave, as the provider does. */
import type { JsonObject } from "../../model/json.ts";
import { type Answer, signature } from "./answer.ts";
import { openAiError } from "./openai-errors.ts";
import { readResponses } from "./openai-responses-request.ts";
import type { Frame, Protocol } from "./protocol.ts";

export function openAiResponses(): Protocol {
  const items = new Map<string, JsonObject>();
  return {
    name: "openai-responses",
    callPrefix: "call_",
    read: (body) => readResponses(body, items),

    *frames(answer) {
      let sequence = 0;
      const frame = (type: string, fields: JsonObject): Frame => ({
        event: type,
        data: { type, sequence_number: sequence++, ...fields },
      });
      const pending = { ...envelope(answer, []), status: "in_progress", incomplete_details: null, usage: null };
      yield frame("response.created", { response: pending });
      yield frame("response.in_progress", { response: pending });
      const output = outputItems(answer);
      for (const [index, item] of output.entries()) {
        yield frame("response.output_item.added", { output_index: index, item: item.added });
        for (const { type, fields, piece } of item.events) {
          const place = { item_id: item.whole["id"], output_index: index };
          yield { ...frame(type, { ...place, ...fields }), ...(piece ? { piece: true as const } : {}) };
        }
        yield frame("response.output_item.done", { output_index: index, item: item.whole });
      }
      const response = envelope(answer, keep(items, output));
      const end = answer.finish === "length" ? "response.incomplete" : "response.completed";
      yield frame(end, { response });
    },

    whole: (answer) => envelope(answer, keep(items, outputItems(answer))),
    error: openAiError,
    failure: (message) => ({
      event: "error",
      data: { type: "error", sequence_number: 0, code: "server_error", message, param: null },
    }),
  };
}

function keep(items: Map<string, JsonObject>, output: readonly OutputItem[]): JsonObject[] {
  for (const { whole } of output) items.set(String(whole["id"]), whole);
  return output.map((item) => item.whole);
}

function envelope(answer: Answer, output: readonly JsonObject[]): JsonObject {
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

function outputItems(answer: Answer): OutputItem[] {
  return [
    ...(answer.thought === "" ? [] : [reasoningItem(answer)]),
    ...(answer.texts.length === 0 ? [] : [messageItem(answer, `msg_${answer.number}`, TEXT, answer.texts)]),
    ...(answer.refusal === "" ? [] : [messageItem(answer, `msg_${answer.number}_refusal`, REFUSAL, [answer.refusal])]),
    ...answer.calls.map((call, index): OutputItem => {
      const item = { type: "function_call", id: `fc_${answer.number}_${index + 1}`, call_id: call.id, name: call.name };
      const done = { name: call.name, arguments: call.json };
      return {
        added: { ...item, arguments: "", status: "in_progress" },
        events: [
          ...call.halves.map((delta) => event("response.function_call_arguments.delta", { delta }, true)),
          event("response.function_call_arguments.done", done),
        ],
        whole: { ...item, arguments: call.json, status: "completed" },
      };
    }),
  ];
}

const TEXT = { events: "response.output_text", part: "output_text", field: "text" };
const REFUSAL = { events: "response.refusal", part: "refusal", field: "refusal" };

function messageItem(answer: Answer, id: string, form: typeof TEXT, texts: readonly string[]): OutputItem {
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
      event("response.content_part.added", { ...place, part: part("") }),
      ...texts.map((delta) => event(`${form.events}.delta`, { ...place, delta }, true)),
      event(`${form.events}.done`, { ...place, [form.field]: whole }),
      event("response.content_part.done", { ...place, part: part(whole) }),
    ],
    whole: { ...item, status: answer.finish === "length" ? "incomplete" : "completed", content: [part(whole)] },
  };
}

function reasoningItem({ number, thought }: Answer): OutputItem {
  const item = { type: "reasoning", id: `rs_${number}`, encrypted_content: signature(thought) };
  const part = { type: "summary_text", text: thought };
  const place = { summary_index: 0 };
  return {
    added: { ...item, summary: [] },
    events: [
      event("response.reasoning_summary_part.added", { ...place, part: { ...part, text: "" } }),
      event("response.reasoning_summary_text.delta", { ...place, delta: thought }, true),
      event("response.reasoning_summary_text.done", { ...place, text: thought }),
      event("response.reasoning_summary_part.done", { ...place, part }),
    ],
    whole: { ...item, summary: [part] },
  };
}

function event(type: string, fields: JsonObject, piece = false): ItemEvent {
  return { type, fields, piece };
}
