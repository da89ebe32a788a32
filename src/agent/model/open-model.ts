/** Opens the model of a setting: its address, its key, and whether it accepts images. */
import type { ModelEndpoint, ModelSetting } from "../../model/config.ts";
import type { Clock } from "../../base/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isLoopback } from "../../base/network-address.ts";
import type { ChatModel } from "./chat-model.ts";
import {
  findProvider,
  isSafeForCredentials,
  knownProvider,
  type KnownProvider,
  type ModelAccess,
  modelAddress,
  openProvider,
  type Protocol,
  providerAddress,
  supportsImages,
} from "./providers.ts";
import { StreamedModel } from "./streamed-model.ts";

export interface OpenModelFrom {
  /** Resolves references in a text, such as `secret://…`. */
  resolve(text: string): Promise<string>;
  readonly env: NodeJS.ProcessEnv;
  /** How often one step is asked for again. */
  readonly retries: number;
  readonly clock: Clock;
  /** The global one if absent. */
  readonly fetch?: typeof globalThis.fetch;
}

/** `<provider>/<model>`, for lists. Opens nothing; a name that it cannot parse is returned unchanged. */
export function modelId(setting: ModelSetting): string {
  if (typeof setting !== "string") return `${setting.provider ?? "openai-compatible"}/${setting.model}`;
  const slash = setting.indexOf("/");
  const provider = knownProvider(setting.slice(0, slash));
  return provider === undefined ? setting : provider.name + setting.slice(slash);
}

/**
 * Rejects with `unauthorized`, `details.variable` and a hint that says what to set where a key is missing, and with
 * `invalid_config` for a setting that cannot be used. Nothing is sent yet.
 */
export async function openModel(setting: ModelSetting, from: OpenModelFrom): Promise<ChatModel> {
  const reach = typeof setting === "string" ? namedModelAccess(setting, from) : await endpointAccess(setting, from);
  const seeing = typeof setting === "string" ? undefined : setting.images;
  return new StreamedModel({
    id: modelId(setting),
    reach,
    images: seeing ?? supportsImages(reach.model),
    sdk: await openProvider(reach),
    retries: from.retries,
    clock: from.clock,
  });
}

function namedModelAccess(setting: string, from: OpenModelFrom): ModelAccess {
  const { provider: name, model } = splitModelName(setting);
  const provider = findProvider(name);
  const url = providerAddress(provider, from.env);
  const key = keyOf(provider, from.env);
  if (key === undefined && provider.keys.length > 0) throw missingKeyError(provider, model);
  if (key !== undefined && !isSafeForCredentials(url)) throw plainHttpError(url);
  return {
    protocol: provider.protocol,
    model,
    url,
    own: url.href === provider.baseUrl,
    key,
    headers: {},
    secrets: key === undefined ? [] : [key],
    keyHint: keyHint(provider),
    startHint: provider.start,
    fetch: from.fetch ?? globalThis.fetch,
  };
}

async function endpointAccess(setting: Exclude<ModelSetting, string>, from: OpenModelFrom): Promise<ModelAccess> {
  const protocol: Protocol = setting.provider ?? "openai-compatible";
  const provider = knownProvider(protocol);
  const url = await endpointUrl(setting, provider, protocol, from);
  const given = setting.apiKey === undefined ? undefined : (await from.resolve(setting.apiKey)).trim();
  if (given === "") {
    throw new ToolcribError("unauthorized", `The apiKey of the model ${setting.model} is empty.`, {
      hint: "Set the value that its reference points to, or remove apiKey if the endpoint needs no key.",
      details: { variable: "apiKey" },
    });
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(setting.headers ?? {})) headers[name] = await from.resolve(value);
  const credentials = Object.entries(headers).filter(
    ([name, value]) => CREDENTIAL.test(name) || value !== setting.headers?.[name],
  );
  if (!isSafeForCredentials(url) && (given !== undefined || credentials.length > 0)) throw plainHttpError(url);
  const ofEnv = provider && keyOf(provider, from.env);
  const isMeant = setting.baseUrl === undefined ? isSafeForCredentials(url) : canUseEnvironmentKey(provider, url);
  const key = given ?? (isMeant ? ofEnv : undefined);
  if (key === undefined && setting.baseUrl === undefined && provider !== undefined && credentials.length === 0) {
    throw missingKeyError(provider, setting.model);
  }
  return {
    protocol,
    model: setting.model,
    url,
    own: url.href === provider?.baseUrl,
    key,
    headers,
    // Any header may be a credential, whatever its name.
    secrets: [...(key === undefined ? [] : [key]), ...Object.values(headers)],
    keyHint: endpointHint(provider, ofEnv !== undefined && !isMeant),
    fetch: from.fetch ?? globalThis.fetch,
  };
}

/**
 * Whether a key from the environment may be sent to an address from the config: to the provider's own, and to this machine. A config may
 * come with a folder, and must not redirect the key just by setting an address.
 */
function canUseEnvironmentKey(provider: KnownProvider | undefined, url: URL): boolean {
  return isLoopback(url.hostname) || (provider !== undefined && new URL(provider.baseUrl).origin === url.origin);
}

function endpointHint(provider: KnownProvider | undefined, isKeyHeldBack: boolean): string {
  const [variable] = provider?.keys ?? [];
  if (provider === undefined || variable === undefined) return "Set apiKey of this model in the config.";
  if (!isKeyHeldBack) return keyHint(provider);
  return (
    `A key from the environment is not sent to an address from the config. To allow it for this model, set ` +
    `"apiKey": "\${${variable}}".`
  );
}

/** Names of headers that carry credentials. */
const CREDENTIAL = /auth|key|token|secret|cookie|password/i;

async function endpointUrl(
  { baseUrl, model }: Pick<ModelEndpoint, "model"> & { readonly baseUrl?: string | undefined },
  provider: KnownProvider | undefined,
  protocol: Protocol,
  from: OpenModelFrom,
): Promise<URL> {
  if (baseUrl !== undefined) return modelAddress(await from.resolve(baseUrl), protocol);
  if (provider !== undefined) return providerAddress(provider, from.env);
  throw new ToolcribError("invalid_config", `The model ${model} has no baseUrl.`, {
    hint: "Set baseUrl, such as http://127.0.0.1:11434/v1, or name the provider.",
  });
}

function splitModelName(setting: string): { readonly provider: string; readonly model: string } {
  const slash = setting.indexOf("/");
  const model = setting.slice(slash + 1).trim();
  if (slash > 0 && model !== "") return { provider: setting.slice(0, slash).trim(), model };
  throw new ToolcribError("invalid_config", `${JSON.stringify(setting.slice(0, 100))} is not the name of a model.`, {
    hint: "Write `<provider>/<model>`, such as anthropic/claude-sonnet-4-5 or ollama/qwen3.",
  });
}

function keyOf(provider: KnownProvider, env: NodeJS.ProcessEnv): string | undefined {
  return provider.keys.map((name) => env[name]?.trim()).find((value) => value !== undefined && value !== "");
}

function keyHint(provider: KnownProvider): string {
  const [variable] = provider.keys;
  if (variable === undefined) return `${provider.title} requires a key: write the model as { baseUrl, model, apiKey }.`;
  return `Set ${provider.keys.join(" or ")} in the environment, or apiKey of the model in the config, by reference.`;
}

function missingKeyError(provider: KnownProvider, model: string): ToolcribError {
  return new ToolcribError("unauthorized", `No API key is set for ${provider.title}, so ${model} cannot be used.`, {
    hint:
      `Set ${provider.keys.join(" or ")} in the environment, or write agent.model in the config as ` +
      `{ "provider": "${provider.protocol}", "model": "${model}", "apiKey": "secret://…" }.`,
    details: { variable: provider.keys[0], provider: provider.name },
  });
}

function plainHttpError(url: URL): ToolcribError {
  return new ToolcribError(
    "invalid_config",
    `The model's address ${url.host} uses plain http, and credentials would be sent to it.`,
    {
      hint: "Use https. Plain http is allowed on loopback, and elsewhere only without a key or credentials in headers.",
    },
  );
}
