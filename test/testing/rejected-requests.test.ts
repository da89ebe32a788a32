/** What providers refuse, the scripted model refuses too. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ScriptedModel, startScriptedModel, text } from "../../src/testing/index.ts";

let model: ScriptedModel;
beforeAll(async () => {
  model = await startScriptedModel([text("ok")], { repeatLast: true });
});
afterAll(() => model.close());

async function send(path: string, body: unknown): Promise<{ status: number; text: string }> {
  const response = await fetch(model.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

async function expectRefused(path: string, body: unknown, message: string): Promise<void> {
  const answer = await send(path, body);
  expect(answer).toMatchObject({ status: 400, text: expect.stringContaining(message) });
  expect(model.problems.at(-1)).toContain(message);
}

const user = { role: "user", content: "Hello" };
const object = { type: "object", properties: {} };

describe("chat completions", () => {
  const path = "/v1/chat/completions";
  const calls = { role: "assistant", content: null, tool_calls: [made("a"), made("b")] };
  const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "done" });
  const offered = (name: string, parameters: unknown) => [{ type: "function", function: { name, parameters } }];
  function made(id: string) {
    return { id, type: "function", function: { name: "add", arguments: "{}" } };
  }

  it.each([
    ["a missing result", { messages: [user, calls, result("a")] }, "did not have response messages: b"],
    ["a result of nothing", { messages: [user, result("a")] }, "must be a response to a preceding message"],
    ["a result twice", { messages: [user, calls, ...["a", "b", "a"].map(result)] }, "must be a response"],
    ["calls at the end", { messages: [user, calls] }, "did not have response messages: a, b"],
    ["an empty answer", { messages: [user, { role: "assistant", content: null }] }, "expected a string, got null"],
    ["a wrong message", { messages: [{ role: "user" }] }, "messages.0.content"],
    ["no messages", { messages: [] }, "messages"],
    ["an odd name", { messages: [user], tools: offered("a b", object) }, "does not match pattern"],
    ["a root that is none", { messages: [user], tools: offered("add", { anyOf: [] }) }, "type: null"],
    [
      "a name twice",
      { messages: [user], tools: [...offered("add", object), ...offered("add", object)] },
      "the name 'add' is taken",
    ],
    ["too many tools", { messages: [user], tools: Array(129).fill(offered("add", object)[0]) }, "maximum length 128"],
  ])("[agent-14a] refuses %s", async (_, body, message) => {
    await expectRefused(path, { model: "m", ...body }, message);
  });

  it("[agent-14a] takes a history that is complete", async () => {
    const messages = [user, calls, result("b"), result("a"), user];
    expect(await send(path, { model: "m", messages, tools: offered("add", object) })).toMatchObject({ status: 200 });
    const read = model.requests.at(-1)?.messages;
    expect(read?.map((message) => message.role)).toEqual(["user", "assistant", "tool", "user"]);
  });

  it("[agent-14a] refuses what is no JSON", () => expectRefused(path, "{", "could not parse"));
});

describe("responses", () => {
  const path = "/v1/responses";
  const made = { type: "function_call", call_id: "a", name: "add", arguments: "{}" };
  const result = { type: "function_call_output", call_id: "a", output: "done" };

  it.each([
    ["a missing result", [user, made], "No tool output found for function call a"],
    ["a result of nothing", [user, result], "No tool call found for function call output with call_id a"],
    ["a result twice", [user, made, result, result], "More than one output"],
    ["a wrong item", [{ type: "function_call", name: "add" }], "input"],
  ])("[agent-14a] refuses %s", (_, input, message) => expectRefused(path, { model: "m", input }, message));

  it("[agent-14a] knows only the items that it gave", async () => {
    const unknown = await send(path, { model: "m", input: [user, { type: "item_reference", id: "msg_none" }] });
    expect(unknown).toMatchObject({ status: 404, text: expect.stringContaining("'msg_none' not found") });
  });
});

describe("messages of Anthropic", () => {
  const path = "/v1/messages";
  const uses = (...ids: string[]) => ({
    role: "assistant",
    content: ids.map((id) => ({ type: "tool_use", id, name: "add", input: {} })),
  });
  const results = (...ids: string[]) => ({
    role: "user",
    content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: "done" })),
  });
  const thinking = { type: "thinking", thinking: "Hm.", signature: "forged" };
  const tool = (name: string, input_schema: unknown) => ({ messages: [user], tools: [{ name, input_schema }] });

  it.each([
    ["a missing result", { messages: [user, uses("a", "b"), results("a")] }, "immediately after: b"],
    ["a result of nothing", { messages: [user, results("a")] }, "unexpected `tool_use_id`"],
    ["a result twice", { messages: [user, uses("a"), results("a", "a")] }, "Found multiple `tool_result`"],
    [
      "text before a result",
      {
        messages: [user, uses("a"), { role: "user", content: [{ type: "text", text: "x" }, ...results("a").content] }],
      },
      "must come before other content",
    ],
    ["an empty text", { messages: [{ role: "user", content: [{ type: "text", text: "" }] }] }, "non-empty"],
    ["an empty message", { messages: [{ role: "user", content: "" }] }, "non-empty"],
    ["an answer first", { messages: [uses("a"), results("a")] }, "first message"],
    ["a thought of its own", { messages: [user, { role: "assistant", content: [thinking] }] }, "Invalid `signature`"],
    ["an odd name", tool("a.b", object), "String should match pattern"],
    ["a root that is none", tool("add", {}), "Input should be 'object'"],
    ["a union at the root", tool("add", { ...object, oneOf: [] }), "at the top level"],
    ["no limit", { messages: [user], max_tokens: undefined }, "max_tokens"],
  ])("[agent-14a] refuses %s", async (_, body, message) => {
    await expectRefused(path, { model: "m", max_tokens: 10, ...body }, message);
    expect(model.problems.at(-1)).toMatch(/^400/);
  });

  it("[agent-14a] wants the version of the protocol", async () => {
    const response = await fetch(model.url + path, { method: "POST", body: "{}" });
    expect(await response.json()).toMatchObject({ error: { message: "anthropic-version: header is required" } });
  });
});

describe("Gemini", () => {
  const path = "/v1beta/models/gemini-2.5-pro:generateContent";
  const asks = { role: "user", parts: [{ text: "Hello" }] };
  const made = { role: "model", parts: [{ functionCall: { name: "add", args: {} } }] };
  const tools = (name: string, parameters: unknown) => [{ functionDeclarations: [{ name, parameters }] }];

  it.each([
    ["a missing result", { contents: [asks, made, asks] }, "number of function response parts"],
    ["an odd name", { contents: [asks], tools: tools("1a", object) }, "Invalid function name"],
    ["a root that is none", { contents: [asks], tools: tools("add", { type: "ARRAY" }) }, "type OBJECT"],
    ["a wrong role", { contents: [{ role: "assistant", parts: [{ text: "x" }] }] }, "contents.0.role"],
  ])("[agent-14a] refuses %s", (_, body, message) => expectRefused(path, body, message));
});
