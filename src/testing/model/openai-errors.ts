/** What both protocols of OpenAI have in common: errors, and what tools may look like. */
import type { JsonObject } from "../../model/json.ts";
import { checkTools } from "./check-tools.ts";
import type { OfferedTool } from "./model-request.ts";
import { type ErrorFacts, RejectedRequest } from "./protocol.ts";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_TOOLS = 128;

const USUAL: Record<number, { readonly type: string; readonly code: string | null; readonly message: string }> = {
  400: { type: "invalid_request_error", code: null, message: "The request is not valid." },
  401: { type: "invalid_request_error", code: "invalid_api_key", message: "Incorrect API key provided." },
  404: { type: "invalid_request_error", code: null, message: "Not found." },
  429: { type: "requests", code: "rate_limit_exceeded", message: "Rate limit reached. Please try again later." },
  503: { type: "service_unavailable", code: null, message: "The engine is currently overloaded." },
};
const FAULT = { type: "server_error", code: null, message: "The server had an error while processing your request." };

export function openAiError({ status, message, code }: ErrorFacts): JsonObject {
  const usual = USUAL[status] ?? FAULT;
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

/** `at`: where the name stands in a tool. */
export function checkOpenAiTools(tools: readonly OfferedTool[], at: (index: number) => string): void {
  if (tools.length > MAX_TOOLS)
    throw new RejectedRequest(
      `Invalid 'tools': array too long. Expected an array with maximum length ${MAX_TOOLS}, but got an array with length ${tools.length} instead.`,
    );
  const problem = checkTools(tools, NAME);
  switch (problem?.kind) {
    case undefined:
      return;
    case "name":
      throw new RejectedRequest(
        `Invalid '${at(problem.index)}': string does not match pattern. Expected a string that matches the pattern '${NAME.source}'.`,
      );
    case "doubled":
      throw new RejectedRequest(`Invalid '${at(problem.index)}': the name '${problem.name}' is taken.`);
    case "root":
      throw new RejectedRequest(
        `Invalid schema for function '${problem.name}': schema must be a JSON Schema of 'type: "object"', got 'type: ${problem.found}'.`,
      );
  }
}
