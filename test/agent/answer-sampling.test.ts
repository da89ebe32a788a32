import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { answerSampling, type AnswerSamplingOptions } from "../../src/agent/answer-sampling.ts";
import { ToolcribError } from "../../src/model/errors.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { type ScriptedModel, startScriptedModel, type Turn } from "../../src/testing/index.ts";
import { rpcFromError } from "../../src/upstream/rpc-error.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { open } from "./model/opened-model.ts";

let server: ScriptedModel;
let turn: Turn = { text: "Four." };
beforeAll(async () => {
  server = await startScriptedModel(() => turn);
});
afterAll(() => server.close());

const PARAMS = { messages: [{ role: "user", content: { type: "text", text: "2+2?" } }], maxTokens: 100 };

function answer(
  params: JsonObject,
  options: Partial<AnswerSamplingOptions> = {},
  signal = new AbortController().signal,
) {
  const model = () => open({ setting: { baseUrl: server.url, model: "m", images: true } });
  const sample = answerSampling({ model, mode: "allow", maxTokens: 500, ...options });
  return sample(params, { server: "notes", signal });
}

async function refusal(asking: Promise<unknown>): Promise<ToolcribError> {
  const error: unknown = await asking.catch((thrown: unknown) => thrown);
  if (error instanceof ToolcribError) return error;
  throw new Error("expected it to be refused");
}

describe("[agent-07a] a server that asks for an answer of a model", () => {
  it("gets one of the agent's, as MCP has it", async () => {
    turn = { text: ["Fo", "ur."], thought: "Easy." };
    const params = {
      ...PARAMS,
      systemPrompt: "Count.",
      temperature: 0.2,
      stopSequences: ["END"],
      includeContext: "allServers",
      modelPreferences: { hints: [{ name: "gpt-99" }] },
    };
    expect(await answer(params)).toEqual({
      role: "assistant",
      content: { type: "text", text: "Four." },
      model: "openai-compatible/m",
      stopReason: "endTurn",
    });
    const request = server.requests.at(-1);
    expect(request).toMatchObject({ model: "m", system: "Count.", maxTokens: 100, tools: [] });
    expect(request?.body).toMatchObject({ temperature: 0.2, stop: ["END"] });
    expect(request?.messages).toMatchObject([{ role: "user", text: "2+2?" }]);
  });

  it("gets no more tokens than the operator allows", async () => {
    turn = { text: "Fo", finish: "length" };
    expect(await answer({ ...PARAMS, maxTokens: 100_000 })).toMatchObject({ stopReason: "maxTokens" });
    expect(server.requests.at(-1)?.maxTokens).toBe(500);
    await answer({ messages: PARAMS.messages });
    expect(server.requests.at(-1)?.maxTokens).toBe(500);
  });

  it("may send images, sound and what the model said before", async () => {
    turn = { text: "A dot." };
    await answer({
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "See:" },
            { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" },
          ],
        },
        { role: "assistant", content: { type: "text", text: "Yes?" } },
        { role: "user", content: { type: "audio", data: "AAAA", mimeType: "audio/wav" } },
      ],
    });
    expect(server.requests.at(-1)?.messages).toMatchObject([
      { role: "user", text: "See:", images: [{ mimeType: "image/png" }] },
      { role: "assistant", text: "Yes?" },
      { role: "user", text: "[audio: audio/wav, 3 B]" },
    ]);
  });

  it("is turned down where the operator says so, without a model being opened", async () => {
    const model = vi.fn<AnswerSamplingOptions["model"]>();
    const error = await refusal(answer(PARAMS, { mode: "deny", model }));
    expect(error.code).toBe("denied");
    expect(error.hint).toContain("agent.sampling");
    // MCP's own code for it.
    expect(rpcFromError(error)).toMatchObject({ code: -1 });
    expect((await refusal(answer(PARAMS, { mode: "ask", model }))).message).toContain("No client can be asked");
    expect(model).not.toHaveBeenCalled();
  });

  it("waits for the user's yes, who sees what is asked", async () => {
    turn = { text: "Four." };
    const asked: unknown[] = [];
    const ask = (yes: boolean) => (question: unknown) => {
      asked.push(question);
      return Promise.resolve(yes);
    };
    expect(await answer(PARAMS, { mode: "ask", ask: ask(true) })).toMatchObject({ content: { text: "Four." } });
    const before = server.requests.length;
    expect((await refusal(answer(PARAMS, { mode: "ask", ask: ask(false) }))).code).toBe("denied");
    expect(server.requests).toHaveLength(before);
    expect(asked).toEqual([
      { server: "notes", params: PARAMS },
      { server: "notes", params: PARAMS },
    ]);
  });

  it("is told when it asks for what is not answered here, and nobody is asked", async () => {
    const ask = vi.fn<NonNullable<AnswerSamplingOptions["ask"]>>();
    const use = { type: "tool_use", id: "1", name: "add", input: {} };
    for (const params of [
      { ...PARAMS, tools: [{ name: "add", inputSchema: { type: "object" } }] },
      { ...PARAMS, toolChoice: { mode: "required" } },
      { messages: [] },
      { messages: [{ role: "system", content: { type: "text", text: "x" } }] },
      { messages: [{ role: "assistant", content: use }] },
      {},
    ]) {
      expect((await refusal(answer(params, { mode: "ask", ask }))).code).toBe("invalid_arguments");
    }
    expect(ask).not.toHaveBeenCalled();
  });

  it("is refused more than is meant for servers, and what is refused costs nothing", async () => {
    turn = { text: "Four." };
    const before = server.requests.length;
    const said = (text: string) => ({ messages: [{ role: "user", content: { type: "text", text } }] });
    const large = refusal(answer(said("y".repeat(200_001))));
    expect((await large).code).toBe("too_large");
    const image = { type: "image", data: "A".repeat(4_000_000), mimeType: "image/png" };
    expect((await refusal(answer({ messages: [{ role: "user", content: image }] }, { mode: "ask" }))).code).toBe(
      "too_large",
    );
    expect(server.requests).toHaveLength(before);

    const clock = new FakeClock();
    const model = () => open({ setting: { baseUrl: server.url, model: "m" } });
    const quick = answerSampling({ model, mode: "allow", maxTokens: 1000, clock });
    const from = { server: "notes", signal: new AbortController().signal };
    for (let count = 0; count < 60; count++) await quick({ ...PARAMS, maxTokens: 1 }, from);
    expect((await refusal(quick(PARAMS, from))).code).toBe("rate_limited");
    await clock.advance(60_000);
    await quick(PARAMS, from);

    // 50,000 tokens each, of 100,000 in an hour.
    const costly = said("y".repeat(198_000));
    await quick(costly, from);
    expect((await refusal(quick(costly, from))).message).toContain("100000 tokens");
    await clock.advance(60 * 60_000);
    await quick(costly, from);
  });

  it("can give up, while the user thinks and while the model answers", async () => {
    const never = () => new Promise<boolean>(() => undefined);
    const thinking = new AbortController();
    const asking = refusal(answer(PARAMS, { mode: "ask", ask: never }, thinking.signal));
    thinking.abort();
    expect((await asking).code).toBe("cancelled");

    turn = { text: "Fo", stallAfter: 0 };
    const answering = new AbortController();
    const waiting = refusal(answer(PARAMS, {}, answering.signal));
    await server.waitForRequest(server.requests.length + 1);
    answering.abort();
    expect((await waiting).code).toBe("cancelled");
  });

  it("gets what the model says when it refuses", async () => {
    turn = { refusal: "I must not." };
    expect(await answer(PARAMS)).toMatchObject({ content: { text: "I must not." }, stopReason: "endTurn" });
  });

  it("gets only the answer that counts after one that broke off", async () => {
    await using flaky = await startScriptedModel([{ text: ["Fi", "ve"], dropAfter: 1 }, { text: "Four." }]);
    const model = () => open({ setting: { baseUrl: flaky.url, model: "m" } });
    expect(await answer(PARAMS, { model })).toMatchObject({ content: { text: "Four." } });
    expect(flaky.requests).toHaveLength(2);
  });
});
