import { describe, expect, it } from "vitest";
import { modelId } from "../../../src/agent/model/open-model.ts";
import { findProvider, modelAddress, providerAddress, supportsImages } from "../../../src/agent/model/providers.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import type { ModelSetting } from "../../../src/model/config.ts";
import { startScriptedModel, text } from "../../../src/testing/index.ts";
import { ask, KEY, open, textOf, user } from "./opened-model.ts";

async function refused(setting: ModelSetting, env: NodeJS.ProcessEnv = {}): Promise<ToolcribError> {
  const error: unknown = await open({ setting, env }).catch((thrown: unknown) => thrown);
  if (error instanceof ToolcribError) return error;
  throw new Error("expected it to be refused");
}

it("names models in one way, also those that cannot be opened", () => {
  expect(modelId("anthropic/claude-sonnet-4-5")).toBe("anthropic/claude-sonnet-4-5");
  expect(modelId("gemini/gemini-2.5-pro")).toBe("google/gemini-2.5-pro");
  expect(modelId("lmstudio/qwen/qwen3-8b")).toBe("lmstudio/qwen/qwen3-8b");
  expect(modelId("nobody/knows")).toBe("nobody/knows");
  expect(modelId("nothing")).toBe("nothing");
  expect(modelId({ model: "m", baseUrl: "http://localhost:1" })).toBe("openai-compatible/m");
  expect(modelId({ model: "m", provider: "anthropic" })).toBe("anthropic/m");
});

it("[agent-04a] tells what providers there are for one that is not known", async () => {
  const error = await refused("antropic/claude-sonnet-4-5");
  expect(error.code).toBe("invalid_config");
  expect(error.hint).toContain("Did you mean anthropic?");
  expect(error.hint).toContain("ollama, lmstudio, llamacpp, vllm");
  expect((await refused("claude-sonnet-4-5")).code).toBe("invalid_config");
});

it.each([
  ["anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"],
  ["openai/gpt-5", "OPENAI_API_KEY"],
  ["google/gemini-3-pro", "GOOGLE_GENERATIVE_AI_API_KEY"],
] as const)("[agent-04a] says what to set when the key for %s is missing", async (setting, variable) => {
  const error = await refused(setting, { [variable]: "  " });
  expect(error).toMatchObject({ code: "unauthorized", details: { variable } });
  expect(error.hint).toContain(variable);
  expect(error.hint).toContain("apiKey");
  const [provider, model] = setting.split("/");
  // The same without the short form.
  expect(await refused({ provider: provider as "openai", model: model ?? "" })).toMatchObject({
    details: { variable },
  });
});

describe("an endpoint", () => {
  it("[agent-04a] gets its key and headers by reference, at an address without the version", async () => {
    await using server = await startScriptedModel([text("Hello.")], { apiKey: KEY });
    const model = await open({
      setting: { baseUrl: "env:AT", model: "qwen3:8b", apiKey: "env:SECRET", headers: { "x-team": "env:TEAM" } },
      env: { AT: `${server.url}/`, SECRET: KEY, TEAM: "tools" },
    });
    expect(model).toMatchObject({ id: "openai-compatible/qwen3:8b", provider: "openai", images: false });
    expect(textOf(await ask(model, [user("Hi")]))).toBe("Hello.");
    expect(server.requests[0]).toMatchObject({ model: "qwen3:8b", headers: { "x-team": "tools" } });
  });

  it("needs no key at an address of its own, and sends none", async () => {
    await using server = await startScriptedModel([text("Hello.")], { repeatLast: true });
    for (const provider of ["openai-compatible", "openai", "anthropic", "google"] as const) {
      const model = await open({ setting: { provider, baseUrl: server.url, model: "m" } });
      expect(textOf(await ask(model, [user("Hi")]))).toBe("Hello.");
    }
    expect(server.problems).toEqual([]);
  });

  it("is refused where credentials would go over plain http, but not without any", async () => {
    const baseUrl = "http://192.168.1.20:11434/v1";
    expect(await refused({ baseUrl, model: "m", apiKey: KEY })).toMatchObject({ code: "invalid_config" });
    expect(await refused({ baseUrl, model: "m", headers: { Authorization: "Bearer x" } })).toMatchObject({
      code: "invalid_config",
    });
    expect(await refused({ baseUrl, model: "m", headers: { "x-a": "env:A" } }, { A: "b" })).toMatchObject({
      code: "invalid_config",
    });
    await expect(open({ setting: { baseUrl, model: "m", headers: { "x-a": "b" } } })).resolves.toBeDefined();
    // The key of the environment is for another address; it stays here.
    const env = { ANTHROPIC_API_KEY: KEY };
    await expect(open({ setting: { provider: "anthropic", baseUrl, model: "m" }, env })).resolves.toBeDefined();
    expect(await refused("openai/gpt-5", { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: "http://10.0.0.1/v1" })).toMatchObject(
      {
        code: "invalid_config",
      },
    );
  });

  it("gets no key of the environment at an address that only the config names, unless the config names the key", async () => {
    const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: "https://gateway.example.com" };
    const sent = async (setting: Exclude<ModelSetting, string>): Promise<{ key: string | null; error: unknown }> => {
      let key: string | null = null;
      const fetch: typeof globalThis.fetch = async (_url, init) => {
        key = new Headers(init?.headers).get("x-api-key");
        return Response.json({ error: { message: "bad key" } }, { status: 401 });
      };
      const model = await open({ setting: { provider: "anthropic", ...setting }, env, fetch });
      const error: unknown = await ask(model, [user("Hi")]).catch((thrown: unknown) => thrown);
      return { key, error };
    };
    const elsewhere = await sent({ model: "m", baseUrl: "https://evil.example.com/v1" });
    expect(elsewhere.key ?? "").toBe("");
    expect(elsewhere.error).toMatchObject({
      code: "unauthorized",
      hint: expect.stringContaining('"apiKey": "${ANTHROPIC_API_KEY}"'),
    });
    const named = { model: "m", baseUrl: "https://gateway.example.com/v1", apiKey: "env:ANTHROPIC_API_KEY" };
    expect((await sent(named)).key).toBe(KEY);
    expect((await sent({ model: "m", baseUrl: "https://api.anthropic.com" })).key).toBe(KEY);
    expect((await sent({ model: "m", baseUrl: "http://localhost:1" })).key).toBe(KEY);
    expect((await sent({ model: "m" })).key).toBe(KEY);
  });

  it("says nothing of its headers when it fails, whatever they are called", async () => {
    const fetch: typeof globalThis.fetch = async (_url, init) => {
      const message = `no team ${new Headers(init?.headers).get("x-extra")}`;
      return Response.json({ error: { message } }, { status: 403 });
    };
    const model = await open({
      setting: { baseUrl: "https://example.com", model: "m", headers: { "x-extra": "custom-value-1" } },
      fetch,
    });
    const error: unknown = await ask(model, [user("Hi")]).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ message: expect.stringContaining("no team ***") });
  });

  it.each([
    ["ftp://example.com", "not a valid http"],
    ["not an address", "not a valid http"],
    ["https://user:pass@example.com/v1", "plain address"],
    ["https://example.com/v1?key=abc", "plain address"],
  ])("is refused at %s", async (baseUrl, why) => {
    const error = await refused({ baseUrl, model: "m" });
    expect(error.code).toBe("invalid_config");
    expect(error.message).toContain(why);
    expect(JSON.stringify(error.toObject())).not.toMatch(/pass|abc/);
  });

  it("is refused without an address, and with a key that is empty", async () => {
    expect(await refused({ model: "m" })).toMatchObject({ code: "invalid_config" });
    expect(await refused({ baseUrl: "https://example.com", model: "m", apiKey: "env:NONE" })).toMatchObject({
      code: "unauthorized",
    });
  });
});

it.each([
  ["http://127.0.0.1:1234", "openai-compatible", "http://127.0.0.1:1234/v1"],
  ["https://api.example.com/proxy/", "anthropic", "https://api.example.com/proxy"],
  ["https://gemini.example.com", "google", "https://gemini.example.com/v1beta"],
] as const)("reads the address %s for %s", (written, protocol, read) => {
  expect(modelAddress(written, protocol).href).toBe(read);
});

it.each([
  [undefined, "http://127.0.0.1:11434/v1"],
  ["0.0.0.0", "http://127.0.0.1:11434/v1"],
  ["box", "http://box:11434/v1"],
  ["192.168.1.5:8080", "http://192.168.1.5:8080/v1"],
  ["https://ollama.example.com", "https://ollama.example.com/v1"],
  ["http://[::]:11434", "http://[::1]:11434/v1"],
])("reads OLLAMA_HOST %s as Ollama does", (value, address) => {
  const env = value === undefined ? {} : { OLLAMA_HOST: value };
  expect(providerAddress(findProvider("ollama"), env).href).toBe(address);
});

it("names the variable that holds no address", () => {
  expect(() => providerAddress(findProvider("ollama"), { OLLAMA_HOST: "a b" })).toThrow("OLLAMA_HOST");
});

it("knows by their names which models see", () => {
  const seeing = ["claude-sonnet-4-5", "anthropic/claude-opus-4", "gpt-4o-mini", "gpt-4.1", "gpt-5.2", "o3", "o4-mini"];
  const blind = ["gpt-4", "gpt-3.5-turbo", "gpt-oss:20b", "o1-mini", "o3-mini", "qwen3:8b", "llama3.3", "olmo-2"];
  for (const model of [...seeing, "gemini-2.5-pro", "qwen2.5-vl:7b", "llava:13b"])
    expect([model, supportsImages(model)]).toEqual([model, true]);
  for (const model of blind) expect([model, supportsImages(model)]).toEqual([model, false]);
});
