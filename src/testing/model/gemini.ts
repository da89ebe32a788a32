/** Gemini's generateContent. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { type Answer, signature } from "./answer.ts";
import { readGemini } from "./gemini-request.ts";
import { parsedArguments } from "./model-request.ts";
import type { ErrorFacts, Frame, Protocol } from "./protocol.ts";

const USUAL: Record<number, { readonly status: string; readonly message: string }> = {
  400: { status: "INVALID_ARGUMENT", message: "Request contains an invalid argument." },
  401: { status: "UNAUTHENTICATED", message: "API key not valid. Please pass a valid API key." },
  403: { status: "PERMISSION_DENIED", message: "Permission denied." },
  404: { status: "NOT_FOUND", message: "Not found." },
  429: { status: "RESOURCE_EXHAUSTED", message: "You exceeded your current quota." },
  503: { status: "UNAVAILABLE", message: "The model is overloaded. Please try again later." },
};
const FAULT = { status: "INTERNAL", message: "An internal error has occurred." };

export const gemini: Protocol = {
  name: "gemini",
  callPrefix: "call_",
  read: (body, { path }) => readGemini(body, path),

  *frames(answer) {
    for (const part of parts(answer)) yield { ...chunk(answer, [part]), piece: true };
    yield chunk(answer, [{ text: "" }], finishReason(answer));
  },

  whole: (answer) => response(answer, parts(answer), finishReason(answer)),
  error: errorBody,
  failure: (message) => ({ data: errorBody({ status: 503, message }) }),
};

/** A call is one piece here: its arguments are an object, and those that are none have no place in the protocol. */
function parts(answer: Answer): JsonObject[] {
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

function chunk(answer: Answer, content: readonly JsonObject[], finish?: string): Frame {
  return { data: response(answer, content, finish) };
}

function response(answer: Answer, content: readonly JsonObject[], finish?: string): JsonObject {
  const { input, output, cached } = answer.usage;
  const candidate = {
    content: { role: "model", parts: content },
    index: 0,
    finishReason: finish,
  };
  return {
    candidates: [candidate],
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

function finishReason({ finish, calls }: Answer): string {
  if (calls.some(({ json }) => !isJsonObject(parsedArguments(json)))) return "MALFORMED_FUNCTION_CALL";
  switch (finish) {
    case "stop":
    case "calls":
      return "STOP";
    case "length":
      return "MAX_TOKENS";
    case "refusal":
      return "SAFETY";
  }
}

function errorBody({ status, message, code }: ErrorFacts): JsonObject {
  const usual = USUAL[status] ?? FAULT;
  const tooLong = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
  const text = message ?? (code === "context_length_exceeded" ? tooLong : usual.message);
  return { error: { code: status, message: text, status: usual.status } };
}
