/**
 * The provider packages of `ai`. The model is asked through their `doStream` and not through `streamText`: that one writes
 * warnings to the console, which may be a protocol's stream, and has retries and repairs of its own that hide what happened.
 */
import type { AnthropicProvider } from "@ai-sdk/anthropic";
import type { Protocol } from "./providers.ts";

/** What all providers of `ai` 7 give; named here because the package that names it is none of ours. */
export type SdkModel = ReturnType<AnthropicProvider["languageModel"]>;
export type SdkCall = Parameters<SdkModel["doStream"]>[0];
export type SdkPart =
  Awaited<ReturnType<SdkModel["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;
export type SdkTool = Extract<NonNullable<SdkCall["tools"]>[number], { type: "function" }>;
export type SdkMessage = SdkCall["prompt"][number];

/** How a model is reached. */
export interface Reach {
  readonly protocol: Protocol;
  readonly model: string;
  readonly url: URL;
  /** Whether that is the provider's own address. */
  readonly own: boolean;
  readonly key: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Must not stand in any message. */
  readonly secrets: readonly string[];
  /** What to do about a key that is not accepted. */
  readonly keyHint: string;
  /** What to do about a server on this machine that does not answer. */
  readonly startHint?: string | undefined;
  readonly fetch: typeof globalThis.fetch;
}

/** Under which a provider's own words, such as signatures, are kept and go back. */
export const META_KEY: Readonly<Record<Protocol, string>> = {
  anthropic: "anthropic",
  openai: "openai",
  google: "google",
  "openai-compatible": "compatible",
};

/** OpenAI itself has tools together with reasoning only there; what others put at its address speaks the older one. */
export function speaksResponses({ protocol, own, key }: Pick<Reach, "protocol" | "own" | "key">): boolean {
  return protocol === "openai" && own && key !== undefined;
}

export async function openProvider(reach: Reach): Promise<SdkModel> {
  const { model, key, headers } = reach;
  const common = { baseURL: reach.url.href, headers: { ...headers }, fetch: withoutRedirects(reach.fetch) };
  switch (reach.protocol) {
    case "anthropic": {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      return createAnthropic({ ...common, apiKey: key ?? "" }).languageModel(model);
    }
    case "google": {
      const { createGoogle } = await import("@ai-sdk/google");
      return createGoogle({ ...common, apiKey: key ?? "" }).languageModel(model);
    }
    case "openai": {
      // Without a key this package sends an empty one; the other one sends none.
      if (key === undefined) return compatible(model, common);
      const { createOpenAI } = await import("@ai-sdk/openai");
      const provider = createOpenAI({ ...common, apiKey: key });
      return speaksResponses(reach) ? provider.responses(model) : provider.chat(model);
    }
    case "openai-compatible":
      return compatible(model, { ...common, ...(key === undefined ? {} : { apiKey: key }) });
  }
}

interface Common {
  readonly baseURL: string;
  readonly headers: Record<string, string>;
  readonly fetch: typeof globalThis.fetch;
  readonly apiKey?: string;
}

async function compatible(model: string, common: Common): Promise<SdkModel> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  return createOpenAICompatible({ ...common, name: META_KEY["openai-compatible"], includeUsage: true }).chatModel(
    model,
  );
}

/** A redirect would take the key along to another host: `fetch` drops `authorization` there, but not `x-api-key`. */
function withoutRedirects(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (input, init) => fetch(input, { ...init, redirect: "manual" });
}
