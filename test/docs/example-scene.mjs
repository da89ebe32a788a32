/**
 * Runs examples of the documents, one after the other: `node example-scene.mjs <scene> <file…>`. The names that the text around
 * an example introduces are real things here, as globals: a hub with servers, the SDKs of the providers, models that speak their
 * protocols. What an example throws ends the run; what it left behind is looked at after it.
 */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createHub, ToolRegistry } from "toolcrib";
import { createAgent } from "toolcrib/agent";
import { call, startFakeServer, startScriptedModel, text } from "toolcrib/testing";

const [folder = "", ...files] = process.argv.slice(2);
const sum = call("everything__get-sum", { a: 2, b: 40 });
const tickets = await startFakeServer({ tools: { list: () => "none" } });

/** What examples with this text need, and what they leave. Others have to run to their end. */
const EXPECTED = [
  ["openai.chat", { steps: [sum], check: () => assert.match(JSON.stringify(globalThis.messages.at(-1)), /40 is 42/) }],
  [
    "import { runAnthropicCall",
    { steps: [sum], check: () => assert.match(JSON.stringify(globalThis.messages.at(-1)), /40 is 42/) },
  ],
  ["await tool?.execute(use.id", { steps: [sum] }],
  ["generateText({", { steps: [sum, text("42")], check: (model) => assert.equal(model.requests.length, 2) }],
  [
    "agent.run(process.argv[2]",
    { steps: [call("stock", { part: "bolt" }), text("120")], check: (model) => assert.equal(model.requests.length, 2) },
  ],
  [
    "export const isGenuine",
    {
      check: (_model, example) => {
        const time = Math.floor(Date.now() / 1000);
        const v1 = createHmac("sha256", "s").update(`${time}.{}`).digest("hex");
        assert.equal(example.isGenuine(`t=${time},v1=${v1}`, "{}", "s"), true);
        assert.equal(example.isGenuine(`t=${time},v1=${v1}`, "{ }", "s"), false);
      },
    },
  ],
];

/** Put beside this file by the test that needs them; no packages of the repository. */
const SDKS = { openai: "openai", anthropic: "@anthropic-ai/sdk" };

const registry = new ToolRegistry();
const hub = await createHub("scene.json", { home: join(folder, "scene-home") });
assert.deepEqual(
  hub.servers.list().filter(({ state }) => state === "failed"),
  [],
);
Object.assign(globalThis, {
  ...{ hub, registry, createHub, createAgent },
  session: hub.openSession(),
  myTool: {
    name: "mine",
    description: "Mine.",
    parameters: { type: "object" },
    execute: async () => ({ content: [] }),
  },
  tools: hub.tools(),
  ...{
    token: "t0ken",
    id: "unknown",
    max_tokens: 1000,
    prompt: "What is 2 and 40?",
    signal: new AbortController().signal,
  },
  ...{ show() {}, inject() {}, confirm: async () => true },
});

for (const file of files) {
  const path = join(folder, file);
  const written = readFileSync(path, "utf8");
  // The addresses of the documents do not exist.
  writeFileSync(path, written.replaceAll("https://tickets.example.com/mcp", tickets.url));
  const [, { steps = [text("Hello.")], check } = {}] = EXPECTED.find(([part]) => written.includes(part)) ?? [];
  const scripted = await startScriptedModel(steps);
  const baseURL = `${scripted.url}/v1`;
  process.env.MODEL_URL = baseURL;
  process.env.MODEL = "scripted";
  Object.assign(globalThis, {
    messages: [{ role: "user", content: "What is 2 and 40?" }],
    model: written.includes("generateText({")
      ? createOpenAICompatible({ name: "scripted", baseURL }).chatModel("scripted")
      : written.includes("createAgent({ hub,")
        ? { baseUrl: baseURL, model: "scripted" }
        : "scripted",
  });
  if (written.includes("openai.")) {
    const { default: OpenAI } = await import(SDKS.openai);
    globalThis.openai = new OpenAI({ apiKey: "k", baseURL });
  }
  if (written.includes("anthropic.messages")) {
    const { default: Anthropic } = await import(SDKS.anthropic);
    globalThis.anthropic = new Anthropic({ apiKey: "k", baseURL: scripted.url });
  }
  try {
    const example = await import(pathToFileURL(path).href);
    await check?.(scripted, example);
    console.log(`ran ${file}`);
  } catch (error) {
    console.log(`failed ${file}: ${error instanceof Error ? error.stack : String(error)}`);
    process.exitCode = 1;
  }
  writeFileSync(path, written);
  await scripted.close();
}
// Some leave their hubs open, as an excerpt does.
process.exit();
