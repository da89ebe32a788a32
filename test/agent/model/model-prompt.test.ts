import { describe, expect, it } from "vitest";
import type { AgentMessage } from "../../../src/agent/model/chat-model.ts";
import { readArguments } from "../../../src/agent/model/streamed-model.ts";
import { imageOf, type PromptRules, toPrompt } from "../../../src/agent/model/model-prompt.ts";
import { runProgram } from "../../support/run-program.ts";
import { user } from "./opened-model.ts";

const GOOGLE: PromptRules = {
  protocol: "google",
  model: "gemini-3-pro",
  images: true,
  imagesInResults: true,
  thoughts: true,
};
const ANTHROPIC: PromptRules = { ...GOOGLE, protocol: "anthropic", model: "claude-sonnet-4-5" };
const LOCAL: PromptRules = {
  protocol: "openai-compatible",
  model: "m",
  images: true,
  imagesInResults: false,
  thoughts: true,
};

function call(id: string, name = "tool"): AgentMessage {
  return { role: "assistant", parts: [{ type: "call", id, name, input: {} }] };
}

function result(id: string, text = "ok"): AgentMessage {
  return { role: "tool", results: [{ id, name: "tool", content: [{ type: "text", text }], isError: false }] };
}

/** Role and what stands in it, for short. */
function shape(messages: readonly AgentMessage[], rules = GOOGLE): unknown[] {
  return toPrompt("", messages, rules).map(({ role, content }) => [
    role,
    typeof content === "string"
      ? content
      : content.map((part) => {
          if (part.type === "tool-call") return `call ${part.toolCallId}`;
          if (part.type === "tool-result") return `result ${part.toolCallId} ${part.output.type}`;
          return part.type === "text" ? part.text : part.type;
        }),
  ]);
}

describe("a history", () => {
  it("gets a result for a call that an interrupted run left, and loses one that nobody asked for", () => {
    const two: AgentMessage = {
      role: "assistant",
      parts: [
        { type: "call", id: "a", name: "tool", input: {} },
        { type: "call", id: "b", name: "tool", input: {} },
      ],
    };
    const lost: AgentMessage = result("z");
    expect(shape([user("1"), two, result("b"), lost, user("2"), call("c")])).toEqual([
      ["user", ["1"]],
      ["assistant", ["call a", "call b"]],
      ["tool", ["result a error-text", "result b text"]],
      ["user", ["2"]],
      ["assistant", ["call c"]],
      ["tool", ["result c error-text"]],
    ]);
  });

  it("has ids that every provider takes, each only once, and the same every time", () => {
    const long = "x".repeat(60);
    const messages = [
      user("1"),
      call("call.1:ü"),
      result("call.1:ü"),
      call("call.1:ü"),
      result("call.1:ü"),
      call(long),
    ];
    expect(shape(messages)).toEqual(shape(messages));
    expect(shape(messages).slice(1)).toEqual([
      ["assistant", ["call call_1__"]],
      ["tool", ["result call_1__ text"]],
      ["assistant", ["call call_1___2"]],
      ["tool", ["result call_1___2 text"]],
      ["assistant", [`call ${long.slice(0, 40)}`]],
      ["tool", [`result ${long.slice(0, 40)} error-text`]],
    ]);
  });

  it("begins with the user, takes turns, and holds nothing empty", () => {
    const empty: AgentMessage = { role: "assistant", parts: [{ type: "text", text: " \n" }] };
    const said: AgentMessage = { role: "assistant", parts: [{ type: "text", text: "Hi" }] };
    expect(shape([said, user("1"), empty, user("2"), { role: "user", content: [] }])).toEqual([
      ["user", ["(no message)"]],
      ["assistant", ["Hi"]],
      ["user", ["1", "2", "(empty message)"]],
    ]);
  });

  it("gives thoughts and signatures only to the provider that made them", () => {
    const messages: AgentMessage[] = [
      user("1"),
      {
        role: "assistant",
        parts: [
          { type: "thought", text: "I " },
          { type: "thought", text: "think" },
          { type: "thought", text: "", meta: { anthropic: { signature: "s" } } },
          { type: "thought", text: "unsigned" },
          { type: "call", id: "a", name: "tool", input: {}, meta: { google: { thoughtSignature: "g" } } },
        ],
      },
      result("a"),
    ];
    expect(toPrompt("", messages, ANTHROPIC)[1]?.content).toEqual([
      { type: "reasoning", text: "I think", providerOptions: { anthropic: { signature: "s" } } },
      { type: "tool-call", toolCallId: "a", toolName: "tool", input: {} },
    ]);
    expect(toPrompt("", messages, GOOGLE)[1]?.content).toEqual([
      {
        type: "tool-call",
        toolCallId: "a",
        toolName: "tool",
        input: {},
        providerOptions: { google: { thoughtSignature: "g" } },
      },
    ]);
  });
});

describe("what a user says", () => {
  const read = (...content: { type: string; [key: string]: unknown }[]) =>
    toPrompt("", [{ role: "user", content }], GOOGLE)[0]?.content;

  it("has embedded text under its address, in a fence that the text cannot end", () => {
    const resource = { uri: "file:///a.md", text: "```js\n1\n```" };
    expect(read({ type: "resource", resource })).toEqual([
      { type: "text", text: "[resource: file:///a.md]\n````\n```js\n1\n```\n````" },
    ]);
  });

  it("has links and what cannot be shown as words", () => {
    expect(
      read(
        { type: "resource_link", uri: "file:///a.ts", name: "a.ts", description: "The\nstart" },
        { type: "audio", data: "AAAA", mimeType: "audio/wav" },
        { type: "image", data: "PHN2Zz4=", mimeType: "image/svg+xml" },
        { type: "text", text: "half \uD83D" },
      ),
    ).toEqual([
      { type: "text", text: "[resource: file:///a.ts] a.ts The start" },
      { type: "text", text: "[audio: audio/wav, 3 B]" },
      { type: "text", text: "[image: image/svg+xml, 5 B]" },
      { type: "text", text: "half \uFFFD" },
    ]);
  });

  it("has images, also those of resources", () => {
    const blob = "/9j/4AAQ";
    expect(read({ type: "resource", resource: { uri: "file:///a.jpg", mimeType: "image/jpeg", blob } })).toEqual([
      { type: "file", mediaType: "image/jpeg", data: { type: "data", data: blob } },
    ]);
  });
});

it("[agent-04e] moves images behind all results where results hold text only", () => {
  const image = { type: "image", data: "R0lGODlh", mimeType: "image/gif" };
  const messages: AgentMessage[] = [
    user("1"),
    {
      role: "assistant",
      parts: [
        { type: "call", id: "a", name: "shot", input: {} },
        { type: "call", id: "b", name: "tool", input: {} },
      ],
    },
    {
      role: "tool",
      results: [
        { id: "a", name: "shot", content: [image], isError: false },
        { id: "b", name: "tool", content: [], isError: false },
      ],
    },
    user("2"),
  ];
  expect(shape(messages, LOCAL).slice(2)).toEqual([
    ["tool", ["result a text", "result b text"]],
    ["user", ["[images of the result of shot]", "file", "2"]],
  ]);
});

it("[agent-04e] takes no image that the provider would refuse", () => {
  const big = `/9j/${"A".repeat(8 * 1024 * 1024)}`;
  expect(imageOf({ type: "image", data: big, mimeType: "image/jpeg" }, "anthropic")).toBeUndefined();
  expect(imageOf({ type: "image", data: big, mimeType: "image/jpeg" }, "google")).toBeDefined();
  expect(imageOf({ type: "image", data: "no base64!", mimeType: "image/png" }, "google")).toBeUndefined();
  expect(imageOf({ type: "image", data: "", mimeType: "image/png" }, "google")).toBeUndefined();
  expect(imageOf({ type: "image", data: "AA\nAA", mimeType: "IMAGE/PNG" }, "google")).toEqual({
    data: "AAAA",
    mediaType: "image/png",
  });
});

it("[agent-04e] takes a large image in a process that has compiled many patterns", async () => {
  const source = new URL("../../../src/agent/model/model-prompt.ts", import.meta.url).href;
  const script = `import { imageOf } from ${JSON.stringify(source)};
    const data = "/9j/" + "A".repeat(8 * 1024 * 1024);
    console.log(imageOf({ type: "image", data, mimeType: "image/jpeg" }, "google")?.mediaType);`;
  const args = ["--no-warnings", "--no-regexp-optimization", "--input-type=module", "--eval", script];
  expect(await runProgram(process.execPath, args)).toEqual({ code: 0, stdout: "image/jpeg\n", stderr: "" });
});

it("reads arguments as models write them", () => {
  expect(readArguments('{"a":1}')).toEqual({ input: { a: 1 } });
  expect(readArguments(" ")).toEqual({ input: {} });
  expect(readArguments("null")).toEqual({ input: {} });
  expect(readArguments('"{\\"a\\":1}"')).toEqual({ input: { a: 1 } });
  expect(readArguments("[1]")).toEqual({ problem: expect.stringContaining("a list") });
  expect(readArguments("{")).toEqual({ problem: expect.stringContaining("not valid JSON") });
});
