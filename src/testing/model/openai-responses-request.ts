/** A request to OpenAI's responses, with the references to earlier items put back. */
import { z } from "zod";
import type { JsonObject } from "../../model/json.ts";
import { checkHistory } from "./check-history.ts";
import {
  imageAt,
  merged,
  message,
  type ModelMessage,
  parsedArguments,
  type ReadRequest,
  type RequestImage,
} from "./model-request.ts";
import { checkOpenAiTools } from "./openai-errors.ts";
import { RejectedRequest } from "./protocol.ts";
import { readBody } from "./read-body.ts";

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
      arguments: z.string(),
    }),
    z.looseObject({ type: z.literal("function_call_output"), call_id: z.string().min(1), output: Content }),
    z.looseObject({ type: z.literal("reasoning"), summary: z.array(z.looseObject({ text: z.string() })) }),
    z.looseObject({ type: z.literal("item_reference"), id: z.string() }),
  ]),
  Said,
]);
const Body = z.looseObject({
  model: z.string().min(1),
  instructions: z.string().nullish(),
  input: z.union([z.string(), z.array(Item)]),
  stream: z.boolean().nullish(),
  max_output_tokens: z.int().positive().nullish(),
  tools: z
    .array(
      z.looseObject({
        type: z.literal("function"),
        name: z.string(),
        description: z.string().nullish(),
        parameters: z.record(z.string(), z.unknown()).nullish(),
      }),
    )
    .nullish(),
});

type Content = z.output<typeof Content>;

/** `items`: those that were given in earlier answers. */
export function readResponses(raw: JsonObject, items: ReadonlyMap<string, JsonObject>): ReadRequest {
  const body = readBody(Body, raw);
  const tools = (body.tools ?? []).map((tool) => ({
    name: tool.name,
    description: tool.description ?? "",
    inputSchema: tool.parameters ?? { type: "object", properties: {} },
  }));
  checkOpenAiTools(tools, (index) => `tools[${index}].name`);
  const system: string[] = typeof body.instructions === "string" ? [body.instructions] : [];
  const said: ModelMessage[] = [];
  const input = typeof body.input === "string" ? [{ role: "user" as const, content: body.input }] : body.input;
  for (const item of input.map((item) => whole(item, items))) {
    const isMessage = item.type === "message" || item.type === undefined;
    if (isMessage && (item.role === "system" || item.role === "developer")) system.push(textOf(item.content));
    else said.push(readItem(item));
  }
  const messages = merged(said, ["assistant", "tool"]);
  checkPairs(messages);
  return {
    model: body.model,
    stream: body.stream === true,
    system: system.join("\n\n"),
    messages,
    tools,
    maxTokens: body.max_output_tokens ?? undefined,
  };
}

type Item = z.output<typeof Item>;

function whole(item: Item, items: ReadonlyMap<string, JsonObject>): Item {
  if (item.type !== "item_reference") return item;
  const known = items.get(item.id);
  if (known === undefined) throw new RejectedRequest(`Item with id '${item.id}' not found.`, 404);
  return readBody(Item, known);
}

function readItem(item: Item): ModelMessage {
  switch (item.type) {
    case "function_call": {
      const { call_id: id, name, arguments: text } = item;
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

function checkPairs(messages: readonly ModelMessage[]): void {
  const problem = checkHistory(messages);
  switch (problem?.kind) {
    case undefined:
      return;
    case "unanswered":
      throw new RejectedRequest(`No tool output found for function call ${problem.ids.join(", ")}.`);
    case "unexpected":
      throw new RejectedRequest(`No tool call found for function call output with call_id ${problem.id}.`);
    case "doubled":
      throw new RejectedRequest(`More than one output for the function call with call_id ${problem.id}.`);
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
