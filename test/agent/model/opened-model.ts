/** Models over real HTTP, each by the way that people name it, all at one scripted server. */
import { openModel, type OpenModelFrom } from "../../../src/agent/model/open-model.ts";
import type {
  AgentMessage,
  AssistantMessage,
  AssistantPart,
  ChatModel,
  ModelStep,
  StepPart,
} from "../../../src/agent/model/chat-model.ts";
import type { ModelSetting } from "../../../src/model/config.ts";
import type { Clock } from "../../../src/base/clock.ts";

export const KEY = "test-key-0123456789";

/** Every wait is over at once, and written down. */
export class ImpatientClock implements Clock {
  readonly waits: number[] = [];

  now(): number {
    return 0;
  }

  after(ms: number, task: () => void): () => void {
    this.waits.push(ms);
    const soon = setImmediate(task);
    return () => clearImmediate(soon);
  }
}

interface Way {
  readonly setting: ModelSetting;
  readonly env?: NodeJS.ProcessEnv;
  readonly fetch?: typeof fetch;
}

/** One way for each protocol. The addresses of OpenAI and Google cannot be moved, so the request is. */
export function ways(url: string): Record<"anthropic" | "openai" | "google" | "compatible" | "openai-chat", Way> {
  return {
    anthropic: {
      setting: "anthropic/claude-sonnet-4-5",
      env: { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: url },
    },
    openai: { setting: "openai/gpt-5", env: { OPENAI_API_KEY: KEY }, fetch: fetchAt(url) },
    "openai-chat": { setting: "openai/gpt-4o", env: { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${url}/v1` } },
    google: { setting: "gemini/gemini-3-pro", env: { GEMINI_API_KEY: KEY }, fetch: fetchAt(url) },
    compatible: { setting: { baseUrl: url, model: "qwen2.5-vl", apiKey: "env:KEY" }, env: { KEY } },
  };
}

export const WAYS = ["anthropic", "openai", "openai-chat", "google", "compatible"] as const;

function fetchAt(url: string): typeof fetch {
  return (input, init) => {
    const meant = new URL(input instanceof Request ? input.url : input);
    return fetch(new URL(meant.pathname + meant.search, url), init);
  };
}

export function open(way: Way, more: Partial<OpenModelFrom> = {}): Promise<ChatModel> {
  const env = way.env ?? {};
  return openModel(way.setting, {
    env,
    resolve: (text) => Promise.resolve(text.startsWith("env:") ? (env[text.slice(4)] ?? "") : text),
    retries: 3,
    clock: new ImpatientClock(),
    fetch: way.fetch,
    ...more,
  });
}

export function user(text: string): AgentMessage {
  return { role: "user", content: [{ type: "text", text }] };
}

export async function ask(
  model: ChatModel,
  messages: readonly AgentMessage[],
  more: Partial<ModelStep> = {},
): Promise<StepPart[]> {
  const parts: StepPart[] = [];
  const signal = new AbortController().signal;
  for await (const part of model.step({ system: "Be brief.", messages, tools: [], signal, ...more })) parts.push(part);
  return parts;
}

export function textOf(parts: readonly StepPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

export function callsOf(parts: readonly StepPart[]): Extract<StepPart, { type: "call" }>[] {
  return parts.filter((part) => part.type === "call");
}

/** What a loop keeps of an answer: the parts as they came. */
export function answerOf(parts: readonly StepPart[]): AssistantMessage {
  return {
    role: "assistant",
    parts: parts.flatMap((part): AssistantPart[] => {
      if (part.type === "text" || part.type === "thought") return [part];
      if (part.type !== "call") return [];
      const { id, name, input = {}, meta } = part;
      return [{ type: "call", id, name, input, meta }];
    }),
  };
}
