/** The scripted model, asked by clients that others wrote. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, jsonSchema, type LanguageModel, streamText, tool } from "ai";
import { afterEach, describe, expect, it } from "vitest";
import {
  call,
  calls,
  contextTooLong,
  overloaded,
  rateLimited,
  type Scenario,
  type ScriptedModel,
  type ScriptedModelOptions,
  startScriptedModel,
  text,
} from "../../src/testing/index.ts";

const running: ScriptedModel[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((model) => model.close()));
});

async function start(scenario: Scenario, options?: ScriptedModelOptions): Promise<ScriptedModel> {
  const model = await startScriptedModel(scenario, options);
  running.push(model);
  return model;
}

const apiKey = "k";
const CLIENTS: Record<string, (url: string) => LanguageModel> = {
  "openai-compatible": (url) =>
    createOpenAICompatible({ name: "local", baseURL: `${url}/v1`, includeUsage: true })("m"),
  openai: (url) => createOpenAI({ baseURL: `${url}/v1`, apiKey })("gpt-5"),
  "openai chat": (url) => createOpenAI({ baseURL: `${url}/v1`, apiKey }).chat("gpt-4.1"),
  anthropic: (url) => createAnthropic({ baseURL: `${url}/v1`, apiKey })("claude-sonnet-4-5"),
  gemini: (url) => createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey })("gemini-2.5-pro"),
};

const tools = {
  add: tool({
    description: "Adds",
    inputSchema: jsonSchema<{ a: number; b: number }>({
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
    }),
    execute: ({ a, b }) => `sum ${a + b}`,
  }),
};

/** One streamed answer, with all steps that the tools lead to. */
async function stream(model: LanguageModel, signal?: AbortSignal) {
  const errors: unknown[] = [];
  const result = streamText({
    model,
    tools,
    instructions: "Be brief.",
    prompt: "1+2 and 3+4?",
    stopWhen: isStepCount(3),
    maxRetries: 0,
    streamRetries: 0,
    onError: ({ error }) => void errors.push(error),
    abortSignal: signal,
  });
  const parts: { type: string; text?: string }[] = [];
  try {
    for await (const part of result.stream) parts.push(part);
  } catch (error) {
    // A broken connection ends the stream itself.
    if (errors.length === 0) errors.push(error);
  }
  return { result, parts, errors };
}

const textOf = (parts: readonly { type: string; text?: string }[]) =>
  parts.map((part) => (part.type === "text-delta" ? part.text : "")).join("");

const conversation: Scenario = [
  {
    thought: "Two sums.",
    text: ["Let me ", "see."],
    calls: [
      { name: "add", arguments: { a: 1, b: 2 } },
      { name: "add", arguments: { a: 3, b: 4 } },
    ],
    usage: { input: 100, output: 20, cached: 40 },
  },
  text("3 and ", "7."),
];

describe.each(Object.entries(CLIENTS))("for %s", (name, client) => {
  it("[agent-14a] streams thoughts, text, parallel calls and usage, and takes the history back", async () => {
    const model = await start(conversation);
    const { result, parts, errors } = await stream(client(model.url));
    expect(errors).toEqual([]);
    expect(model.problems).toEqual([]);
    expect(textOf(parts)).toBe("Let me see.3 and 7.");
    const [first] = await result.steps;
    expect(first?.usage).toMatchObject({ inputTokens: 100, outputTokens: 20 });
    expect(first?.usage.inputTokenDetails.cacheReadTokens).toBe(40);
    expect(first?.finishReason).toBe("tool-calls");
    // OpenAI's chat completions have no thoughts.
    expect(first?.reasoningText ?? "").toBe(name === "openai chat" ? "" : "Two sums.");

    const [asked, again] = model.requests;
    expect(asked).toMatchObject({ stream: true, system: "Be brief.", messages: [{ text: "1+2 and 3+4?" }] });
    expect(asked?.tools).toMatchObject([{ name: "add", description: "Adds", inputSchema: { type: "object" } }]);
    expect(Object.keys(asked?.headers ?? {})).not.toContain("authorization");
    expect(again?.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool"]);
    expect(again?.messages[1]?.calls.map((made) => made.arguments)).toEqual([
      { a: 1, b: 2 },
      { a: 3, b: 4 },
    ]);
    expect(again?.messages[2]?.results.map((given) => given.text)).toEqual(["sum 3", "sum 7"]);
  });

  it("[agent-14a] answers without a stream", async () => {
    const model = await start([call("add", { a: 1, b: 2 }), text("3.")]);
    const result = await generateText({
      model: client(model.url),
      tools,
      prompt: "1+2?",
      stopWhen: isStepCount(2),
      maxRetries: 0,
    });
    expect(result.text).toBe("3.");
    expect(model.requests.map((request) => request.stream)).toEqual([false, false]);
    expect(model.requests[1]?.messages[2]?.results).toMatchObject([{ text: "sum 3" }]);
  });

  it("[agent-14a] refuses, is at its limit, and sends malformed arguments", async () => {
    const model = await start([
      { refusal: "I will not." },
      { text: "So far", finish: "length" },
      { calls: [{ name: "add", rawArguments: '{"a": 1,' }] },
      text("Sorry."),
    ]);
    const refused = await stream(client(model.url));
    expect(textOf(refused.parts)).toBe("I will not.");
    expect(await refused.result.finishReason).toBe("content-filter");
    const cut = await stream(client(model.url));
    expect(await cut.result.finishReason).toBe("length");
    const malformed = await stream(client(model.url));
    const types = malformed.parts.map((part) => part.type);
    // Gemini reports such a call itself, without its arguments.
    if (name === "gemini") expect(await malformed.result.finishReason).toBe("error");
    else expect(types).toContain("tool-error");
  });

  it("[agent-14a] answers with the provider's errors", async () => {
    const model = await start([rateLimited(7), overloaded(), contextTooLong(), { status: 500, message: "Broken." }]);
    const failed = async () => (await stream(client(model.url))).errors[0];
    expect(await failed()).toMatchObject({
      statusCode: 429,
      isRetryable: true,
      responseHeaders: { "retry-after": "7" },
    });
    expect(await failed()).toMatchObject({ statusCode: 529, isRetryable: true });
    expect(await failed()).toMatchObject({ statusCode: 400, message: expect.stringMatching(/maximum|too long/) });
    expect(await failed()).toMatchObject({ statusCode: 500, message: "Broken." });
    expect(await failed()).toMatchObject({ statusCode: 400, message: expect.stringContaining("scenario is over") });
    expect(model.problems).toEqual(["400: The scenario is over: there is no turn for request 5."]);
  });

  it("[agent-14a] drops, fails and stalls in the middle of an answer", async () => {
    const model = await start([
      { text: ["one ", "two ", "three"], dropAfter: 2 },
      { text: ["one ", "two"], failAfter: 1 },
      { text: "never", dropAfter: "request" },
      { text: ["one ", "two"], stallAfter: 1 },
    ]);
    const dropped = await stream(client(model.url));
    expect(textOf(dropped.parts)).toBe("one two ");
    expect(dropped.errors).toHaveLength(1);
    const failed = await stream(client(model.url));
    expect(textOf(failed.parts)).toBe("one ");
    expect(failed.errors).toHaveLength(1);
    const nothing = await stream(client(model.url));
    expect(nothing.errors).toHaveLength(1);
    expect(model.aborted).toBe(0);

    const abort = new AbortController();
    const stalled = stream(client(model.url), abort.signal);
    await model.waitForRequest(4);
    abort.abort();
    expect((await stalled).parts.map((part) => part.type)).toContain("abort");
    await expect.poll(() => model.aborted).toBe(1);
  });
});

it("[agent-14a] checks the key and lists models", async () => {
  const model = await start([text("Hello")], { apiKey: "right", models: ["small", "large"] });
  const url = `${model.url}/v1/models`;
  expect((await fetch(url)).status).toBe(401);
  const wrong = await fetch(url, { headers: { "x-api-key": "wrong", "anthropic-version": "2023-06-01" } });
  expect(await wrong.json()).toMatchObject({ type: "error", error: { type: "authentication_error" } });
  const right = await fetch(url, { headers: { authorization: "Bearer right" } });
  expect(await right.json()).toMatchObject({ data: [{ id: "small" }, { id: "large" }] });
  expect((await fetch(`${model.url}/v1/else`, { headers: { "x-api-key": "right" } })).status).toBe(404);
});

it("[agent-14a] keeps conversations apart, repeats, expects and decides by the request", async () => {
  const say = async (model: ScriptedModel, prompt: string) => {
    const result = await generateText({
      model: CLIENTS["openai-compatible"]?.(model.url) ?? "",
      prompt,
      maxRetries: 0,
    });
    return result.text;
  };
  const apart = await start([text("first"), text("second")], {
    by: (request) => request.messages[0]?.text ?? "",
    repeatLast: true,
  });
  expect(await say(apart, "a")).toBe("first");
  expect(await say(apart, "b")).toBe("first");
  expect(await say(apart, "a")).toBe("second");
  expect(await say(apart, "a")).toBe("second");

  const decides = await start((request, index) => text(`${index}: ${request.messages[0]?.text ?? ""}`));
  expect(await say(decides, "x")).toBe("0: x");
  expect(await say(decides, "y")).toBe("1: y");

  const picky = await start([
    { text: "ok", expect: (request) => (request.tools.length === 0 ? "no tools" : undefined) },
  ]);
  await expect(say(picky, "z")).rejects.toThrow("The request is not as expected: no tools");
  expect(picky.problems).toHaveLength(1);

  const waiting = picky.waitForRequest(5);
  await Promise.all([picky.close(), expect(waiting).rejects.toThrow("closed before request 5")]);
});

it("[agent-14a] an answer in many pieces that take their time makes no warning", async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on("warning", onWarning);
  const model = await start([{ ...text(...Array.from({ length: 20 }, () => "word ")), delayMs: 1 }]);
  const answer = await fetch(`${model.url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "go" }] }),
  });
  expect((await answer.text()).match(/word /g)).toHaveLength(20);
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", onWarning);
  expect(warnings).toEqual([]);
});

it("[agent-14a] a call that takes its time comes in order", async () => {
  const model = await start([
    { ...calls({ name: "add", id: "own", arguments: { a: 1, b: 1 } }), delayMs: 5 },
    text("2"),
  ]);
  const { parts } = await stream(CLIENTS["anthropic"]?.(model.url) ?? "");
  expect(parts.filter((part) => part.type === "tool-call")).toMatchObject([{ toolCallId: "own" }]);
});
