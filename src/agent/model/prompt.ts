/** A conversation as a provider of `ai` takes it. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { AgentMessage, AssistantMessage, AssistantPart, CallResult, ToolMessage } from "../messages.ts";
import { blockText } from "./block-text.ts";
import { type Image, imageOf } from "./image-block.ts";
import { META_KEY, type SdkMessage } from "./open-provider.ts";
import { pairedCalls } from "./paired-calls.ts";
import type { Protocol } from "./providers.ts";

export interface PromptRules {
  readonly protocol: Protocol;
  readonly model: string;
  /** Whether the model sees. */
  readonly images: boolean;
  /** Whether a tool's result can hold an image; else images follow in a message of the user. */
  readonly imagesInResults: boolean;
  /** Whether it takes its own thoughts back. */
  readonly thoughts: boolean;
}

type SdkUser = Extract<SdkMessage, { role: "user" }>;
type SdkAssistant = Extract<SdkMessage, { role: "assistant" }>;
type SdkTool = Extract<SdkMessage, { role: "tool" }>;
type SdkOutput = Extract<SdkTool["content"][number], { type: "tool-result" }>["output"];
type SdkOptions = NonNullable<SdkMessage["providerOptions"]>;

export function toPrompt(system: string, messages: readonly AgentMessage[], rules: PromptRules): SdkMessage[] {
  const prompt: SdkMessage[] = [];
  const history = pairedCalls(messages);
  const turn = history.findLastIndex(({ role }) => role === "user");
  for (const [at, message] of history.entries()) {
    switch (message.role) {
      case "user":
        addUser(prompt, userContent(message.content, rules));
        break;
      case "assistant": {
        const content = assistantContent(message, rules, at > turn);
        if (content.length > 0) prompt.push({ role: "assistant", content });
        break;
      }
      case "tool":
        addResults(prompt, message, rules);
        break;
    }
  }
  // A conversation begins with the user; providers insist on it.
  if (prompt[0]?.role !== "user") prompt.unshift({ role: "user", content: [text("(no message)")] });
  if (system.trim() !== "") prompt.unshift({ role: "system", content: system.toWellFormed() });
  return rules.protocol === "anthropic" ? cached(prompt) : prompt;
}

/** Messages of the user that follow each other become one: many chat templates of local models insist on turns. */
function addUser(prompt: SdkMessage[], content: SdkUser["content"]): void {
  const last = prompt.at(-1);
  if (last?.role === "user") last.content.push(...content);
  else prompt.push({ role: "user", content });
}

function userContent(blocks: readonly ContentBlock[], rules: PromptRules): SdkUser["content"] {
  const content = blocks.map((block) => {
    const image = rules.images ? imageOf(block, rules.protocol) : undefined;
    return image === undefined ? text(blockText(block)) : filePart(image);
  });
  const said = content.filter((part) => part.type !== "text" || part.text.trim() !== "");
  return said.length > 0 ? said : [text("(empty message)")];
}

function assistantContent({ parts }: AssistantMessage, rules: PromptRules, thisTurn: boolean): SdkAssistant["content"] {
  const content: SdkAssistant["content"] = [];
  for (const part of wholeParts(parts)) {
    const own = part.type === "text" ? undefined : ownMeta(part.meta, rules);
    switch (part.type) {
      case "text":
        if (part.text.trim() !== "") content.push(text(part.text.toWellFormed()));
        break;
      case "thought":
        if (own !== undefined && rules.thoughts && goesBack(own, rules, thisTurn)) {
          content.push({ type: "reasoning", text: part.text, providerOptions: own });
        }
        break;
      case "call":
        content.push({
          type: "tool-call",
          toolCallId: part.id,
          toolName: part.name,
          input: part.input,
          providerOptions: own,
        });
        break;
    }
  }
  return content;
}

/** Text and thoughts in one piece each: whoever kept them may have kept the pieces of the stream. */
function wholeParts(parts: readonly AssistantPart[]): AssistantPart[] {
  const whole: AssistantPart[] = [];
  for (const part of parts) {
    const last = whole.at(-1);
    if (part.type === "text" && last?.type === "text") {
      whole[whole.length - 1] = { type: "text", text: last.text + part.text };
    } else if (part.type === "thought" && last?.type === "thought" && last.meta === undefined) {
      whole[whole.length - 1] = { ...part, text: last.text + part.text };
    } else {
      whole.push(part);
    }
  }
  return whole;
}

/** What this provider said to give back; another one would not understand it. */
function ownMeta(meta: JsonObject | undefined, { protocol }: PromptRules): SdkOptions | undefined {
  const key = META_KEY[protocol];
  const own = meta?.[key];
  // It came from the provider as JSON, and may have been kept as JSON since.
  return isJsonObject(own) ? { [key]: own as SdkOptions[string] } : undefined;
}

/** Where thoughts are not signed they help within the turn that they belong to, for the model that had them. */
function goesBack(own: SdkOptions, { protocol, model }: PromptRules, thisTurn: boolean): boolean {
  return protocol !== "openai-compatible" || (thisTurn && own[META_KEY[protocol]]?.["model"] === model);
}

function addResults(prompt: SdkMessage[], { results }: ToolMessage, rules: PromptRules): void {
  const later: SdkUser["content"] = [];
  const content = results.map((result) => ({
    type: "tool-result" as const,
    toolCallId: result.id,
    toolName: result.name,
    output: output(result, rules, later),
  }));
  prompt.push({ role: "tool", content });
  if (later.length > 0) addUser(prompt, later);
}

/** Images that cannot stand in the result are put into `later`. */
function output(result: CallResult, rules: PromptRules, later: SdkUser["content"]): SdkOutput {
  const parts: (Text | File)[] = [];
  const moved: File[] = [];
  for (const block of result.content) {
    const image = rules.images ? imageOf(block, rules.protocol) : undefined;
    if (image !== undefined && rules.imagesInResults) {
      parts.push(filePart(image));
      continue;
    }
    const words = blockText(block);
    if (words.trim() !== "") parts.push(text(image === undefined ? words : `${words} (in the next message)`));
    if (image !== undefined) moved.push(filePart(image));
  }
  if (moved.length > 0) later.push(text(`[images of the result of ${result.name}]`), ...moved);
  // Where the protocol has no place for it, or none beside an image, the words say that it is an error.
  const onlyText = parts.every((part) => part.type === "text");
  const marked = onlyText && (rules.protocol === "anthropic" || rules.protocol === "google");
  if (result.isError && !marked) parts.unshift(text("The call failed:"));
  if (!onlyText) return { type: "content", value: parts };
  const value = parts.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  return { type: result.isError && marked ? "error-text" : "text", value: value === "" ? "(empty result)" : value };
}

type Text = { type: "text"; text: string };
type File = { type: "file"; mediaType: string; data: { type: "data"; data: string } };

function text(text: string): Text {
  return { type: "text", text };
}

function filePart({ mediaType, data }: Image): File {
  return { type: "file", mediaType, data: { type: "data", data } };
}

/** Anthropic keeps only what it is told to: tools and system prompt, and the conversation so far. */
function cached(prompt: SdkMessage[]): SdkMessage[] {
  const providerOptions = { anthropic: { cacheControl: { type: "ephemeral" } } };
  return prompt.map((message, at) =>
    message.role === "system" || at === prompt.length - 1 ? { ...message, providerOptions } : message,
  );
}
