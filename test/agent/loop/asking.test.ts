import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { AgentEvent, AskContext } from "../../../src/agent/agent-options.ts";
import type { AskAnswer, AskRequest } from "../../../src/model/decision.ts";
import { call, calls, text } from "../../../src/testing/index.ts";
import { writeSkill } from "../../support/skill-folder.ts";
import { allOf, callsOf, ECHO, endOf, openStage, readBy, type Stage, statesOf, tool } from "../stage.ts";

let stage: Stage;
beforeAll(async () => {
  const wipe = tool("wipe", async () => ({ content: [{ type: "text", text: "wiped" }] }));
  stage = await openStage({ tools: { ask: ["wipe"] } }, { tools: [ECHO, wipe] });
});
afterAll(() => stage[Symbol.asyncDispose]());
beforeEach(() => {
  stage.ran.splice(0);
});

describe("[agent-05c] a call that needs a yes", () => {
  it("holds the loop until somebody answers, and runs after a yes", async () => {
    const asked = Promise.withResolvers<{ request: AskRequest; context: AskContext }>();
    const answer = Promise.withResolvers<AskAnswer>();
    const { agent, model } = await stage.agent(
      [
        calls({ name: "wipe", arguments: { disk: "c" } }, { name: "echo", arguments: { text: "meanwhile" } }),
        text("Done."),
      ],
      {
        onAsk: (request, context) => {
          asked.resolve({ request, context });
          return answer.promise;
        },
      },
    );
    const events: AgentEvent[] = [];
    const running = (async () => {
      for await (const event of agent.run("Wipe it")) events.push(event);
    })();
    const { request, context } = await asked.promise;
    expect(request).toMatchObject({ name: "wipe", arguments: { disk: "c" } });
    while (!statesOf(events).includes("echo done")) await new Promise((resolve) => setImmediate(resolve));
    expect(statesOf(events)).not.toContain("wipe running");
    expect(statesOf(events)).toContain("wipe waiting");
    expect(callsOf(events)[0]?.id).toBe(context.toolCallId);
    expect(model.requests).toHaveLength(1);
    expect(stage.ran).toEqual(["echo"]);
    answer.resolve("once");
    await running;
    expect(statesOf(events).filter((state) => state.startsWith("wipe"))).toEqual([
      "wipe pending",
      "wipe waiting",
      "wipe running",
      "wipe done",
    ]);
    expect(readBy(model)).toEqual(["wiped", "meanwhile"]);
  });

  it("is denied after a no, which the model reads", async () => {
    // @ts-expect-error Callbacks are others' code, not all of it with types.
    const rubbish: () => AskAnswer = () => "yes please";
    for (const onAsk of [() => "no" as const, rubbish]) {
      const { agent, model } = await stage.agent([call("wipe"), text("Then not.")], { onAsk });
      const events = await allOf(agent.run("Wipe it"));
      expect(statesOf(events)).toEqual(["wipe pending", "wipe waiting", "wipe denied"]);
      expect(callsOf(events).at(-1)?.error?.code).toBe("denied");
      expect(readBy(model)[0]).toMatch(/user did not allow/);
      expect(endOf(events)).toMatchObject({ reason: "done", text: "Then not." });
      expect(stage.ran).toEqual([]);
    }
  });

  it("is not run where the question fails, which is told as that and not as a no", async () => {
    const onAsk = () => {
      throw new Error("The window was closed.");
    };
    const { agent, model } = await stage.agent([call("wipe"), text("Then not.")], { onAsk });
    const events = await allOf(agent.run("Wipe it"));
    expect(statesOf(events)).toEqual(["wipe pending", "wipe waiting", "wipe denied"]);
    expect(callsOf(events).at(-1)?.error).toMatchObject({ code: "denied", message: expect.stringContaining("window") });
    expect(readBy(model)[0]).toMatch(/could not be requested: The window was closed/);
    expect(stage.ran).toEqual([]);
  });

  it("is denied in the same way where a tool of the agent runs what the user does not allow", async () => {
    const dir = mkdtempSync(join(tmpdir(), "toolcrib-asking-"));
    writeSkill(dir, "review");
    await using own = await openStage(
      { tools: { ask: ["wipe", "skill__*"] }, skills: { dirs: [dir] } },
      {
        tools: ["wipe", ..."abcdefgh"].map((name) => tool(name, async () => ({ content: [] }))),
        home: join(dir, "home"),
      },
    );
    const wanted = [
      { name: "toolcrib_call", arguments: { name: "wipe", arguments: {} } },
      { name: "toolcrib_skill", arguments: { name: "review" } },
    ];
    const { agent, model } = await own.agent([calls(...wanted), text("Then not.")], { onAsk: () => "no", maxTools: 8 });
    const ended = callsOf(await allOf(agent.run("Do it"))).filter(
      ({ state }) => !["pending", "waiting"].includes(state),
    );
    rmSync(dir, { recursive: true });
    expect(ended.filter(({ state }) => state !== "running")).toMatchObject([
      { state: "denied", error: { code: "denied" } },
      { state: "denied", error: { code: "denied" } },
    ]);
    expect(readBy(model)).toEqual([expect.stringContaining("The user did not allow this call."), readBy(model)[0]]);
    expect(own.ran).toEqual([]);
  });

  it("asks the session's own callback where the agent has none, and is denied where nobody can be asked", async () => {
    const session = stage.hub.openSession({ onAsk: () => "once" });
    const { agent } = await stage.agent([call("wipe"), text("Done.")], { session });
    expect(statesOf(await allOf(agent.run("Wipe it")))).toEqual([
      "wipe pending",
      "wipe waiting",
      "wipe running",
      "wipe done",
    ]);
    session.close();
    const { agent: alone, model } = await stage.agent([call("wipe"), text("No.")]);
    const events = await allOf(alone.run("Wipe it"));
    expect(statesOf(events)).toEqual(["wipe pending", "wipe denied"]);
    // Who can allow it is for people; how, nobody is told here.
    expect(callsOf(events).at(-1)?.error?.hint).toContain("A person has to approve it");
    expect(readBy(model)).toEqual([
      'The call failed:\ndenied: wipe needs approval: ask "wipe" in the rules. No one is connected who can approve it.',
    ]);
  });

  it("follows the mode of the agent, also while it works", async () => {
    const free = tool("free", async () => {
      agent.setMode("read-only");
      return { content: [] };
    });
    await using own = await openStage({}, { tools: [ECHO, free] });
    const { agent, model } = await own.agent([call("free"), call("echo", { text: "still" }), text("Done.")], {
      mode: "ask",
      onAsk: () => "once",
    });
    const events = await allOf(agent.run("Do it"));
    expect(statesOf(events)).toEqual([
      "free pending",
      "free waiting",
      "free running",
      "free done",
      "echo pending",
      "echo running",
      "echo done",
    ]);
    const offered = model.requests.map(({ tools }) => tools.map(({ name }) => name));
    expect(offered[0]).toContain("free");
    expect(offered[1]).not.toContain("free");
    expect(offered[1]).toContain("echo");
    expect(agent.conversation.facts).toMatchObject({ mode: "ask", model: "openai-compatible/scripted" });
  });
});
