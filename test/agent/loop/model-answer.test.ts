import { describe, expect, it } from "vitest";
import type { AgentEvent } from "../../../src/agent/agent-options.ts";
import { CallIds, type ModelAnswer, requestAnswer } from "../../../src/agent/loop/model-answer.ts";
import type { ChatModel, StepPart } from "../../../src/agent/model/chat-model.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import { FakeClock } from "../../support/fake-clock.ts";

function modelOf(step: ChatModel["step"]): ChatModel {
  return { id: "test/model", provider: "openai", images: false, step };
}

interface Taken {
  readonly answer: ModelAnswer;
  readonly events: readonly AgentEvent[];
}

const clock = new FakeClock();

async function take(step: ChatModel["step"], signal = new AbortController().signal): Promise<Taken> {
  const events: AgentEvent[] = [];
  const answer = await requestAnswer(
    modelOf(step),
    { system: "You are a test.", messages: [], tools: [], signal },
    { emit: (event) => events.push(event), ids: new CallIds([]), clock, retries: 1 },
  );
  return { answer, events };
}

const takeParts = (...parts: StepPart[]): Promise<Taken> =>
  take(async function* () {
    yield* parts;
  });

describe("an answer of the model", () => {
  it("[agent-08a] joins pieces of text and of each thought, and tells them as they come", async () => {
    const { answer, events } = await takeParts(
      { type: "thought", text: "One " },
      { type: "thought", text: "thought." },
      { type: "thought", text: "", meta: { signature: "a" } },
      { type: "thought", text: "", meta: { redacted: "b" } },
      { type: "thought", text: "" },
      { type: "text", text: "Hel" },
      { type: "text", text: "" },
      { type: "text", text: "lo" },
      { type: "call", id: "1", name: "a", input: { n: 1 }, meta: { m: 1 } },
      { type: "text", text: "End" },
      { type: "usage", input: 5, output: 2, cached: 1 },
      { type: "usage", input: 5, output: 1 },
      { type: "finish", reason: "calls" },
    );
    expect(answer.parts).toEqual([
      { type: "thought", text: "One thought.", meta: { signature: "a" } },
      { type: "thought", text: "", meta: { redacted: "b" } },
      { type: "text", text: "Hello" },
      { type: "call", id: "1", name: "a", input: { n: 1 }, meta: { m: 1 } },
      { type: "text", text: "End" },
    ]);
    expect(answer).toMatchObject({ finish: "calls", usage: { input: 10, output: 3, cached: 1 } });
    expect(answer.failure).toBeUndefined();
    expect(events.map(({ type }) => type)).toEqual(["thought", "thought", "text", "text", "text"]);
  });

  it("[agent-08a] drops what a broken attempt said, and tells so", async () => {
    const { answer, events } = await takeParts(
      { type: "text", text: "Half" },
      { type: "call", id: "1", name: "a", problem: "cut" },
      { type: "again", attempt: 1, delayMs: 2000, reason: "The connection was lost." },
      { type: "again", attempt: 2, delayMs: 0, reason: "Too many requests" },
      { type: "text", text: "Whole" },
      { type: "finish", reason: "stop" },
    );
    expect(answer.parts).toEqual([{ type: "text", text: "Whole" }]);
    expect(answer.calls).toEqual([]);
    expect(events[1]).toMatchObject({
      type: "notice",
      level: "warning",
      message: expect.stringMatching(/again in 2 s: The connection was lost\. .*discarded/),
    });
    expect(events[2]).toMatchObject({ message: "The model is asked again at once: Too many requests." });
  });

  it("[agent-05a] gives every call an id of its own, and keeps why arguments cannot be read", async () => {
    const ids = new CallIds([{ role: "assistant", parts: [{ type: "call", id: "call_0", name: "a", input: {} }] }]);
    const taken = [ids.take("call_0"), ids.take(""), ids.take("call_0"), ids.take("new"), ids.take("")];
    expect(new Set(taken).size).toBe(5);
    expect(taken).not.toContain("call_0");
    expect(taken[3]).toBe("new");
    const { answer } = await takeParts(
      { type: "call", id: "x", name: "a", problem: "no JSON" },
      { type: "call", id: "x", name: "b", input: {} },
    );
    expect(answer.calls).toMatchObject([{ part: { id: "x", input: {} }, problem: "no JSON" }, { part: { name: "b" } }]);
    expect(answer.calls[1]?.part.id).not.toBe("x");
    expect(answer.calls[1]?.problem).toBeUndefined();
  });

  it("[agent-04c] ends with the signal although the model does not mind it, with what it had said", async () => {
    const controller = new AbortController();
    const taking = take(async function* () {
      yield { type: "text", text: "Wait" } as const;
      controller.abort();
      await new Promise(() => {});
    }, controller.signal);
    const { answer } = await taking;
    expect(answer.parts).toEqual([{ type: "text", text: "Wait" }]);
    expect(answer.failure).toMatchObject({ code: "cancelled" });
  });

  it("[agent-08a] is never thrown, whatever the model does", async () => {
    const broken = await take(() => {
      throw new TypeError("not even a stream");
    });
    expect(broken.answer.failure).toMatchObject({ code: "internal", message: "not even a stream" });
    const busy = await take(async function* () {
      yield { type: "text", text: "So" } as const;
      throw new ToolcribError("rate_limited", "Busy.");
    });
    expect(busy.answer).toMatchObject({ parts: [{ text: "So" }], failure: { code: "rate_limited" } });
  });

  it("[agent-04d] is asked for again where the model falls silent, and given up at last", async () => {
    const signals: AbortSignal[] = [];
    const asked = Promise.withResolvers<void>();
    const taking = take(async function* ({ signal }) {
      signals.push(signal);
      yield { type: "text", text: `Attempt ${signals.length}` } as const;
      if (signals.length === 2) asked.resolve();
      await new Promise(() => {});
    });
    await clock.advance(4 * 60_000);
    expect(signals).toHaveLength(1);
    await clock.advance(60_000);
    await asked.promise;
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    await clock.advance(5 * 60_000);
    const { answer, events } = await taking;
    expect(answer).toMatchObject({ parts: [{ text: "Attempt 2" }], failure: { code: "timeout" } });
    expect(events.filter(({ type }) => type === "notice")).toMatchObject([
      { message: expect.stringMatching(/discarded/) },
    ]);
    expect(clock.pending).toBe(0);
  });

  it("[agent-04b] is counted by its characters where the model tells no tokens", async () => {
    const said = { type: "text", text: "x".repeat(400) } as const;
    const { answer } = await takeParts(said, { type: "finish", reason: "stop" });
    expect(answer.usage).toEqual({ input: 4, output: expect.any(Number), estimated: true });
    expect(answer.usage.output).toBeGreaterThanOrEqual(100);
    const { answer: told } = await takeParts(said, { type: "usage", input: 1, output: 2 });
    expect(told.usage).toEqual({ input: 1, output: 2 });
  });
});
