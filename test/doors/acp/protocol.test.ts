import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { serveAcp } from "../../../src/doors/acp/serve-acp.ts";
import { writeSkill } from "../../support/skill-folder.ts";
import { acpOn, calls, hangs, readOnly, says, TestModel, tool } from "./acp-bench.ts";
import { eventually } from "../../support/eventually.ts";

const cwd = mkdtempSync(join(tmpdir(), "toolcrib-acp-"));

describe("[acp-10a] initialize and authenticate", () => {
  it("agrees on its own version and says what it can do", async () => {
    const { client } = await acpOn();
    const answer = await client.initialize(99);
    expect(answer).toMatchObject({
      protocolVersion: 1,
      agentInfo: { name: "toolcrib" },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: true, acp: true },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      },
      authMethods: [],
    });
  });

  it("does not claim images for a model that cannot see", async () => {
    const { client } = await acpOn({ door: { model: new TestModel([], { images: false }) } });
    const { agentCapabilities } = await client.initialize();
    expect(agentCapabilities?.promptCapabilities?.image).toBe(false);
  });

  it("says which key to set, refuses a prompt until then, and goes on once it is set", async () => {
    const env: NodeJS.ProcessEnv = {};
    const { client } = await acpOn({ door: { model: "anthropic/claude-sonnet-4-5", env } });
    const { authMethods } = await client.initialize();
    expect(authMethods).toMatchObject([{ id: "model-key", name: "Set ANTHROPIC_API_KEY" }]);
    const { sessionId } = await client.newSession(cwd);
    const refused = { code: -32000, message: expect.stringContaining("ANTHROPIC_API_KEY") };
    await expect(client.prompt(sessionId, "hi")).rejects.toMatchObject(refused);
    await expect(client.raw("authenticate", { methodId: "model-key" })).rejects.toMatchObject(refused);
    env["ANTHROPIC_API_KEY"] = "sk-test";
    expect(await client.raw("authenticate", { methodId: "model-key" })).toEqual({});
    expect((await client.initialize()).authMethods).toEqual([]);
  });

  it("says that there is no model at all, takes up one that comes, and names one that is gone", async () => {
    const { client, hub } = await acpOn({ door: { model: undefined } });
    const { sessionId } = await client.newSession(cwd);
    const { sessionId: second } = await client.newSession(cwd);
    const wants = (id: string) => client.prompt(id, "hi");
    await expect(wants(sessionId)).rejects.toMatchObject({
      code: -32000,
      message: expect.stringContaining("agent.model"),
    });
    // One that cannot be reached: its address is named, so it was asked.
    await hub.reload({ agent: { retries: 0, model: { baseUrl: "http://127.0.0.1:9/v1", model: "near" } } });
    await expect(wants(sessionId)).rejects.toMatchObject({ data: { code: "server_unavailable" } });
    expect(await client.raw("session/resume", { sessionId: second, cwd })).toMatchObject({
      configOptions: [{ currentValue: "openai-compatible/near" }],
    });
    await client.raw("session/set_config_option", {
      sessionId: second,
      configId: "model",
      value: "openai-compatible/near",
    });
    await hub.reload({ agent: { model: "ollama/other" } });
    await expect(wants(second)).rejects.toMatchObject({
      message: expect.stringContaining("openai-compatible/near"),
      data: { code: "invalid_config" },
    });
  });

  it("tells of each model that has no key", async () => {
    const config = { agent: { models: ["openai/gpt-5", "ollama/small"] } };
    const { client } = await acpOn({ config });
    const { authMethods } = await client.initialize();
    expect(authMethods).toMatchObject([
      { id: "model-key:openai/gpt-5", name: expect.stringContaining("OPENAI_API_KEY") },
    ]);
    expect(await client.raw("authenticate", { methodId: "model-key" })).toEqual({});
    await expect(client.raw("authenticate", { methodId: "model-key:openai/gpt-5" })).rejects.toMatchObject({
      code: -32000,
    });
    await expect(client.raw("authenticate", { methodId: "model-key:x" })).rejects.toMatchObject({ code: -32602 });
  });
});

describe("[acp-10b] sessions", () => {
  it("are opened, listed by folder, resumed without replay, closed, loaded with replay and deleted", async () => {
    const { client, model } = await acpOn({ tools: [tool("look", readOnly)] });
    model.will(
      [{ type: "thought", text: "hm" }, ...calls(["look", { path: "a.txt" }])],
      says("It is there."),
      says("Again."),
    );
    const { sessionId } = await client.newSession(cwd);
    // Nothing is said in it, so it is not listed.
    await client.newSession(cwd);
    expect(await client.prompt(sessionId, "Look for a.txt")).toMatchObject({ stopReason: "end_turn" });
    const { sessions } = await client.raw<{ sessions: object[] }>("session/list", { cwd });
    expect(sessions).toMatchObject([{ sessionId, cwd, title: "Look for a.txt" }]);

    client.updates.length = 0;
    expect(await client.raw("session/resume", { sessionId, cwd })).toMatchObject({ modes: { currentModeId: "ask" } });
    expect(client.of("user_message_chunk")).toEqual([]);
    await client.raw("session/close", { sessionId });
    await expect(client.prompt(sessionId, "hi")).rejects.toMatchObject({ code: -32002 });

    client.updates.length = 0;
    await client.raw("session/load", { sessionId, cwd, mcpServers: [] });
    expect(client.updates.map(({ update }) => update)).toMatchObject([
      { sessionUpdate: "user_message_chunk", content: { text: "Look for a.txt" } },
      { sessionUpdate: "agent_thought_chunk", content: { text: "hm" } },
      { sessionUpdate: "tool_call", toolCallId: "call-look-0", status: "pending", rawInput: { path: "a.txt" } },
      { sessionUpdate: "tool_call_update", toolCallId: "call-look-0", status: "completed" },
      { sessionUpdate: "agent_message_chunk", content: { text: "It is there." } },
    ]);
    await client.prompt(sessionId, "And now?");
    expect(model.steps.at(-1)?.messages).toHaveLength(5);

    await client.raw("session/delete", { sessionId });
    await expect(client.raw("session/load", { sessionId, cwd, mcpServers: [] })).rejects.toMatchObject({
      code: -32002,
      data: { sessionId },
    });
    expect(await client.raw("session/list", {})).toEqual({ sessions: [] });
  });

  it("need an absolute folder, and one that is named exists", async () => {
    const { client } = await acpOn();
    await expect(client.newSession("here")).rejects.toMatchObject({ code: -32602 });
    await expect(client.raw("session/load", { sessionId: "none", cwd, mcpServers: [] })).rejects.toMatchObject({
      code: -32002,
    });
    await expect(client.prompt("none", "hi")).rejects.toMatchObject({ code: -32002 });
  });

  it("take one prompt at a time", async () => {
    const { client, model } = await acpOn();
    model.will(hangs("wait"));
    const { sessionId } = await client.newSession(cwd);
    const first = client.prompt(sessionId, "one");
    await eventually(() => client.text() === "wait");
    await expect(client.prompt(sessionId, "two")).rejects.toMatchObject({ data: { code: "conflict" } });
    await client.cancel(sessionId);
    expect(await first).toEqual({ stopReason: "cancelled" });
    expect(await client.prompt(sessionId, "three")).toMatchObject({ stopReason: "end_turn" });
  });
});

describe("[acp-10c] modes and the model", () => {
  it("a session that was left in a laxer mode, or in another role, is not what the agent is started with", async () => {
    const home = mkdtempSync(join(tmpdir(), "toolcrib-acp-home-"));
    const config = { store: "sqlite", roles: { reader: {}, writer: {} } } as const;
    const start = (door: object) => acpOn({ config, hubOptions: { home }, door });
    const first = await start({ mode: "auto", role: "reader" });
    const { sessionId } = await first.client.newSession(cwd);
    await first.client.prompt(sessionId, "hi");
    await first.client.end();
    const known = { sessionId, cwd, mcpServers: [] };
    const reader = await start({ mode: "read-only", role: "reader" });
    expect(await reader.client.raw("session/load", known)).toMatchObject({ modes: { currentModeId: "read-only" } });
    expect(await reader.client.raw("session/list", {})).toMatchObject({ sessions: [{ sessionId }] });
    const writer = await start({ role: "writer" });
    await expect(writer.client.raw("session/load", known)).rejects.toMatchObject({ code: -32002 });
    expect(await writer.client.raw("session/list", {})).toEqual({ sessions: [] });
    await writer.client.raw("session/delete", { sessionId }).catch(() => undefined);
    expect(await reader.client.raw("session/list", {})).toMatchObject({ sessions: [{ sessionId }] });
  });

  it("offers three modes and holds them; unknown ones are refused", async () => {
    const { client, model } = await acpOn({
      tools: [tool("change"), tool("look", readOnly)],
      permit: () => "reject_once",
    });
    const { sessionId, modes } = await client.newSession(cwd);
    expect(modes?.currentModeId).toBe("ask");
    expect(modes?.availableModes.map(({ id }) => id)).toEqual(["ask", "auto", "read-only"]);
    model.will(calls(["change"], ["look"]));
    await client.prompt(sessionId, "ask");
    expect(client.permissions).toHaveLength(1);

    await client.raw("session/set_mode", { sessionId, modeId: "auto" });
    expect(client.of("current_mode_update").at(-1)).toMatchObject({ currentModeId: "auto" });
    model.will(calls(["change"]));
    await client.prompt(sessionId, "auto");
    expect(client.permissions).toHaveLength(1);
    expect(client.of("tool_call_update").at(-1)).toMatchObject({ status: "completed" });

    await client.raw("session/set_mode", { sessionId, modeId: "read-only" });
    await client.prompt(sessionId, "what is there?");
    expect(model.tools).toContain("look");
    expect(model.tools).not.toContain("change");
    await expect(client.raw("session/set_mode", { sessionId, modeId: "yolo" })).rejects.toMatchObject({ code: -32602 });
  });

  it("asks in every mode where a rule of the config does", async () => {
    const config = { tools: { ask: ["look"] } };
    const { client, model } = await acpOn({ config, tools: [tool("look", readOnly)], permit: () => "reject_once" });
    const { sessionId } = await client.newSession(cwd);
    for (const modeId of ["auto", "read-only"]) {
      await client.raw("session/set_mode", { sessionId, modeId });
      model.will(calls(["look"]));
      await client.prompt(sessionId, modeId);
    }
    expect(client.permissions).toHaveLength(2);
  });

  it("changes the model to one of the config, and to no other", async () => {
    const config = { agent: { models: ["ollama/small"] } };
    const { client } = await acpOn({ config });
    const { sessionId, configOptions } = await client.newSession(cwd);
    expect(configOptions).toMatchObject([{ id: "model", category: "model", currentValue: "test/one" }]);
    const set = (value: string) => client.raw("session/set_config_option", { sessionId, configId: "model", value });
    expect(await set("ollama/small")).toMatchObject({ configOptions: [{ currentValue: "ollama/small" }] });
    await expect(set("ollama/other")).rejects.toMatchObject({ code: -32602 });
    expect(await client.raw("session/resume", { sessionId, cwd })).toMatchObject({
      configOptions: [{ currentValue: "ollama/small" }],
    });
  });
});

describe("[acp-13a] a message that is too long", () => {
  it("is answered, logged and the end", async () => {
    const logged: string[] = [];
    const input = new PassThrough();
    const output = new PassThrough();
    const { hub } = await acpOn();
    const log = (message: string) => void logged.push(message);
    const served = serveAcp({ hub, input, output, env: {}, log, maxMessageBytes: 1000 });
    const ended = served.catch((error: unknown) => error);
    input.write(`${"\n".repeat(2000)}${JSON.stringify({ jsonrpc: "2.0", method: "x".repeat(900) })}\n`);
    input.write("y".repeat(600));
    input.write("y".repeat(600));
    expect(await ended).toMatchObject({ code: "too_large" });
    expect(logged).toEqual([expect.stringContaining("1000 bytes")]);
    expect(JSON.parse(String(output.read()))).toMatchObject({ id: null, error: { data: { code: "too_large" } } });
  });
});

describe("[acp-10b] a session in another folder", () => {
  it("ends what is under way first, keeps how it ended, and is listed there", async () => {
    const { client, model } = await acpOn();
    model.will(hangs("half"), says("whole"));
    const { sessionId } = await client.newSession(`${cwd}/sub/..//`);
    expect(await client.raw("session/resume", { sessionId, cwd: `${cwd}/` })).toMatchObject({ modes: {} });
    const running = client.prompt(sessionId, "go");
    await eventually(() => client.text() === "half");
    const place = tmpdir();
    await client.raw("session/load", { sessionId, cwd: place, mcpServers: [] });
    expect(await running).toEqual({ stopReason: "cancelled" });
    expect(await client.prompt(sessionId, "again")).toMatchObject({ stopReason: "end_turn" });
    expect(JSON.stringify(model.steps.at(-1)?.messages)).toContain("half");
    expect(await client.raw("session/list", { cwd: `${place}/` })).toMatchObject({
      sessions: [{ sessionId, cwd: place }],
    });
    expect(await client.raw("session/list", { cwd })).toEqual({ sessions: [] });
  });
});

describe("[acp-10d] a prompt", () => {
  const prompt = [
    { type: "text", text: "Compare" },
    { type: "image", data: "aGk=", mimeType: "image/png" },
    { type: "resource", resource: { uri: "file:///a.txt", text: "the text" } },
    { type: "resource_link", uri: "file:///b.txt", name: "b.txt" },
  ];

  it("takes text, images, embedded context and links", async () => {
    const { client, model } = await acpOn();
    const { sessionId } = await client.newSession(cwd);
    await client.raw("session/prompt", { sessionId, prompt });
    expect(model.steps[0]?.messages.at(-1)).toMatchObject({ role: "user", content: prompt });
  });

  it("is refused with a reason if it holds what cannot be taken", async () => {
    const { client } = await acpOn({ door: { model: new TestModel([], { images: false }) } });
    const { sessionId } = await client.newSession(cwd);
    const ask = (block: object) => client.raw("session/prompt", { sessionId, prompt: [block] });
    await expect(ask({ type: "audio", data: "aGk=", mimeType: "audio/wav" })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining("audio"),
    });
    await expect(ask(prompt[1] ?? {})).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining("image"),
    });
  });

  it("ends with a reason that ACP knows, or as an error with a hint", async () => {
    const { client, model } = await acpOn({ config: { agent: { maxSteps: 1 } }, tools: [tool("look", readOnly)] });
    const { sessionId } = await client.newSession(cwd);
    model.will([
      { type: "text", text: "no" },
      { type: "finish", reason: "refusal" },
    ]);
    expect(await client.prompt(sessionId, "bad")).toMatchObject({ stopReason: "refusal" });
    model.will([
      { type: "text", text: "lo" },
      { type: "finish", reason: "length" },
    ]);
    expect(await client.prompt(sessionId, "long")).toMatchObject({ stopReason: "max_tokens" });
    model.will(calls(["look"]));
    expect(await client.prompt(sessionId, "steps")).toMatchObject({ stopReason: "max_turn_requests" });
    model.will(() => {
      throw new Error("The model is out of order.");
    });
    await expect(client.prompt(sessionId, "fail")).rejects.toMatchObject({
      message: expect.stringContaining("out of order"),
    });
  });
});

describe("[acp-10e] cancel", () => {
  it("ends the stream of the model", async () => {
    const { client, model } = await acpOn();
    const { sessionId } = await client.newSession(cwd);
    model.will(hangs("I begin"));
    const answer = client.prompt(sessionId, "go");
    await eventually(() => client.text() === "I begin");
    await client.cancel(sessionId);
    expect(await answer).toEqual({ stopReason: "cancelled" });
  });

  it("ends a tool call, which gets its last update", async () => {
    let aborted = false;
    const waits = tool("waits", {
      ...readOnly,
      execute: (_id, _params, signal) =>
        new Promise((_resolve, reject) =>
          signal?.addEventListener("abort", () => {
            aborted = true;
            reject(new Error("aborted"));
          }),
        ),
    });
    const { client, model } = await acpOn({ tools: [waits] });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["waits"]));
    const answer = client.prompt(sessionId, "go");
    await eventually(() => client.of("tool_call_update").some(({ status }) => status === "in_progress"));
    await client.cancel(sessionId);
    expect(await answer).toEqual({ stopReason: "cancelled" });
    expect(aborted).toBe(true);
    expect(client.of("tool_call_update").at(-1)).toMatchObject({ toolCallId: "call-waits-0", status: "failed" });
  });

  it("ends an open question, whether the client answers it or not", async () => {
    let ran = false;
    const change = tool("change", { execute: async () => ((ran = true), { content: [] }) });
    const { client, model } = await acpOn({ tools: [change], permit: () => new Promise<never>(() => {}) });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["change"]));
    const answer = client.prompt(sessionId, "go");
    await eventually(() => client.permissions.length === 1);
    await client.cancel(sessionId);
    expect(await answer).toEqual({ stopReason: "cancelled" });
    expect(client.of("tool_call_update").at(-1)).toMatchObject({ toolCallId: "call-change-0", status: "failed" });
    expect(ran).toBe(false);
  });

  it("is what a client means that answers a question with cancelled", async () => {
    const { client, model } = await acpOn({ tools: [tool("change")], permit: () => "cancelled" });
    const { sessionId } = await client.newSession(cwd);
    model.will(calls(["change"]));
    expect(await client.prompt(sessionId, "go")).toEqual({ stopReason: "cancelled" });
    expect(model.steps).toHaveLength(1);
  });

  it("comes with the end of the input: everything is closed and nothing is left", async () => {
    const { client, model, hub } = await acpOn();
    const { sessionId } = await client.newSession(cwd);
    let aborted = false;
    model.will(async function* ({ signal }) {
      yield { type: "text", text: "hm" };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      aborted = true;
    });
    client.prompt(sessionId, "go").catch(() => undefined);
    await eventually(() => client.text() === "hm");
    await client.end();
    expect(aborted).toBe(true);
    expect(hub.internals.sessions()).toEqual([hub.session]);
  });
});

describe("[acp-10f] commands, plan, usage and notices", () => {
  it("tells of skills that can be called, after the session is known and again when they change", async () => {
    const dir = mkdtempSync(join(tmpdir(), "toolcrib-acp-skills-"));
    writeSkill(dir, "greet", { description: "Greets people" });
    const config = { skills: { dirs: [dir] } };
    const { client, hub } = await acpOn({ config });
    await client.newSession(cwd);
    const told = await eventually(() => client.of("available_commands_update")[0]);
    expect(told.availableCommands).toMatchObject([{ name: "greet", description: "Greets people" }]);
    writeSkill(dir, "leave", { description: "Leaves" });
    await hub.reload(config);
    const again = await eventually(() => client.of("available_commands_update")[1]);
    expect(again.availableCommands.map(({ name }) => name)).toEqual(["greet", "leave"]);
  });

  it("runs one that hands over to a tool, with the user asked first and the call shown to its end", async () => {
    const dir = mkdtempSync(join(tmpdir(), "toolcrib-acp-skills-"));
    writeSkill(dir, "deploy", { more: ["command-dispatch: tool", "command-tool: change"] });
    const { client, model } = await acpOn({ config: { skills: { dirs: [dir] } }, tools: [tool("change")] });
    const { sessionId } = await client.newSession(cwd);
    expect(await client.prompt(sessionId, "/deploy now")).toMatchObject({ stopReason: "end_turn" });
    expect(model.steps).toEqual([]);
    expect(client.text()).toContain("change");
    const [asked] = client.permissions;
    expect(client.of("tool_call")).toMatchObject([{ toolCallId: asked?.toolCall.toolCallId, status: "pending" }]);
    expect(client.of("tool_call_update").at(-1)).toMatchObject({ status: "completed" });
  });

  it("tells the plan and what was used", async () => {
    const model = new TestModel([], { id: "anthropic/claude-x" });
    const { client } = await acpOn({ door: { model } });
    const { sessionId } = await client.newSession(cwd);
    const entries = [{ content: "Look", priority: "high", status: "in_progress" }];
    model.will(calls(["toolcrib_plan", { entries }]), says("ok"));
    const { usage } = await client.prompt(sessionId, "plan");
    expect(client.of("plan")).toMatchObject([{ entries }]);
    expect(usage).toMatchObject({ inputTokens: 20, outputTokens: 4, totalTokens: 24 });
    expect(client.of("usage_update").at(-1)).toMatchObject({ used: 12, size: 200_000 });
    client.updates.length = 0;
    await client.raw("session/load", { sessionId, cwd, mcpServers: [] });
    expect(client.of("plan")).toMatchObject([{ entries }]);
  });

  it("shows notices where the client has a place for them, and else before the next answer", async () => {
    const broken = [{ name: "broken", command: "/does/not/exist" }];
    const { client, another } = await acpOn();
    const plain = await client.newSession(cwd, broken);
    await client.prompt(plain.sessionId, "hi");
    expect(client.text()).toMatch(/^> \*\*Note:\*\* .*broken[^]*done$/);
    await client.prompt(plain.sessionId, "hi");
    expect(client.text().match(/Note/g)).toHaveLength(1);

    const shows = await another({ capabilities: { session: { notices: {} } } });
    const { sessionId } = await shows.newSession(cwd, broken);
    const notice = await eventually(() => shows.of("notice")[0]);
    expect(notice).toMatchObject({ severity: "warning", title: expect.stringContaining("broken") });
    await shows.prompt(sessionId, "hi");
    expect(shows.text()).toBe("done");
  });
});
