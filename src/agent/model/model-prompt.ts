/** A conversation as a provider of `ai` takes it. */
import { describeBlock } from "../../model/content.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ContentBlock } from "../../model/protocol.ts";
import type { AgentMessage, AssistantMessage, AssistantPart, CallPart, CallResult, ToolMessage } from "./chat-model.ts";
import { META_KEY, type Protocol, type SdkMessage } from "./providers.ts";

export interface PromptRules {
  readonly protocol: Protocol;
  readonly model: string;
  readonly images: boolean;
  /** Whether a tool result can contain an image; otherwise images follow in a user message. */
  readonly imagesInResults: boolean;
  /** Whether the model accepts its own thoughts back. */
  readonly thoughts: boolean;
}

type SdkUser = Extract<SdkMessage, { role: "user" }>;
type SdkAssistant = Extract<SdkMessage, { role: "assistant" }>;
type SdkTool = Extract<SdkMessage, { role: "tool" }>;
type SdkOutput = Extract<SdkTool["content"][number], { type: "tool-result" }>["output"];
type SdkOptions = NonNullable<SdkMessage["providerOptions"]>;

export function toPrompt(system: string, messages: readonly AgentMessage[], rules: PromptRules): SdkMessage[] {
  const prompt: SdkMessage[] = [];
  const history = pairCallsWithResults(messages);
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
  return rules.protocol === "anthropic" ? withCacheControl(prompt) : prompt;
}

/** Adjacent user messages become one: many chat templates of local models require alternating roles. */
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
  for (const part of joinParts(parts)) {
    const own = part.type === "text" ? undefined : providerMeta(part.meta, rules);
    switch (part.type) {
      case "text":
        if (part.text.trim() !== "") content.push(text(part.text.toWellFormed()));
        break;
      case "thought":
        if (own !== undefined && rules.thoughts && canReturnThought(own, rules, thisTurn)) {
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

/** Joins adjacent text and thoughts: stored messages may contain the pieces of a stream. */
function joinParts(parts: readonly AssistantPart[]): AssistantPart[] {
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

/** The metadata that this provider wants back; another one would not understand it. */
function providerMeta(meta: JsonObject | undefined, { protocol }: PromptRules): SdkOptions | undefined {
  const key = META_KEY[protocol];
  const own = meta?.[key];
  // It came from the provider as JSON, and may have been kept as JSON since.
  return isJsonObject(own) ? { [key]: own as SdkOptions[string] } : undefined;
}

/** Unsigned thoughts are only sent back within their own turn, to the model that had them. */
function canReturnThought(own: SdkOptions, { protocol, model }: PromptRules, thisTurn: boolean): boolean {
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

/** Images that the result cannot contain are put into `later`. */
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
  // Where the protocol cannot mark an error, or not beside an image, the text says so.
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

/** Anthropic caches only what is marked: tools and system prompt, and the conversation so far. */
function withCacheControl(prompt: SdkMessage[]): SdkMessage[] {
  const providerOptions = { anthropic: { cacheControl: { type: "ephemeral" } } };
  return prompt.map((message, at) =>
    message.role === "system" || at === prompt.length - 1 ? { ...message, providerOptions } : message,
  );
}

/** OpenAI takes no longer ones. */
const MAX_ID_LENGTH = 40;

const NO_RESULT = "There is no result: the run was interrupted before this call ended.";

/**
 * A history that every provider accepts: each call has exactly one result right after it, with safe and unique ids. A call
 * without a result, left by an interrupted run, gets an error as its result; a result without a call is dropped. Ids are
 * the same every time, so that the provider's prompt cache still matches.
 */
function pairCallsWithResults(messages: readonly AgentMessage[]): AgentMessage[] {
  const paired: AgentMessage[] = [];
  const taken = new Set<string>();
  let open: OpenCalls | undefined;
  const close = (): void => {
    if (open !== undefined) paired.push(open.toMessage());
    open = undefined;
  };
  for (const message of messages) {
    if (message.role === "tool") {
      open?.add(message.results);
      continue;
    }
    close();
    if (message.role === "user") {
      paired.push(message);
      continue;
    }
    const calls = new OpenCalls(taken);
    paired.push({ role: "assistant", parts: message.parts.map((part) => calls.rename(part)) });
    if (calls.size > 0) open = calls;
  }
  close();
  return paired;
}

/** The calls of one message, which later ones do not touch: some servers count their ids from the start each time. */
class OpenCalls {
  readonly #taken: Set<string>;
  readonly #calls: { readonly id: string; readonly call: CallPart; result?: CallResult }[] = [];

  constructor(taken: Set<string>) {
    this.#taken = taken;
  }

  get size(): number {
    return this.#calls.length;
  }

  rename(part: AssistantPart): AssistantPart {
    if (part.type !== "call") return part;
    const id = uniqueId(part.id, this.#taken);
    this.#calls.push({ id, call: part });
    return { ...part, id };
  }

  add(results: readonly CallResult[]): void {
    for (const result of results) {
      const open = this.#calls.find((one) => one.call.id === result.id && one.result === undefined);
      if (open !== undefined) open.result = result;
    }
  }

  toMessage(): ToolMessage {
    return {
      role: "tool",
      results: this.#calls.map(({ id, call, result }) =>
        result === undefined
          ? { id, name: call.name, content: [{ type: "text", text: NO_RESULT }], isError: true }
          : { ...result, id, name: call.name },
      ),
    };
  }
}

function uniqueId(id: string, taken: Set<string>): string {
  const safe = id.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_ID_LENGTH) || "call";
  let free = safe;
  for (let next = 2; taken.has(free); next++) {
    const end = `_${next}`;
    free = safe.slice(0, MAX_ID_LENGTH - end.length) + end;
  }
  taken.add(free);
  return free;
}

/** A block of content as text for the model. */
function blockText(block: ContentBlock): string {
  // Half a character would make the provider refuse the request.
  return describeForModel(block).toWellFormed();
}

function describeForModel(block: ContentBlock): string {
  if (block.type === "resource" && isJsonObject(block["resource"])) {
    const { uri, text } = block["resource"];
    if (typeof text === "string") return typeof uri === "string" ? fenced(oneLine(uri), text) : text;
  }
  if (block.type === "resource_link") {
    const words = [block["title"] ?? block["name"], block["description"]].filter((word) => typeof word === "string");
    return [describeBlock(block), ...words.map(oneLine)].join(" ");
  }
  return describeBlock(block);
}

/** The fence is longer than any in the text, so that the text cannot end it. */
function fenced(uri: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `[resource: ${uri}]\n${fence}\n${text}\n${fence}`;
}

function oneLine(text: string): string {
  return text
    .slice(0, 1024)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim();
}

interface Image {
  readonly mediaType: string;
  /** Base64. */
  readonly data: string;
}

const ACCEPTED_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** How the four begin in base64. */
const TYPE_BY_PREFIX: readonly (readonly [string, string])[] = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
];

const MEGABYTE = 1024 * 1024;

/**
 * The image of a block or of an embedded resource; undefined if there is none that the provider accepts. An image that it
 * does not accept would make it refuse the whole conversation, in every later step too.
 */
export function imageOf(block: ContentBlock, protocol: Protocol): Image | undefined {
  const found = rawImage(block);
  if (found === undefined || !isBase64(found.data)) return undefined;
  if (found.data.length * 0.75 > (protocol === "anthropic" ? 5 : 15) * MEGABYTE) return undefined;
  // The type is what the image is, not what its server calls it: Anthropic refuses a JPEG that is called a PNG.
  const real = TYPE_BY_PREFIX.find(([beginning]) => found.data.startsWith(beginning))?.[1] ?? found.mediaType;
  return ACCEPTED_TYPES.has(real) ? { mediaType: real, data: found.data } : undefined;
}

/**
 * Searches for what does not belong. A pattern for the whole text needs stack for each character once V8 stops
 * optimizing patterns, as it does in a process that has compiled many, and throws for a large image.
 */
function isBase64(text: string): boolean {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const body = text.slice(0, text.length - padding);
  return body !== "" && !/[^A-Za-z0-9+/]/.test(body);
}

function rawImage(block: ContentBlock): Image | undefined {
  if (block.type === "image") return toImage(block["data"], block["mimeType"]);
  if (block.type !== "resource" || !isJsonObject(block["resource"])) return undefined;
  const { blob, mimeType } = block["resource"];
  return typeof mimeType === "string" && mimeType.startsWith("image/") ? toImage(blob, mimeType) : undefined;
}

function toImage(data: unknown, mediaType: unknown): Image | undefined {
  if (typeof data !== "string" || typeof mediaType !== "string") return undefined;
  return { data: data.replaceAll(/\s+/g, ""), mediaType: mediaType.toLowerCase() };
}
