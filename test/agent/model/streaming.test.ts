import { afterEach, describe, expect, it } from "vitest";
import type { ModelTool } from "../../../src/agent/model/chat-model.ts";
import { startScriptedModel, type Scenario, type ScriptedModel, text } from "../../../src/testing/index.ts";
import { answerOf, ask, callsOf, KEY, open, textOf, user, ways, WAYS } from "./opened-model.ts";

const ADD: ModelTool = {
  name: "notes__add",
  description: "Adds a note.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
};
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** How each protocol says that a call failed; Anthropic's has a field of its own for it. */
const FAILED: Record<(typeof WAYS)[number], string> = {
  anthropic: "noted 1",
  google: `{"name":"${ADD.name}","error":"noted 1"}`,
  openai: "The call failed:\nnoted 1",
  "openai-chat": "The call failed:\nnoted 1",
  compatible: "The call failed:\nnoted 1",
};

let scripted: ScriptedModel | undefined;
afterEach(async () => {
  await scripted?.close();
  scripted = undefined;
});

async function serve(scenario: Scenario): Promise<ScriptedModel> {
  scripted = await startScriptedModel(scenario, { apiKey: KEY });
  return scripted;
}

describe.each(WAYS)("a model by %s", (way) => {
  it("[agent-04a] streams text with the key, the system prompt and the usage", async () => {
    const server = await serve([{ text: ["Hel", "lo."], usage: { input: 40, output: 2, cached: 30 } }]);
    const model = await open(ways(server.url)[way]);
    const parts = await ask(model, [user("Hi")], { maxOutputTokens: 77 });
    expect(parts).toEqual([
      { type: "text", text: "Hel" },
      { type: "text", text: "lo." },
      { type: "usage", input: 40, output: 2, cached: 30 },
      { type: "finish", reason: "stop" },
    ]);
    expect(server.requests[0]).toMatchObject({ stream: true, system: "Be brief.", maxTokens: 77 });
    expect(server.requests[0]?.messages).toMatchObject([{ role: "user", text: "Hi" }]);
    expect(server.problems).toEqual([]);
  });

  it("[agent-04a] gives parallel calls, and takes thoughts, calls and results back as the provider wants them", async () => {
    const server = await serve([
      {
        thought: "Two notes.",
        text: "Adding.",
        calls: [
          { name: ADD.name, arguments: { text: "milk" } },
          // Google's arguments are no text.
          { name: ADD.name, ...(way === "google" ? { arguments: {} } : { rawArguments: "" }) },
        ],
      },
      text("Done."),
    ]);
    const model = await open(ways(server.url)[way]);
    const parts = await ask(model, [user("Note milk")], { tools: [ADD] });
    const calls = callsOf(parts);
    expect(calls).toMatchObject([
      { name: ADD.name, input: { text: "milk" } },
      { name: ADD.name, input: {} },
    ]);
    expect(parts.at(-1)).toEqual({ type: "finish", reason: "calls" });
    expect(server.requests[0]?.tools).toMatchObject([{ name: ADD.name, description: ADD.description }]);

    const results = calls.map(({ id, name }, at) => ({
      id,
      name,
      content: [{ type: "text", text: `noted ${at}` }],
      isError: at === 1,
    }));
    const answer = await ask(model, [user("Note milk"), answerOf(parts), { role: "tool", results }], { tools: [ADD] });
    expect(textOf(answer)).toBe("Done.");
    expect(server.problems).toEqual([]);
    const [, said, given] = server.requests[1]?.messages ?? [];
    expect(said?.calls).toMatchObject([{ arguments: { text: "milk" } }, { arguments: {} }]);
    expect(given?.results.map((result) => result.text)).toEqual(["noted 0", FAILED[way]]);
    if (way === "anthropic") {
      expect(said?.thought).toBe("Two notes.");
      expect(given?.results.map((result) => result.isError)).toEqual([false, true]);
    }
  });

  it("[agent-04e] shows an image of a tool to a model that sees", async () => {
    const server = await serve([{ calls: [{ name: "shot", arguments: {} }] }, text("A dot.")]);
    const model = await open(ways(server.url)[way]);
    expect(model.images).toBe(true);
    const parts = await ask(model, [user("Look")], { tools: [{ ...ADD, name: "shot" }] });
    const [call] = callsOf(parts);
    const content = [
      { type: "text", text: "The screen:" },
      // The type is wrong on purpose: what the image is counts.
      { type: "image", data: PNG, mimeType: "image/jpeg" },
    ];
    const results = [{ id: call?.id ?? "", name: "shot", content, isError: false }];
    await ask(model, [user("Look"), answerOf(parts), { role: "tool", results }]);
    expect(server.problems).toEqual([]);
    const messages = server.requests[1]?.messages ?? [];
    const shown = messages.flatMap((message) => [
      ...message.images,
      ...message.results.flatMap(({ images }) => images),
    ]);
    expect(shown).toEqual([{ mimeType: "image/png", data: PNG }]);
    // Never as text, which would cost a fortune and show nothing.
    for (const { results } of messages) for (const result of results) expect(result.text).not.toContain(PNG);
    const follows = way === "compatible" || way === "openai-chat";
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", ...(follows ? ["user"] : [])]);
  });

  it("[agent-04e] tells a model that does not see what it misses", async () => {
    const server = await serve([text("Pity.")]);
    const { setting, ...rest } = ways(server.url)[way];
    const model = await open({
      setting:
        typeof setting === "string"
          ? { provider: protocolOf(way), model: setting.split("/")[1] ?? "", images: false }
          : { ...setting, images: false },
      ...rest,
    });
    const results = [
      { id: "a", name: "shot", content: [{ type: "image", data: PNG, mimeType: "image/png" }], isError: false },
    ];
    await ask(model, [
      { role: "user", content: [{ type: "image", data: PNG, mimeType: "image/png" }] },
      { role: "assistant", parts: [{ type: "call", id: "a", name: "shot", input: {} }] },
      { role: "tool", results },
    ]);
    expect(server.problems).toEqual([]);
    const [asked, , given] = server.requests[0]?.messages ?? [];
    expect(asked?.text).toBe("[image: image/png, 70 B]");
    expect(given?.results[0]?.text).toBe("[image: image/png, 70 B]");
    expect(JSON.stringify(server.requests[0]?.body)).not.toContain(PNG);
  });

  it("tells a refusal and the limit apart from an end", async () => {
    const server = await serve([{ refusal: "I must not." }, { text: "And so", finish: "length" }]);
    const model = await open(ways(server.url)[way]);
    expect((await ask(model, [user("Bad")])).at(-1)).toEqual({ type: "finish", reason: "refusal" });
    expect((await ask(model, [user("Long")])).at(-1)).toEqual({ type: "finish", reason: "length" });
  });
});

function protocolOf(way: (typeof WAYS)[number]): "anthropic" | "openai" | "google" | "openai-compatible" {
  if (way === "compatible") return "openai-compatible";
  return way === "openai-chat" ? "openai" : way;
}

it.each(["anthropic", "openai-chat", "compatible"] as const)(
  "gives malformed arguments of %s as a problem for the model",
  async (way) => {
    const server = await serve([{ calls: [{ name: ADD.name, rawArguments: '{"text": "mi' }] }]);
    const [call] = callsOf(await ask(await open(ways(server.url)[way]), [user("Note")], { tools: [ADD] }));
    expect(call?.input).toBeUndefined();
    expect(call?.problem).toContain("not valid JSON");
  },
);

it("keeps the thoughts of a local model within the turn, and for that model only", async () => {
  const server = await serve([
    { thought: "Hm.", calls: [{ name: ADD.name, arguments: {} }] },
    ...Array.from({ length: 3 }, () => text("Ok.")),
  ]);
  const model = await open(ways(server.url).compatible);
  const parts = await ask(model, [user("Note")], { tools: [ADD] });
  const [call] = callsOf(parts);
  const content = [{ type: "text", text: "noted" }];
  const turn = [
    user("Note"),
    answerOf(parts),
    { role: "tool" as const, results: [{ id: call?.id ?? "", name: ADD.name, content, isError: false }] },
  ];
  await ask(model, turn);
  await ask(model, [...turn, user("And now?")]);
  const other = await open({
    setting: { baseUrl: server.url, model: "another", apiKey: "env:KEY" },
    env: { KEY },
  });
  await ask(other, turn);
  expect(server.requests.slice(1).map(({ messages }) => messages[1]?.thought)).toEqual(["Hm.", "", ""]);
});

it("leaves thoughts out for a server that does not take them back", async () => {
  const server = await serve((request) =>
    request.messages.some(({ thought }) => thought !== "")
      ? { status: 400, message: "'messages.1': property 'reasoning_content' is unsupported" }
      : { thought: "Hm.", calls: [{ name: ADD.name, arguments: {} }] },
  );
  const model = await open(ways(server.url).compatible);
  const parts = await ask(model, [user("Note")], { tools: [ADD] });
  for (let step = 0; step < 2; step++) {
    const next = await ask(model, [user("Note"), answerOf(parts)], { tools: [ADD] });
    expect(next.map(({ type }) => type)).toEqual(["thought", "thought", "call", "usage", "finish"]);
  }
  // It is tried once only.
  expect(server.requests).toHaveLength(4);
});

it("has Anthropic keep the conversation so far in its cache", async () => {
  const server = await serve([text("Hello.")]);
  await ask(await open(ways(server.url).anthropic), [user("Hi")], { tools: [ADD] });
  const kept = { cache_control: { type: "ephemeral" } };
  // What not every server that speaks the protocol knows.
  expect(JSON.stringify(server.requests[0]?.body)).not.toContain("eager_input_streaming");
  expect(server.requests[0]?.body).toMatchObject({
    system: [kept],
    messages: [{ content: [kept] }],
  });
});

it("asks OpenAI to keep nothing of the conversation", async () => {
  const server = await serve([text("Hello.")]);
  await ask(await open(ways(server.url).openai), [user("Hi")]);
  expect(server.requests[0]).toMatchObject({ protocol: "openai-responses", body: { store: false } });
});
