/** OpenAI's chat completions, which Ollama, vLLM, llama.cpp and LM Studio speak too. */
import { z } from "zod";
import type { JsonObject } from "../../model/json.ts";
import {
  imageAt,
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
import type { ScriptedAnswer } from "./scenario.ts";

const Part = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string() }),
  z.looseObject({ type: z.literal("image_url"), image_url: z.looseObject({ url: z.string() }) }),
  z.looseObject({ type: z.literal("input_audio") }),
  z.looseObject({ type: z.literal("file") }),
]);
const Content = z.union([z.string(), z.array(Part).min(1)]);
const Call = z.looseObject({
  id: z.string().min(1),
  type: z.literal("function"),
  function: z.looseObject({ name: z.string().min(1), arguments: z.string() }),
});
const Message = z.discriminatedUnion("role", [
  z.looseObject({ role: z.enum(["system", "developer"]), content: Content }),
  z.looseObject({ role: z.literal("user"), content: Content }),
  z.looseObject({
    role: z.literal("assistant"),
    content: Content.nullish(),
    reasoning_content: z.string().nullish(),
    tool_calls: z.array(Call).min(1).optional(),
  }),
  z.looseObject({ role: z.literal("tool"), content: Content, tool_call_id: z.string() }),
]);
const Body = z.looseObject({
  model: z.string().min(1),
  messages: z.array(Message).min(1),
  stream: z.boolean().nullish(),
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  tools: z
    .array(
      z.looseObject({
        type: z.literal("function"),
        function: z.looseObject({
          name: z.string(),
          description: z.string().optional(),
          parameters: z.record(z.string(), z.unknown()).optional(),
        }),
      }),
    )
    .min(1)
    .optional(),
});

type Content = z.output<typeof Content>;

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_TOOLS = 128;
const DEFAULT_ERRORS: Record<
  number,
  { readonly type: string; readonly code: string | null; readonly message: string }
> = {
  400: { type: "invalid_request_error", code: null, message: "The request is not valid." },
  401: { type: "invalid_request_error", code: "invalid_api_key", message: "Incorrect API key provided." },
  404: { type: "invalid_request_error", code: null, message: "Not found." },
  429: { type: "requests", code: "rate_limit_exceeded", message: "Rate limit reached. Please try again later." },
  503: { type: "service_unavailable", code: null, message: "The engine is currently overloaded." },
};
/** A refusal has its own field. */
const FINISH_REASONS = { stop: "stop", calls: "tool_calls", length: "length", refusal: "stop" } as const;

const SERVER_ERROR = {
  type: "server_error",
  code: null,
  message: "The server had an error while processing your request.",
};
export const openAiChat: Protocol = {
  name: "openai-chat",
  callPrefix: "call_",

  read(raw) {
    const body = readBody(Body, raw);
    const tools = (body.tools ?? []).map(({ function: tool }) => ({
      name: tool.name,
      description: tool.description ?? "",
      inputSchema: tool.parameters ?? { type: "object", properties: {} },
    }));
    checkOpenAiTools(tools, (index) => `tools[${index}].function.name`);
    const system: string[] = [];
    const said: ModelMessage[] = [];
    for (const [index, entry] of body.messages.entries()) {
      if (entry.role === "system" || entry.role === "developer") system.push(textOf(entry.content));
      else said.push(readEntry(entry, index));
    }
    const messages = mergeMessages(said, ["tool"]);
    const unexpected = ({ id }: { readonly id: string }): string =>
      `Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls': ${id}`;
    assertHistory(messages, {
      unanswered: ({ id }) =>
        `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${id}`,
      unexpected,
      doubled: unexpected,
    });
    return {
      model: body.model,
      stream: body.stream === true,
      system: system.join("\n\n"),
      messages,
      tools,
      maxTokens: body.max_completion_tokens ?? body.max_tokens ?? undefined,
    };
  },

  *frames(answer) {
    yield chunk(answer, { role: "assistant", content: "" });
    if (answer.thought !== "") yield { ...chunk(answer, { reasoning_content: answer.thought }), piece: true };
    for (const text of answer.texts) yield { ...chunk(answer, { content: text }), piece: true };
    if (answer.refusal !== "") yield { ...chunk(answer, { refusal: answer.refusal }), piece: true };
    for (const [index, call] of answer.calls.entries()) {
      const opening = { index, id: call.id, type: "function", function: { name: call.name, arguments: "" } };
      yield chunk(answer, { tool_calls: [opening] });
      for (const half of call.halves)
        yield { ...chunk(answer, { tool_calls: [{ index, function: { arguments: half } }] }), piece: true };
    }
    yield chunk(answer, {}, FINISH_REASONS[answer.finish]);
    if (answer.includeUsage)
      yield { data: { ...envelope(answer, "chat.completion.chunk"), choices: [], usage: usage(answer) } };
    yield { data: "[DONE]" };
  },

  whole(answer) {
    const calls = answer.calls.map(({ id, name, json }) => ({
      id,
      type: "function",
      function: { name, arguments: json },
    }));
    const said = {
      role: "assistant",
      content: answer.texts.length > 0 ? answer.texts.join("") : null,
      refusal: answer.refusal === "" ? null : answer.refusal,
      ...(answer.thought === "" ? {} : { reasoning_content: answer.thought }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
    return {
      ...envelope(answer, "chat.completion"),
      choices: [{ index: 0, message: said, finish_reason: FINISH_REASONS[answer.finish] }],
      usage: usage(answer),
    };
  },

  error: openAiError,
  failure: (text) => ({ data: openAiError({ status: 500, message: text }) }),
};

function readEntry(entry: z.output<typeof Message>, index: number): ModelMessage {
  switch (entry.role) {
    case "user":
      return message("user", { text: textOf(entry.content), images: imagesOf(entry.content) });
    case "tool": {
      const { content, tool_call_id: id } = entry;
      return message("tool", { results: [{ id, text: textOf(content), images: imagesOf(content), isError: false }] });
    }
    case "assistant": {
      const calls = entry.tool_calls ?? [];
      if (entry.content == null && calls.length === 0)
        throw new RejectedRequest(`Invalid value for 'content': expected a string, got null. (messages.[${index}])`);
      return message("assistant", {
        text: textOf(entry.content ?? ""),
        thought: entry.reasoning_content ?? "",
        calls: calls.map(({ id, function: { name, arguments: text } }) => ({
          id,
          name,
          arguments: parsedArguments(text),
        })),
      });
    }
    case "system":
    case "developer":
      return message("user", {});
  }
}

function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function imagesOf(content: Content): RequestImage[] {
  if (typeof content === "string") return [];
  return content.flatMap((part) => (part.type === "image_url" ? imageAt(part.image_url.url) : []));
}

function chunk(answer: ScriptedAnswer, delta: JsonObject, finish: string | null = null): Frame {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return { data: { ...envelope(answer, "chat.completion.chunk"), choices } };
}

function envelope(answer: ScriptedAnswer, object: string): JsonObject {
  return { id: `chatcmpl-${answer.number}`, object, created: Math.floor(Date.now() / 1000), model: answer.model };
}

function usage({ usage: { input, output, cached } }: ScriptedAnswer): JsonObject {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

export function openAiError({ status, message, code }: ErrorFacts): JsonObject {
  const usual = DEFAULT_ERRORS[status] ?? SERVER_ERROR;
  const tooLong = "This model's maximum context length is 128000 tokens. Please reduce the length of the messages.";
  return {
    error: {
      message: message ?? (code === "context_length_exceeded" ? tooLong : usual.message),
      type: usual.type,
      param: null,
      code: code ?? usual.code,
    },
  };
}

/** `at`: the path of a tool's name. */
export function checkOpenAiTools(tools: readonly OfferedTool[], at: (index: number) => string): void {
  if (tools.length > MAX_TOOLS)
    throw new RejectedRequest(
      `Invalid 'tools': array too long. Expected an array with maximum length ${MAX_TOOLS}, but got an array with length ${tools.length} instead.`,
    );
  assertTools(tools, NAME, {
    name: ({ index }) =>
      `Invalid '${at(index)}': string does not match pattern. Expected a string that matches the pattern '${NAME.source}'.`,
    doubled: ({ index, name }) => `Invalid '${at(index)}': the name '${name}' is taken.`,
    root: ({ name, found }) =>
      `Invalid schema for function '${name}': schema must be a JSON Schema of 'type: "object"', got 'type: ${found}'.`,
  });
}
