import { generateText, isStepCount, type ToolSet } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AiToolsOptions, toAiTools } from "../../../src/agent/adapters/ai-sdk.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";
import { misbehaving } from "../../support/servers.ts";

let hub: Hub;
beforeAll(async () => {
  const registry = new ToolRegistry();
  registry.register({
    name: "draw",
    description: "Draws.",
    parameters: { type: "object", properties: { size: { type: "integer" } }, required: ["size"] },
    execute: async () => ({ content: [{ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }] }),
  });
  registry.register({
    name: "fail",
    description: "Fails.",
    parameters: { type: "object" },
    execute: async () => {
      throw new Error("disk full");
    },
  });
  hub = await createHub({ mcpServers: { demo: misbehaving("ok") } }, { registry });
});
afterAll(() => hub.close());

const NO_USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

/** The results that the model is given for its calls, in one step. */
async function resultsOf(
  calls: readonly { name: string; input: object }[],
  options?: AiToolsOptions,
): Promise<unknown[]> {
  const model = new MockLanguageModelV4({
    doGenerate: [
      {
        content: calls.map(({ name, input }, index) => ({
          type: "tool-call" as const,
          toolCallId: `c${index}`,
          toolName: name,
          input: JSON.stringify(input),
        })),
        finishReason: { unified: "tool-calls", raw: undefined },
        usage: NO_USAGE,
        warnings: [],
      },
      {
        content: [{ type: "text", text: "done" }],
        finishReason: { unified: "stop", raw: undefined },
        usage: NO_USAGE,
        warnings: [],
      },
    ],
  });
  const tools = await toAiTools<ToolSet>(hub.tools({ for: "openai" }), options);
  const { text } = await generateText({ model, prompt: "go", tools, stopWhen: isStepCount(3) });
  expect(text).toBe("done");
  const sent = model.doGenerateCalls[1]?.prompt.at(-1);
  return sent?.role === "tool" ? sent.content.map((part) => (part.type === "tool-result" ? part.output : part)) : [];
}

describe("[agent-08b] the AI SDK's tool set", () => {
  it("is run by the SDK's own loop; images, errors and bad arguments reach the model", async () => {
    const [echo, drawn, failed, wrong] = await resultsOf([
      { name: "demo__echo", input: { text: "hi" } },
      { name: "draw", input: { size: 3 } },
      { name: "fail", input: {} },
      { name: "draw", input: { size: "large" } },
    ]);
    expect(echo).toEqual({
      type: "text",
      value: expect.stringMatching(/^<<<UNTRUSTED_TOOL_RESULT [^]*\nhi\n<<<END_/),
    });
    expect(drawn).toMatchObject({ type: "content", value: [{ type: "file", mediaType: "image/png" }] });
    expect(failed).toEqual({ type: "error-text", value: "disk full" });
    expect(wrong).toMatchObject({ type: "error-text", value: expect.stringContaining("size must be integer") });
  });

  it("has lines in the place of images where the provider cannot carry them", async () => {
    const results = await resultsOf([{ name: "draw", input: { size: 3 } }], { images: false });
    expect(results).toEqual([{ type: "text", value: "[image: image/png, 8 B]" }]);
  });
});
