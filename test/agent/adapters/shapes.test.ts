import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runAnthropicCall, toAnthropicTools } from "../../../src/agent/adapters/anthropic.ts";
import { runOpenAICall, toOpenAIResponsesTools, toOpenAITools } from "../../../src/agent/adapters/openai.ts";
import { toAgentTools } from "../../../src/agent/adapters/pi.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { Tool } from "../../../src/model/tool.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";

const PIXEL = "iVBORw0KGgo=";

const LOCAL: readonly Tool[] = [
  {
    name: "add",
    label: "Add",
    description: "Adds two numbers.",
    parameters: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
      additionalProperties: false,
    },
    async execute(_id, { a, b }, _signal, onUpdate) {
      onUpdate?.({ content: [{ type: "text", text: "adding" }] });
      return {
        content: [{ type: "text", text: String(Number(a) + Number(b)) }],
        details: { sum: Number(a) + Number(b) },
      };
    },
  },
  {
    name: "draw",
    description: "Draws.",
    parameters: { type: "object", properties: { type: { type: "string" } } },
    execute: async (_id, { type = "image/png" }) => ({
      content: [
        { type: "text", text: "Here it is:" },
        { type: "image", data: PIXEL, mimeType: String(type) },
        { type: "resource_link", uri: "file:///drawing.png", name: "drawing" },
      ],
    }),
  },
  {
    name: "fail",
    description: "Fails.",
    parameters: { type: "object" },
    execute: async () => {
      throw new Error("disk full");
    },
  },
];

let hub: Hub;
let tools: Tool[];
beforeAll(async () => {
  const registry = new ToolRegistry();
  for (const tool of LOCAL) registry.register(tool);
  hub = await createHub({}, { registry });
  tools = hub.tools({ for: "openai" });
});
afterAll(() => hub.close());

const chat = (name: string, args: string) => runOpenAICall(tools, { id: "c1", function: { name, arguments: args } });

describe("[agent-08b] OpenAI's shapes", () => {
  it("are those of Chat Completions and of Responses", () => {
    const [add] = toOpenAITools(tools);
    expect(add).toEqual({
      type: "function",
      function: { name: "add", description: "Adds two numbers.", parameters: tools[0]?.parameters },
    });
    const [strict] = toOpenAIResponsesTools(hub.tools({ for: "openai-strict" }), { strict: true });
    expect(strict).toMatchObject({ type: "function", name: "add", strict: true });
  });

  it("answer a call in the shape that it came in", async () => {
    expect(await chat("add", '{"a": 1, "b": 2}')).toEqual({ role: "tool", tool_call_id: "c1", content: "3" });
    const call = { call_id: "c2", name: "draw", arguments: "" };
    expect(await runOpenAICall(tools, call)).toEqual({
      type: "function_call_output",
      call_id: "c2",
      output: [
        { type: "input_text", text: "Here it is:" },
        { type: "input_image", image_url: `data:image/png;base64,${PIXEL}`, detail: "auto" },
        { type: "input_text", text: "[resource: file:///drawing.png]" },
      ],
    });
    expect((await chat("draw", "{}")).content).toContain("[image: image/png");
  });

  it("give the model what was wrong, and throw nothing", async () => {
    expect((await chat("add", '{"a": 1, "b": "2"}')).content).toMatch(/^invalid_arguments: .*b must be number/);
    expect((await chat("add", '{"a": 1')).content).toMatch(/^invalid_arguments: .* not a JSON object/);
    expect((await chat("subtract", "{}")).content).toBe('not_found: There is no tool "subtract".');
    expect((await chat("fail", "{}")).content).toBe("disk full");
  });
});

describe("[agent-08b] Anthropic's shapes", () => {
  const use = (name: string, input: unknown) => runAnthropicCall(tools, { id: "t1", name, input });

  it("are those of the Messages API", async () => {
    expect(toAnthropicTools(tools)[0]).toMatchObject({
      name: "add",
      input_schema: { type: "object", required: ["a", "b"] },
    });
    expect(await use("add", { a: 1, b: 2 })).toEqual({
      type: "tool_result",
      tool_use_id: "t1",
      content: [{ type: "text", text: "3" }],
    });
    const drawn = await use("draw", {});
    expect(drawn.content[1]).toEqual({
      type: "image",
      source: { type: "base64", media_type: "image/png", data: PIXEL },
    });
  });

  it("hold no image that the API does not take, and only text in an error", async () => {
    expect((await use("draw", { type: "image/tiff" })).content[1]).toEqual({
      type: "text",
      text: "[image: image/tiff, 8 B]",
    });
    expect(await use("fail", {})).toEqual({
      type: "tool_result",
      tool_use_id: "t1",
      content: [{ type: "text", text: "disk full" }],
      is_error: true,
    });
  });
});

describe("[agent-08b] the AgentTool of pi and OpenClaw", () => {
  it("[whole-14d] has a label, takes updates, gives text and images with details, and failures as results", async () => {
    const [add, draw, fail] = toAgentTools(tools);
    expect(add).toMatchObject({ name: "add", label: "Add", parameters: { type: "object" } });
    expect(draw?.label).toBe("draw");
    const updates: unknown[] = [];
    const result = await add?.execute("1", { a: 2, b: 2 }, undefined, (partial) => updates.push(partial.content));
    expect(result).toEqual({ content: [{ type: "text", text: "4" }], details: { sum: 4 } });
    expect(updates).toEqual([[{ type: "text", text: "adding" }]]);
    const drawn = await draw?.execute("2", {});
    expect(drawn?.content.map(({ type }) => type)).toEqual(["text", "image", "text"]);
    expect(drawn?.details).toEqual({});
    expect(await fail?.execute("3", {})).toMatchObject({
      content: [{ type: "text", text: "disk full" }],
      isError: true,
    });
  });

  it("[whole-14d] gives a failure as a result, too, where a tool of the program's own throws", async () => {
    const fail = toAgentTools(LOCAL).find(({ name }) => name === "fail");
    expect(await fail?.execute("4", {})).toMatchObject({
      content: [{ type: "text", text: expect.stringContaining("disk full") }],
      isError: true,
    });
  });
});
