/** The providers that a model can be named by, and what each of them takes for granted. */
import { nearMatches } from "../../catalog/near-matches.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ModelEndpoint } from "../../model/agent-config.ts";

/** The protocol on the wire. */
export type Protocol = ModelEndpoint["provider"];

export interface KnownProvider {
  readonly name: string;
  /** For people. */
  readonly title: string;
  readonly protocol: Protocol;
  readonly baseUrl: string;
  /** Variables that hold its key, the first that is set counts. None: it needs no key. */
  readonly keys: readonly string[];
  /** The variable that moves it to another address, where its field has one. */
  readonly addressVariable?: string;
  /** What makes it answer, for those that run on this machine. */
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
