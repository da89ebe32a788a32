/** The known model providers: their addresses, keys, packages and capabilities. */
import type { AnthropicProvider } from "@ai-sdk/anthropic";
import { isLoopback } from "../../base/network-address.ts";
import { nearMatches } from "../../base/near-matches.ts";
import type { ModelEndpoint } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";

/** The protocol on the wire. */
export type Protocol = ModelEndpoint["provider"];

export interface KnownProvider {
  readonly name: string;
  /** For people. */
  readonly title: string;
  readonly protocol: Protocol;
  readonly baseUrl: string;
  /** Variables with its key; the first that is set is used. Empty if it needs no key. */
  readonly keys: readonly string[];
  /** The environment variable that overrides its address, if there is one. */
  readonly addressVariable?: string;
  /** How to start it, for providers on this machine. */
  readonly start?: string;
}

const KNOWN: readonly KnownProvider[] = [
  {
    name: "anthropic",
    title: "Anthropic",
    protocol: "anthropic",
    baseUrl: "https://api.anthropic.com/v1",
    keys: ["ANTHROPIC_API_KEY"],
    addressVariable: "ANTHROPIC_BASE_URL",
  },
  {
    name: "openai",
    title: "OpenAI",
    protocol: "openai",
    baseUrl: "https://api.openai.com/v1",
    keys: ["OPENAI_API_KEY"],
    addressVariable: "OPENAI_BASE_URL",
  },
  {
    name: "google",
    title: "Google",
    protocol: "google",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    keys: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
  },
  {
    ...local("ollama", "Ollama", 11434, "Start it with `ollama serve`, and fetch the model with `ollama pull`."),
    addressVariable: "OLLAMA_HOST",
  },
  local("lmstudio", "LM Studio", 1234, "Start its server with `lms server start`."),
  local("llamacpp", "llama.cpp", 8080, "Start it with `llama-server`; tools need `--jinja`."),
  local("vllm", "vLLM", 8000, "Start it with `vllm serve`; tools need `--enable-auto-tool-choice`."),
];

const ALIASES: Readonly<Record<string, string>> = {
  gemini: "google",
  "lm-studio": "lmstudio",
  "llama.cpp": "llamacpp",
};

function local(name: string, title: string, port: number, start: string): KnownProvider {
  return { name, title, protocol: "openai-compatible", baseUrl: `http://127.0.0.1:${port}/v1`, keys: [], start };
}

export function knownProvider(name: string): KnownProvider | undefined {
  const lower = name.toLowerCase();
  const plain = Object.hasOwn(ALIASES, lower) ? ALIASES[lower] : lower;
  return KNOWN.find((provider) => provider.name === plain);
}

/** Throws `invalid_config` with what there is. */
export function findProvider(name: string): KnownProvider {
  const found = knownProvider(name);
  if (found !== undefined) return found;
  const names = KNOWN.map((provider) => provider.name);
  const near = nearMatches(name, [...names, ...Object.keys(ALIASES)], 1)[0];
  throw new ToolcribError("invalid_config", `There is no model provider ${JSON.stringify(name.slice(0, 100))}.`, {
    hint:
      `${near === undefined ? "" : `Did you mean ${near}? `}Providers: ${names.join(", ")}. ` +
      "Any other endpoint is written as { baseUrl, model, apiKey }.",
    details: { providers: names, near },
  });
}

/**
 * The address without a slash at its end. One without a path gets the version that its protocol has there, because that is
 * how most people write it.
 */
export function modelAddress(text: string, protocol: Protocol): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new ToolcribError("invalid_config", "The model's baseUrl is not a valid http or https address.", {
      hint: "Write it in full, such as http://127.0.0.1:11434/v1.",
    });
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new ToolcribError("invalid_config", `The model's baseUrl at ${url.host} must be a plain address.`, {
      hint: "Leave out the user, the query and the fragment. Credentials belong in apiKey or headers, by reference.",
    });
  }
  const path = url.pathname.replace(/\/+$/, "");
  url.pathname = path === "" ? (protocol === "google" ? "/v1beta" : "/v1") : path;
  return url;
}

/** Whether a key may be sent there. */
export function isSafeForCredentials(url: URL): boolean {
  return url.protocol === "https:" || isLoopback(url.hostname);
}

/** The provider's address, moved if its variable says so. */
export function providerAddress(provider: KnownProvider, env: NodeJS.ProcessEnv): URL {
  const variable = provider.addressVariable;
  const moved = variable === undefined ? undefined : env[variable]?.trim();
  if (variable === undefined || moved === undefined || moved === "") {
    return modelAddress(provider.baseUrl, provider.protocol);
  }
  try {
    return modelAddress(variable === "OLLAMA_HOST" ? ollamaAddress(moved) : moved, provider.protocol);
  } catch (error) {
    throw new ToolcribError("invalid_config", `${variable} is not an address that a model can be reached at.`, {
      hint: `Write it in full, such as ${provider.baseUrl}, or unset it.`,
      cause: error,
    });
  }
}

/** As Ollama parses it: scheme and port are optional, and an unspecified listen address means this machine. */
function ollamaAddress(text: string): string {
  const hasScheme = /^https?:\/\//i.test(text);
  if (hasScheme && !URL.canParse(text)) return text;
  if (!hasScheme && !URL.canParse(`http://${text}`)) return text;
  const url = new URL(hasScheme ? text : `http://${text}`);
  if (!hasScheme && !/:\d+$/.test(text.replace(/\/.*$/, ""))) url.port = "11434";
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (url.hostname === "[::]") url.hostname = "[::1]";
  return url.href;
}

/** The model type of `ai` 7. Derived, because the package that exports it is not a dependency. */
export type SdkModel = ReturnType<AnthropicProvider["languageModel"]>;
export type SdkCall = Parameters<SdkModel["doStream"]>[0];
export type SdkPart =
  Awaited<ReturnType<SdkModel["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;
export type SdkTool = Extract<NonNullable<SdkCall["tools"]>[number], { type: "function" }>;
export type SdkMessage = SdkCall["prompt"][number];

/** How a model is reached. */
export interface ModelAccess {
  readonly protocol: Protocol;
  readonly model: string;
  readonly url: URL;
  /** Whether that is the provider's own address. */
  readonly own: boolean;
  readonly key: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Must not appear in any message. */
  readonly secrets: readonly string[];
  /** The hint for a key that is not accepted. */
  readonly keyHint: string;
  /** The hint for a server on this machine that does not respond. */
  readonly startHint?: string;
  readonly fetch: typeof globalThis.fetch;
}

/** The key of a provider's metadata, such as signatures, which is stored and sent back. */
export const META_KEY: Readonly<Record<Protocol, string>> = {
  anthropic: "anthropic",
  openai: "openai",
  google: "google",
  "openai-compatible": "compatible",
};

/** OpenAI itself supports tools together with reasoning only in the Responses API; other servers speak the older API. */
export function usesResponsesApi({ protocol, own, key }: Pick<ModelAccess, "protocol" | "own" | "key">): boolean {
  return protocol === "openai" && own && key !== undefined;
}

/**
 * Opens the package of `ai` for the provider. The model is asked through `doStream`, not `streamText`: that function
 * writes warnings to the console, which may be the stream of a protocol, and its own retries and repairs hide what
 * happened.
 */
export async function openProvider(reach: ModelAccess): Promise<SdkModel> {
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
      if (key === undefined) return openCompatible(model, common);
      const { createOpenAI } = await import("@ai-sdk/openai");
      const provider = createOpenAI({ ...common, apiKey: key });
      return usesResponsesApi(reach) ? provider.responses(model) : provider.chat(model);
    }
    case "openai-compatible":
      return openCompatible(model, { ...common, ...(key === undefined ? {} : { apiKey: key }) });
  }
}

interface CommonOptions {
  readonly baseURL: string;
  readonly headers: Record<string, string>;
  readonly fetch: typeof globalThis.fetch;
  readonly apiKey?: string;
}

async function openCompatible(model: string, common: CommonOptions): Promise<SdkModel> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  return createOpenAICompatible({ ...common, name: META_KEY["openai-compatible"], includeUsage: true }).chatModel(
    model,
  );
}

/** A redirect would take the key along to another host: `fetch` drops `authorization` there, but not `x-api-key`. */
function withoutRedirects(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (input, init) => fetch(input, { ...init, redirect: "manual" });
}

/** Models that are known to look at images. A wrong yes makes the provider refuse the whole request, so others are a no. */
const IMAGE_MODELS: readonly RegExp[] = [
  /^claude-(?!2|instant)/,
  /^(chatgpt-)?gpt-(4o|4\.[1-9]|4-turbo|[5-9]|\d\d)/,
  /^o[1-9](?!-mini|-preview|\d|[a-z])/,
  /^o4-mini/,
  /^gemini-/,
  /llava|pixtral|[-_.\d]vl\b|\bvision\b/,
];

/** By its name, with or without a maker's prefix such as `anthropic/`. */
export function supportsImages(model: string): boolean {
  const name = model.toLowerCase().split("/").at(-1) ?? "";
  return IMAGE_MODELS.some((pattern) => pattern.test(name));
}
