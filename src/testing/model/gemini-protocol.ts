/** Gemini's generateContent. */
import { z } from "zod";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import {
  mergeMessages,
  message,
  type ModelMessage,
  type OfferedTool,
  parsedArguments,
  type ReadRequest,
} from "./model-request.ts";
import { assertHistory, assertTools, type ErrorFacts, type Protocol, readBody } from "./provider-protocol.ts";
import { type ScriptedAnswer, signature } from "./scenario.ts";

const DEFAULT_ERRORS: Record<number, { readonly status: string; readonly message: string }> = {
  400: { status: "INVALID_ARGUMENT", message: "Request contains an invalid argument." },
  401: { status: "UNAUTHENTICATED", message: "API key not valid. Please pass a valid API key." },
  403: { status: "PERMISSION_DENIED", message: "Permission denied." },
  404: { status: "NOT_FOUND", message: "Not found." },
  429: { status: "RESOURCE_EXHAUSTED", message: "You exceeded your current quota." },
  503: { status: "UNAVAILABLE", message: "The model is overloaded. Please try again later." },
};
const SERVER_ERROR = { status: "INTERNAL", message: "An internal error has occurred." };

const NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/;
const InlineData = z.looseObject({ mimeType: z.string(), data: z.string() });
const Part = z.looseObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  inlineData: InlineData.optional(),
  functionCall: z
    .looseObject({ id: z.string().optional(), name: z.string(), args: z.record(z.string(), z.unknown()).optional() })
    .optional(),
  functionResponse: z
    .looseObject({
      id: z.string().optional(),
      name: z.string(),
      response: z.record(z.string(), z.unknown()),
      parts: z.array(z.looseObject({ inlineData: InlineData.optional() })).optional(),
    })
    .optional(),
});
const Parts = z.array(Part).min(1);
const Schema = z.record(z.string(), z.unknown());
const Body = z.looseObject({
  contents: z.array(z.looseObject({ role: z.enum(["user", "model"]), parts: Parts })).min(1),
  systemInstruction: z.looseObject({ parts: Parts }).optional(),
  generationConfig: z.looseObject({ maxOutputTokens: z.int().positive().optional() }).optional(),
  tools: z
    .array(
      z.looseObject({
        functionDeclarations: z
          .array(
            z.looseObject({
              name: z.string(),
              description: z.string().optional(),
              parameters: Schema.optional(),
              parametersJsonSchema: Schema.optional(),
            }),
          )
          .optional(),
      }),
    )
    .optional(),
});
export const gemini: Protocol = {
  name: "gemini",
  callPrefix: "call_",
  read: (body, { path }) => readGemini(body, path),

  *frames(answer) {
    for (const part of answerParts(answer)) yield { data: response(answer, [part]), piece: true };
    yield { data: response(answer, [{ text: "" }], finishReason(answer)) };
  },

  whole: (answer) => response(answer, answerParts(answer), finishReason(answer)),
  error: errorBody,
  failure: (message) => ({ data: errorBody({ status: 503, message }) }),
};

/** A call is one piece here: its arguments are an object, and those that are none have no place in the protocol. */
function answerParts(answer: ScriptedAnswer): JsonObject[] {
  return [
    ...(answer.thought === "" ? [] : [{ text: answer.thought, thought: true }]),
    ...[...answer.texts, answer.refusal].filter((text) => text !== "").map((text) => ({ text })),
    ...answer.calls.flatMap(({ id, name, json }, index) => {
      const args = parsedArguments(json);
      if (!isJsonObject(args)) return [];
      return { functionCall: { id, name, args }, ...(index === 0 ? { thoughtSignature: signature(json) } : {}) };
    }),
  ];
}

function response(answer: ScriptedAnswer, content: readonly JsonObject[], finish?: string): JsonObject {
  const { input, output, cached } = answer.usage;
  return {
    candidates: [{ content: { role: "model", parts: content }, index: 0, finishReason: finish }],
    usageMetadata: {
      promptTokenCount: input,
      cachedContentTokenCount: cached,
      candidatesTokenCount: output,
      totalTokenCount: input + output,
    },
    modelVersion: answer.model,
    responseId: `response-${answer.number}`,
  };
}

function finishReason({ finish, calls }: ScriptedAnswer): string {
  if (calls.some(({ json }) => !isJsonObject(parsedArguments(json)))) return "MALFORMED_FUNCTION_CALL";
  return { stop: "STOP", calls: "STOP", length: "MAX_TOKENS", refusal: "SAFETY" }[finish];
}

function errorBody({ status, message, code }: ErrorFacts): JsonObject {
  const usual = DEFAULT_ERRORS[status] ?? SERVER_ERROR;
  const tooLong = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
  const text = message ?? (code === "context_length_exceeded" ? tooLong : usual.message);
  return { error: { code: status, message: text, status: usual.status } };
}

/** Checks a request as Gemini does. `path` names the model and says whether the response is a stream. */
function readGemini(raw: JsonObject, path: string): ReadRequest {
  const body = readBody(Body, raw);
  const tools = (body.tools ?? [])
    .flatMap((entry) => entry.functionDeclarations ?? [])
    .map((tool) => ({
      name: tool.name,
      description: tool.description ?? "",
      inputSchema: tool.parametersJsonSchema ?? tool.parameters ?? { type: "object" },
    }));
  checkOffered(tools);
  const [, model = "", stream = ""] = /\/models\/([^/:]+):(stream)?/i.exec(path) ?? [];
  return {
    model: decodeURIComponent(model),
    stream: stream !== "",
    system: (body.systemInstruction?.parts ?? []).map((part) => part.text ?? "").join("\n\n"),
    messages: readContents(body.contents),
    tools,
    maxTokens: body.generationConfig?.maxOutputTokens,
  };
}

function readContents(contents: z.output<typeof Body>["contents"]): ModelMessage[] {
  const messages: ModelMessage[] = [];
  for (const { role, parts } of contents) {
    if (role === "model") messages.push(readModelParts(parts));
    else messages.push(...readUserParts(parts, messages.at(-1)));
  }
  const result = mergeMessages(messages, ["assistant", "tool"]);
  const uneven = (): string =>
    "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
  assertHistory(result, { unanswered: uneven, unexpected: uneven, doubled: uneven });
  return result;
}

function readModelParts(parts: z.output<typeof Parts>): ModelMessage {
  const texts = (thought: boolean) =>
    parts.map((part) => ((part.thought ?? false) === thought ? (part.text ?? "") : "")).join("");
  return message("assistant", {
    text: texts(false),
    thought: texts(true),
    calls: parts.flatMap(({ functionCall: call }, index) =>
      call === undefined ? [] : { id: call.id ?? `${call.name}#${index}`, name: call.name, arguments: call.args ?? {} },
    ),
  });
}

function readUserParts(parts: z.output<typeof Parts>, before: ModelMessage | undefined): ModelMessage[] {
  const open = [...(before?.calls ?? [])];
  const results = parts.flatMap(({ functionResponse: given }) => {
    if (given === undefined) return [];
    // Without an id the answers of one tool belong to its calls in order.
    const at = open.findIndex((call) => (given.id === undefined ? call.name === given.name : call.id === given.id));
    const [call] = at === -1 ? [] : open.splice(at, 1);
    const images = (given.parts ?? []).flatMap((part) => part.inlineData ?? []);
    return { id: call?.id ?? given.id ?? given.name, text: textOf(given.response), images, isError: false };
  });
  const text = parts.map((part) => part.text ?? "").join("");
  const images = parts.flatMap((part) => part.inlineData ?? []);
  const said = text === "" && images.length === 0 ? [] : [message("user", { text, images })];
  return [...(results.length === 0 ? [] : [message("tool", { results })]), ...said];
}

/** Clients put plain text into a member of their own. */
function textOf(response: JsonObject): string {
  const content = response["content"] ?? response["output"] ?? response["result"];
  return typeof content === "string" ? content : JSON.stringify(response);
}

function checkOffered(tools: readonly OfferedTool[]): void {
  const lowered = tools.map((tool) => ({ ...tool, inputSchema: lowerCaseType(tool.inputSchema) }));
  const at = (index: number): string => `tools[0].function_declarations[${index}]`;
  assertTools(lowered, NAME, {
    name: ({ index }) =>
      `${at(index)}.name: Invalid function name. Must start with a letter or an underscore, with a maximum length of 64.`,
    doubled: ({ name }) => `Duplicate function declaration found: ${name}`,
    root: ({ index }) => `${at(index)}.parameters: schema should be of type OBJECT.`,
  });
}

/** Gemini's own schemas write types in capitals. */
function lowerCaseType(schema: JsonObject): JsonObject {
  const type = schema["type"];
  return typeof type === "string" ? { ...schema, type: type.toLowerCase() } : schema;
}
