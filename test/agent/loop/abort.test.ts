import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AgentEvent } from "../../../src/agent/agent-options.ts";
import { call, calls, rateLimited, text } from "../../../src/testing/index.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { abortedAt, allOf, callsOf, ECHO, endOf, endOfRun, openStage, type Stage, statesOf, tool } from "../stage.ts";

let stage: Stage;
const stopped: string[] = [];
let hanging = 0;
beforeAll(async () => {
  const hang = tool("hang", (_id, _input, signal) => {
    hanging += 1;
    signal?.addEventListener("abort", () => stopped.push("hang"), { once: true });
    return new Promise(() => {});
  });
  const wipe = tool("wipe", async () => ({ content: [] }));
  stage = await openStage({ tools: { ask: ["wipe"] } }, { tools: [ECHO, hang, wipe] });
});
afterAll(() => stage[Symbol.asyncDispose]());

const isText = ({ type }: AgentEvent): boolean => type === "text";
const isState =
  (wanted: string) =>
  (event: AgentEvent): boolean =>
    event.type === "tool-call" && event.state === wanted;

describe("[agent-04c] a run that is aborted", () => {
  it("in the middle of the model's answer keeps what was said, and the talk goes on", async () => {
    const { agent, model } = await stage.agent([{ text: ["I was ", "about to"], stallAfter: 1 }, text("Yes?")]);
    const events = await abortedAt(agent, isText);
    expect(endOf(events)).toMatchObject({ reason: "cancelled", text: "I was " });
    expect(endOf(events).error).toBeUndefined();
    expect(await endOfRun(agent.run("Are you there?"))).toMatchObject({ reason: "done", text: "Yes?" });
    expect(model.requests[1]?.messages.map((message) => message.text)).toEqual(["Begin", "I was ", "Are you there?"]);
    expect(model.aborted).toBe(1);
  });

  it("in the middle of a call stops the tool, and the model reads that it was cancelled", async () => {
    const { agent, model } = await stage.agent([
      { text: "Both:", calls: [{ name: "hang" }, { name: "echo", arguments: { text: "quick" } }] },
      text("On we go."),
    ]);
    let isEchoDone = false;
    const events = await abortedAt(agent, (event) => {
      isEchoDone ||= isState("done")(event);
      return isEchoDone && hanging > 0;
    });
    expect(statesOf(events).at(-1)).toBe("hang cancelled");
    expect(endOf(events).reason).toBe("cancelled");
    expect(stopped).toEqual(["hang"]);
    expect(await endOfRun(agent.run("Go on"))).toMatchObject({ reason: "done" });
    expect(model.requests[1]?.messages.at(-2)?.results.map((result) => result.text)).toEqual([
      expect.stringContaining("cancelled"),
      "quick",
    ]);
    expect(model.problems).toEqual([]);
  });

  it("while a person is asked withdraws the question", async () => {
    const withdrawn: boolean[] = [];
    const { agent, model } = await stage.agent([calls({ name: "wipe" }), text("Fine.")], {
      onAsk: (_request, { signal }) =>
        new Promise(() => signal.addEventListener("abort", () => withdrawn.push(true), { once: true })),
    });
    const events = await abortedAt(agent, isState("waiting"));
    expect(statesOf(events)).toEqual(["wipe pending", "wipe waiting", "wipe cancelled"]);
    expect(endOf(events).reason).toBe("cancelled");
    expect(withdrawn).toEqual([true]);
    expect(await endOfRun(agent.run("Never mind"))).toMatchObject({ reason: "done" });
    expect(model.problems).toEqual([]);
  });

  it("while a busy model is waited for ends at once", async () => {
    const clock = new FakeClock();
    const { agent, model } = await stage.agent([rateLimited(30), text("Here.")], { clock });
    const events = await abortedAt(agent, ({ type }) => type === "notice");
    expect(events.map(({ type }) => type)).toEqual(["notice", "end"]);
    expect(endOf(events).reason).toBe("cancelled");
    expect(model.requests).toHaveLength(1);
    expect(await endOfRun(agent.run("Now?"))).toMatchObject({ text: "Here." });
  });

  it("before it began asks nobody", async () => {
    const { agent, model } = await stage.agent([text("Never.")]);
    expect(await allOf(agent.run("Begin", { signal: AbortSignal.abort() }))).toEqual([
      { type: "end", reason: "cancelled", text: "", usage: { input: 0, output: 0 } },
    ]);
    expect(model.requests).toEqual([]);
    expect(agent.conversation.messages).toEqual([]);
  });

  it("by whoever stops reading ends too, and lets the next one begin", async () => {
    const { agent, model } = await stage.agent([{ text: ["One", "Two"], stallAfter: 1 }, call("hang"), text("Last.")]);
    for await (const event of agent.run("Talk")) if (isText(event)) break;
    expect(agent.conversation.messages.at(-1)).toEqual({ role: "assistant", parts: [{ type: "text", text: "One" }] });
    for await (const event of agent.run("Hang")) if (isState("running")(event)) break;
    expect(agent.conversation.messages.at(-1)).toMatchObject({ role: "tool", results: [{ isError: true }] });
    expect(await endOfRun(agent.run("Talk again"))).toMatchObject({ reason: "done", text: "Last." });
    expect(model.problems).toEqual([]);
  });

  it("by the end of its session is an error that says so", async () => {
    const session = stage.hub.openSession();
    const { agent, model } = await stage.agent([call("hang")], { session });
    const events: AgentEvent[] = [];
    for await (const event of agent.run("Hang")) {
      events.push(event);
      if (isState("running")(event)) session.close();
    }
    expect(callsOf(events).at(-1)?.state).toBe("cancelled");
    expect(endOf(events)).toMatchObject({ reason: "error", error: { message: expect.stringContaining("closed") } });
    expect(await endOfRun(agent.run("Again"))).toMatchObject({ reason: "error" });
    expect(model.requests).toHaveLength(1);
  });

  it("goes on by itself where the model's answer broke off", async () => {
    const clock = new FakeClock();
    const { agent, model } = await stage.agent([{ text: ["Half ", "of it"], dropAfter: 1 }, text("Whole.")], { clock });
    const events: AgentEvent[] = [];
    for await (const event of agent.run("Tell me")) {
      events.push(event);
      if (event.type === "notice") void clock.advance(60_000);
    }
    expect(endOf(events)).toMatchObject({ reason: "done", text: "Whole." });
    expect(agent.conversation.messages.at(-1)).toEqual({
      role: "assistant",
      parts: [{ type: "text", text: "Whole." }],
    });
    expect(model.requests).toHaveLength(2);
  });
});
