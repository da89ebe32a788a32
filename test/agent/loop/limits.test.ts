import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AgentEvent } from "../../../src/agent/agent-options.ts";
import { calls, text } from "../../../src/testing/index.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { allOf, callsOf, endOf, openStage, readBy, type Stage, statesOf, tool } from "../stage.ts";

let stage: Stage;
let atOnce = 0;
let most = 0;
let release = (): void => {};
beforeAll(async () => {
  const slow = tool("slow", async (_id, { n }) => {
    most = Math.max(most, ++atOnce);
    await new Promise((resolve) => setTimeout(resolve, 5));
    atOnce--;
    return { content: [{ type: "text", text: String(n) }] };
  });
  const hold = tool("hold", async () => {
    await new Promise<void>((resolve) => (release = resolve));
    return { content: [] };
  });
  stage = await openStage({ limits: { concurrency: 2 } }, { tools: [slow, hold] });
});
afterAll(() => stage[Symbol.asyncDispose]());

const SIX = calls(...Array.from({ length: 6 }, (_, n) => ({ name: "slow", arguments: { n } })));

describe("[agent-04b] calls of one answer", () => {
  it("take turns where the hub has a limit, and keep their order", async () => {
    // Its time stands still: whoever were refused would wait for ever.
    const { agent, model } = await stage.agent([SIX, text("All.")], { clock: new FakeClock() });
    const events = await allOf(agent.run("Go"));
    expect(readBy(model)).toEqual(["0", "1", "2", "3", "4", "5"]);
    expect(statesOf(events)).not.toContain("slow failed");
    expect(most).toBe(2);
  });

  it("[whole-12c] wait for what others have under way, and say so, and no longer than the run", async () => {
    const { hub } = stage;
    stage.ran.splice(0);
    const holding = [1, 2].map(() => hub.call({ name: "hold", arguments: {} }));
    const clock = new FakeClock();
    const { agent, model } = await stage.agent([calls({ name: "slow", arguments: { n: 7 } }), text("There.")], {
      clock,
    });
    const events: AgentEvent[] = [];
    const running = (async () => {
      for await (const event of agent.run("Go")) events.push(event);
    })();
    // The answer is there, and what is timed now is the wait of the call.
    while (!statesOf(events).includes("slow running") || clock.pending === 0) await settle();
    expect(stage.ran).not.toContain("slow");
    const message = expect.stringMatching(/^Waiting 1 s\. Limit reached: .*limits\.concurrency is 2/) as string;
    expect(callsOf(events)).toContainEqual(
      expect.objectContaining({ state: "pending", progress: { progress: 0, message } }),
    );
    release();
    await Promise.race(holding);
    await clock.advance(1000);
    await running;
    expect(endOf(events).reason).toBe("done");
    expect(readBy(model)).toEqual(["7"]);
  });

  it("[agent-04c] are left out when the run is aborted before their turn", async () => {
    const controller = new AbortController();
    const { agent } = await stage.agent([
      calls(...Array.from({ length: 4 }, () => ({ name: "hold" }))),
      text("Never."),
    ]);
    const events: AgentEvent[] = [];
    for await (const event of agent.run("Hold", { signal: controller.signal })) {
      events.push(event);
      if (event.type === "tool-call" && event.state === "running") controller.abort();
    }
    expect(endOf(events).reason).toBe("cancelled");
    const last = new Map(callsOf(events).map(({ id, state }) => [id, state]));
    expect([...last.values()]).toEqual(["cancelled", "cancelled", "cancelled", "cancelled"]);
  });
});
