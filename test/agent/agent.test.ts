import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { Conversations } from "../../src/agent/conversation.ts";
import type { ChatModel } from "../../src/agent/model/chat-model.ts";
import { call, text } from "../../src/testing/index.ts";
import { misbehaving } from "../support/servers.ts";
import { writeSkill } from "../support/skill-folder.ts";
import { allOf, ECHO, endOf, endOfRun, openStage, type Stage, statesOf, textOf, tool } from "./stage.ts";

const dir = mkdtempSync(join(tmpdir(), "toolcrib-agent-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let stage: Stage;
beforeAll(async () => {
  writeSkill(join(dir, "skills"), "shout", { body: "Answer in capitals: $ARGUMENTS" });
  writeSkill(join(dir, "skills"), "parrot", {
    more: ["command-dispatch: tool", "command-tool: repeat", "command-arg-mode: raw"],
  });
  stage = await openStage({ skills: { dirs: [join(dir, "skills")] } }, { tools: [ECHO, REPEAT] });
});
afterAll(() => stage[Symbol.asyncDispose]());

const REPEAT = tool("repeat", async (_id, input) => ({ content: [{ type: "text", text: JSON.stringify(input) }] }));

const saying = (answer: string): ChatModel => ({
  id: "test/parrot",
  provider: "openai",
  images: false,
  async *step() {
    yield { type: "text", text: answer };
    yield { type: "finish", reason: "stop" };
  },
});

describe("[agent-08a] an agent", () => {
  it("has one run at a time, and takes a model of one's own", async () => {
    await using agent = createAgent({ hub: stage.hub, model: saying("Hello.") });
    const first = agent.run("One")[Symbol.asyncIterator]();
    expect((await first.next()).value).toEqual({ type: "text", text: "Hello." });
    const [second, ...more] = await allOf(agent.run("Two"));
    expect(more).toEqual([]);
    expect(second).toMatchObject({ type: "end", reason: "error", error: { code: "conflict" } });
    expect((await first.next()).value).toMatchObject({ type: "usage", total: { estimated: true } });
    expect((await first.next()).value).toMatchObject({ type: "end", reason: "done", text: "Hello." });
    // Without reading to the very end.
    agent.setModel(saying("Other."));
    expect(await endOfRun(agent.run("Three"))).toMatchObject({ reason: "done", text: "Other." });
  });

  it("ends its run and its own session when it is closed, and leaves a session that it was given", async () => {
    const { agent, model } = await stage.agent([{ text: ["So ", "long"], stallAfter: 1 }]);
    const running = allOf(agent.run("Talk"));
    await model.waitForRequest(1);
    await agent.close();
    expect(endOf(await running).reason).toBe("cancelled");
    expect(agent.session.closed).toBe(true);
    expect(await endOfRun(agent.run("More"))).toMatchObject({ error: { message: expect.stringContaining("closed") } });
    const session = stage.hub.openSession();
    const given = createAgent({ hub: stage.hub, session, model: saying("Hi.") });
    await endOfRun(given.run("Hi"));
    await given.close();
    expect(session.closed).toBe(false);
    session.close();
  });

  it("says what is missing, and keeps no prompt that nobody could answer", async () => {
    await using none = createAgent({ hub: stage.hub });
    expect(await endOfRun(none.run("Hi"))).toMatchObject({
      reason: "error",
      error: { code: "invalid_config", hint: expect.stringContaining("agent.model") },
    });
    const env: NodeJS.ProcessEnv = {};
    await using locked = createAgent({ hub: stage.hub, model: "anthropic/claude-sonnet-4-5", env });
    await expect(locked.model()).rejects.toMatchObject({ code: "unauthorized" });
    expect(await endOfRun(locked.run("Hi"))).toMatchObject({ error: { code: "unauthorized" } });
    expect(locked.conversation.messages).toEqual([]);
    env["ANTHROPIC_API_KEY"] = "set meanwhile";
    expect((await locked.model()).id).toBe("anthropic/claude-sonnet-4-5");
    expect(await endOfRun(none.run("  \n"))).toMatchObject({ error: { code: "invalid_arguments" } });
  });

  it("tells what became of the servers of its session: once, and in the system prompt", async () => {
    const { agent, model } = await stage.agent([call("mine__echo", { text: "ok" }), text("Hi."), text("Ho.")], {
      sessionOptions: {
        servers: {
          mine: misbehaving("ok"),
          gone: { command: join(dir, "no-such-command") },
        },
      },
    });
    const events = await allOf(agent.run("Hi"));
    const notices = events.filter((event) => event.type === "notice");
    expect(notices).toContainEqual(expect.objectContaining({ level: "warning", server: "gone" }));
    expect(statesOf(events)).toEqual(["mine__echo pending", "mine__echo running", "mine__echo done"]);
    expect(model.requests[0]?.system).toContain("gone");
    expect((await allOf(agent.run("Ho"))).filter(({ type }) => type === "notice")).toEqual([]);
  });

  it("runs skills that the user calls by name", async () => {
    const { agent, model } = await stage.agent([text("HELLO")]);
    expect(agent.commands().map(({ name }) => name)).toEqual(expect.arrayContaining(["shout", "parrot"]));
    const answered = await allOf(agent.run("/parrot polly wants"));
    expect(textOf(answered)).toContain("polly");
    expect(endOf(answered)).toMatchObject({ reason: "done" });
    expect(model.requests).toEqual([]);
    await allOf(agent.run("/shout hello"));
    expect(model.requests[0]?.messages.at(-1)?.text).toContain("Answer in capitals: hello");
    expect(model.requests[0]?.messages[0]?.text).toBe("/parrot polly wants");
    expect(agent.conversation.title).toBe("/parrot polly wants");
    expect(agent.conversation.messages.at(-2)).toMatchObject({ role: "user", said: "/shout hello" });
    expect(await endOfRun(agent.run("/skill-off nothing"))).toMatchObject({
      reason: "done",
      text: expect.stringContaining("not active"),
    });
  });

  it("asks once for a skill that hands over to a tool, and tells a no as what came of it", async () => {
    const asked: string[] = [];
    const { agent } = await stage.agent([], {
      mode: "ask",
      onAsk: ({ name }) => {
        asked.push(name);
        return asked.length === 1 ? "once" : "no";
      },
    });
    expect(textOf(await allOf(agent.run("/parrot polly")))).toContain("polly");
    stage.ran.splice(0);
    const events = await allOf(agent.run("/parrot again"));
    expect(asked).toEqual(["repeat", "repeat"]);
    expect(stage.ran).toEqual([]);
    expect(events.map(({ type }) => type)).toEqual(["text", "end"]);
    expect(textOf(events)).toMatch(/denied/);
    expect(endOf(events)).toMatchObject({ reason: "done", text: textOf(events) });
    agent.setMode("read-only");
    expect(textOf(await allOf(agent.run("/parrot more")))).toMatch(/denied|no tool|no such tool/);
    expect(stage.ran).toEqual([]);
  });

  it("has its session for itself, and leaves it as it was", async () => {
    const session = stage.hub.openSession();
    const names = (): string[] => stage.hub.view(session).tools.map(({ name }) => name);
    const before = names();
    const first = createAgent({ hub: stage.hub, session, model: saying("One."), mode: "read-only", exclude: ["echo"] });
    expect(() => createAgent({ hub: stage.hub, session, model: saying("Two.") })).toThrow(
      expect.objectContaining({ code: "conflict", hint: expect.stringContaining("another session") }),
    );
    await allOf(first.run("Hi"));
    expect(names()).toContain("toolcrib_plan");
    expect(names()).not.toContain("repeat");
    await first.close();
    expect(names()).toEqual(before);
    await using second = createAgent({ hub: stage.hub, session, model: saying("Two.") });
    await first.close();
    await allOf(second.run("Hi"));
    expect(names()).toContain("toolcrib_plan");
    session.close();
  });

  it("refuses what is no prompt", async () => {
    await using agent = createAgent({ hub: stage.hub, model: saying("Hm.") });
    for (const odd of [null, undefined, 7, {}, [null], ["text"], [{ text: "no type" }], [{ type: "text" }], []]) {
      // @ts-expect-error Programs without types call it too.
      expect(await endOfRun(agent.run(odd))).toMatchObject({ error: { code: "invalid_arguments" } });
    }
  });

  it("[agent-04b] keeps to its tokens where the model tells none", async () => {
    let steps = 0;
    const silent: ChatModel = {
      ...saying(""),
      async *step() {
        yield { type: "call", id: `${++steps}`, name: "echo", input: { text: "x".repeat(400) } };
        yield { type: "finish", reason: "calls" };
      },
    };
    await using agent = createAgent({ hub: stage.hub, model: silent, maxTokens: 10 });
    expect(await endOfRun(agent.run("On and on"))).toMatchObject({ reason: "tokens", usage: { estimated: true } });
    expect(steps).toBe(1);
  });

  it("[agent-03b] tells once of servers that connect still", async () => {
    await using own = await openStage({ mcpServers: { slow: misbehaving("never-answers") } }, { wait: false });
    const { agent } = await own.agent([text("One."), text("Two.")]);
    const notices = (await allOf(agent.run("Hi"))).filter(({ type }) => type === "notice");
    expect(notices).toMatchObject([
      { level: "info", server: "slow", message: expect.stringContaining("still connecting") },
    ]);
    expect((await allOf(agent.run("Again"))).filter(({ type }) => type === "notice")).toEqual([]);
  });
});

describe("[agent-09a] a conversation", () => {
  it("is kept as it goes and taken up by another process", async () => {
    const config = join(mkdtempSync(join(dir, "home-")), "toolcrib.json");
    const home = { env: { TOOLCRIB_HOME: join(config, "..") } };
    let id: string;
    {
      await using first = await openStage({ store: "sqlite" }, { tools: [ECHO], ...home });
      const { agent } = await first.agent([call("echo", { text: "blue" }), text("It is blue.")], {
        sessionOptions: { workspaceDir: dir, door: "cli" },
        mode: "ask",
      });
      await allOf(agent.run("Which colour?"));
      id = agent.conversation.id;
    }
    await using second = await openStage({ store: "sqlite" }, { tools: [ECHO], ...home });
    const conversations = new Conversations(second.hub.internals.store);
    const page = await conversations.list({ cwd: dir });
    expect(page.entries).toMatchObject([
      { id, title: "Which colour?", door: "cli", facts: { mode: "ask", model: "openai-compatible/scripted" } },
    ]);
    const { agent, model } = await second.agent([text("I said blue.")], { conversation: await conversations.open(id) });
    expect(agent.mode).toBe("ask");
    expect(await endOfRun(agent.run("What did you say?"))).toMatchObject({ text: "I said blue." });
    expect(model.requests[0]?.messages.map((message) => message.text)).toEqual([
      "Which colour?",
      "",
      expect.any(String),
      "It is blue.",
      "What did you say?",
    ]);
    expect(model.problems).toEqual([]);

    const elsewhere = await conversations.open(id);
    await elsewhere?.append([{ role: "user", content: [{ type: "text", text: "from elsewhere" }] }]);
    expect(await endOfRun(agent.run("And now?"))).toMatchObject({
      reason: "error",
      error: { code: "conflict", hint: expect.stringContaining("Open it again") },
    });
  });

  it("that cannot be kept any more ends the run with what was said, and why", async () => {
    const home = mkdtempSync(join(dir, "home-"));
    await using own = await openStage({ store: "sqlite" }, { env: { TOOLCRIB_HOME: home } });
    const meanwhile = (act: () => Promise<unknown> | undefined): ChatModel => ({
      ...saying(""),
      async *step() {
        yield { type: "text", text: "So far." };
        await act();
        yield { type: "finish", reason: "stop" };
      },
    });
    const remove = (): Promise<boolean> => new Conversations(own.hub.internals.store).remove(removed.conversation.id);
    await using removed = createAgent({ hub: own.hub, model: meanwhile(remove) });
    expect(await endOfRun(removed.run("Hi"))).toMatchObject({
      reason: "error",
      text: "So far.",
      error: { code: "not_found" },
    });
    expect(await endOfRun(removed.run("Hi"))).toMatchObject({ error: { code: "not_found" } });
    expect((await new Conversations(own.hub.internals.store).list()).entries).toEqual([]);
    await using closed = createAgent({ hub: own.hub, model: meanwhile(() => own.hub.internals.store?.close()) });
    expect(await endOfRun(closed.run("Hi"))).toMatchObject({
      reason: "error",
      text: "So far.",
      error: { code: "server_unavailable", message: expect.stringContaining("the store is closed") },
    });
  });
});
