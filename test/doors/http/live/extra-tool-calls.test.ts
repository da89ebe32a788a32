/** Tools of a process behind a WebSocket, on a real hub; calls come over REST and over other sockets. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EVENTS } from "../../../../src/contract/websocket.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { type ApiScene, apiScene, type Who } from "../api/api-setup.ts";
import type { Answer } from "../support.ts";
import type { Heard, Talk } from "./live-setup.ts";

let scene: ApiScene;
const clock = new FakeClock();

beforeAll(async () => {
  scene = await apiScene({
    servers: {},
    clock,
    config: { tools: { deny: ["forbidden"] }, limits: { sessionTools: 5 }, roles: { reviewer: {} } },
  });
});

afterAll(() => scene.close());

const ADD = {
  name: "add",
  title: "Add up",
  description: "Adds two numbers.",
  schema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
};

let lastId = 100;

const SET = "sessions.setExtraTools";

function command(talk: Talk, type: string, fields: object = {}): Promise<Heard> {
  return talk.ask({ id: ++lastId, type, ...fields });
}

/** A process with tools of its own session; gives the id of the session. */
async function process(tools: readonly object[] = [ADD], who: Who = "call"): Promise<{ talk: Talk; session: string }> {
  const talk = await scene.connect(who);
  const reply = await command(talk, SET, { tools });
  expect(reply).toMatchObject({ ok: true });
  return { talk, session: String(reply["session"]) };
}

function call(session: string, name = "add", args: object = { a: 1, b: 2 }, who: Who = "call"): Promise<Answer> {
  return scene.request(who, "POST", `/mcp/tools/${name}/call`, { body: { arguments: args, session } });
}

/** The n-th call that the process gets. */
async function delivered(talk: Talk, count = 1): Promise<Heard & { readonly callId: string }> {
  const calls = (): Heard[] => talk.frames.filter(({ type }) => type === "extraTool.call");
  await talk.until(() => calls().length >= count);
  const { seq, type: _, ...fields } = calls()[count - 1] ?? {};
  expect([seq, EVENTS["extraTool.call"].fields.strict().safeParse(fields).error]).toEqual([undefined, undefined]);
  return { ...fields, callId: String(fields["callId"]) };
}

const seen = async (session: string | undefined, who: Who = "call"): Promise<string[]> => {
  const answer = await scene.request(who, "GET", `/mcp/tools${session === undefined ? "" : `?session=${session}`}`);
  return answer.json<{ tools: { name: string }[] }>().tools.map(({ name }) => name);
};

const code = (answer: Answer): string => answer.json().error.code;

describe("[agent-02a] tools of the process behind a WebSocket", () => {
  it("are called by the session that they are for, and answered by the process", async () => {
    const { talk, session } = await process();
    expect(await seen(session)).toEqual(["add"]);
    expect([await seen(undefined), await seen(undefined, "admin")]).toEqual([[], []]);
    const answer = call(session);
    const { callId, ...rest } = await delivered(talk);
    expect(rest).toEqual({ name: "add", args: { a: 1, b: 2 }, session });
    const result = { content: [{ type: "text", text: "3" }], structuredContent: { sum: 3 } };
    expect(await command(talk, "extraTool.result", { callId, result })).toMatchObject({ ok: true, callId });
    const { status, ...got } = await answer;
    expect([status, got.json()]).toEqual([200, result]);
    const { entries } = (await scene.request("admin", "GET", `/audit?callId=${callId}&type=call`)).json<{
      entries: unknown[];
    }>();
    expect(entries).toMatchObject([{ name: "add", outcome: "ok", session }]);
  });

  it.each([
    ["a text", "three", { content: [{ type: "text", text: "three" }] }],
    ["a value", { sum: 3 }, { content: [{ type: "text", text: '{"sum":3}' }] }],
    ["a list", [1, 2], { content: [{ type: "text", text: "[1,2]" }] }],
    ["nothing", undefined, { content: [] }],
    [
      "structured content alone",
      { structuredContent: { sum: 3 } },
      { content: [{ type: "text", text: '{"sum":3}' }], structuredContent: { sum: 3 } },
    ],
    [
      "an error",
      { content: [{ type: "text", text: "no" }], isError: true },
      { content: [{ type: "text", text: "no" }], isError: true },
    ],
    ["an error that says nothing", { isError: true }, { content: [], isError: true }],
    [
      "an error in its own words",
      { isError: true, reason: "full" },
      { content: [{ type: "text", text: '{"reason":"full"}' }], isError: true },
    ],
  ])("answer with %s", async (_, result, expected) => {
    const { talk, session } = await process();
    const answer = call(session);
    const { callId } = await delivered(talk);
    // Without an id there is no reply.
    talk.say({ type: "extraTool.result", callId, result });
    expect((await answer).json()).toEqual(expected);
    expect(talk.frames.filter(({ ok }) => ok !== undefined)).toHaveLength(1);
  });

  it("get only arguments that fit, and only calls that the policy allows", async () => {
    const { talk, session } = await process([ADD, { name: "forbidden", description: "No.", inputSchema: {} }]);
    expect(code(await call(session, "add", { a: "one" }))).toBe("invalid_arguments");
    expect(code(await call(session, "forbidden", {}))).toMatch(/denied|not_found/);
    await command(talk, "ping");
    expect(talk.frames.some(({ type }) => type === "extraTool.call")).toBe(false);
  });

  it("cannot keep the hub busy with a pattern that takes forever", async () => {
    const schema = { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } };
    const { session } = await process([{ name: "slow", description: "x", schema }]);
    expect(code(await call(session, "slow", { text: `${"a".repeat(50)}!` }))).toBe("invalid_arguments");
  });

  it("are refused as a whole where one is wrong", async () => {
    const { talk, session } = await process();
    const wrong: [object, string][] = [
      [{ name: "no good", description: "x" }, "invalid_arguments"],
      [{ name: "toolcrib_mine", description: "x" }, "invalid_arguments"],
      [{ name: "x" }, "invalid_arguments"],
      [{ name: "x", description: "x", schema: { type: "string" } }, "invalid_arguments"],
      [{ name: "x", description: "x", parameters: { properties: 7 } }, "invalid_arguments"],
      [ADD, "conflict"],
    ];
    for (const [tool, expected] of wrong) {
      expect(await command(talk, SET, { tools: [ADD, tool] })).toMatchObject({ ok: false, error: { code: expected } });
    }
    const many = Array.from({ length: 6 }, (_, index) => ({ name: `t${index}`, description: "x" }));
    expect(await command(talk, SET, {})).toMatchObject({ error: { message: "tools: is missing." } });
    expect(await seen(session)).toEqual(["add"]);
    // What is sound and too much is left out, and that is said.
    const reply = await command(talk, SET, { tools: many });
    expect(reply).toMatchObject({ ok: true, notices: [{ level: "warning", message: expect.stringContaining("t5") }] });
    expect(await seen(session)).toEqual(["t0", "t1", "t2", "t3", "t4"]);
  });

  it("need the scope call, and a session of the same caller, or admin and any", async () => {
    const [reader, rita, boss] = [
      await scene.connect("read"),
      await scene.connect("reviewer"),
      await process([], "admin"),
    ];
    const { talk, session } = await process([]);
    const tools = [ADD];
    expect(await command(reader, SET, { tools })).toMatchObject({ error: { code: "denied" } });
    expect(await command(rita, SET, { tools, session })).toMatchObject({ error: { code: "not_found" } });
    expect(await command(talk, SET, { tools, session: boss.session })).toMatchObject({ error: { code: "not_found" } });
    expect(await command(talk, SET, { tools, session: "nowhere" })).toMatchObject({ error: { code: "not_found" } });
    const second = await scene.connect("call");
    const mine = { name: "mine", description: "Of the second.", schema: { type: "object" } };
    expect(await command(second, SET, { session, tools: [mine] })).toMatchObject({
      ok: true,
      session,
      tools: ["mine"],
    });
    expect(await command(boss.talk, SET, { sessionId: session, tools })).toMatchObject({ ok: true, session });
    expect(await command(talk, SET, { tools: [{ ...mine, name: "first" }] })).toMatchObject({ ok: true });
    expect((await seen(session)).toSorted()).toEqual(["add", "first", "mine"]);
    const answer = call(session, "mine", {});
    const { callId } = await delivered(second);
    expect(await command(talk, "extraTool.result", { callId, result: "stolen" })).toMatchObject({
      error: { code: "not_found" },
    });
    await command(second, "extraTool.result", { callId, result: "right" });
    expect((await answer).text).toContain("right");
    for (const other of [talk, boss.talk, rita, reader]) {
      expect(other.frames.some(({ type }) => type === "extraTool.call")).toBe(false);
    }
  });

  it("that nobody knows are not near anything, and near names are told", async () => {
    const talk = await scene.connect("call");
    expect(await command(talk, "sessions.setExtraTool", { tools: [] })).toMatchObject({
      error: { code: "invalid_arguments", hint: expect.stringContaining(SET) },
    });
  });
});

describe("[agent-02b] calls of such tools", () => {
  it("time out, with progress as a respite, up to ten times", async () => {
    const { talk, session } = await process([{ ...ADD, timeoutMs: 1000 }]);
    const late = call(session);
    const { callId } = await delivered(talk);
    await clock.advance(1000);
    expect((await late).json()).toMatchObject({
      error: { code: "timeout", message: expect.stringContaining("1000 ms") },
    });
    expect(await talk.until(({ type }) => type === "extraTool.cancel")).toEqual({
      type: "extraTool.cancel",
      callId,
      reason: "timeout",
    });
    for (const type of ["extraTool.result", "extraTool.progress"]) {
      expect(
        await command(talk, type, { callId, ...(type === "extraTool.progress" && { progress: 1 }) }),
      ).toMatchObject({
        error: { code: "not_found" },
      });
    }

    const busy = call(session);
    const { callId: second } = await delivered(talk, 2);
    for (let progress = 1; progress <= 12; progress++) {
      await clock.advance(900);
      const told = await command(talk, "extraTool.progress", { callId: second, progress });
      expect(told["ok"], `after ${progress * 900} ms`).toBe(progress * 900 < 10_000);
    }
    expect(code(await busy)).toBe("timeout");
  });

  it("have a minute where the tool says nothing else", async () => {
    const { talk, session } = await process();
    const answer = call(session);
    const { callId } = await delivered(talk);
    await clock.advance(59_000);
    expect(await command(talk, "extraTool.progress", { callId, progress: 1 })).toMatchObject({ ok: true });
    await clock.advance(59_000);
    await command(talk, "extraTool.result", { callId, result: "in time" });
    expect((await answer).text).toContain("in time");
  });

  it("report progress to whoever called", async () => {
    const { talk, session } = await process();
    const caller = await scene.connect("call");
    const reply = caller.ask({ id: "c", type: "mcp.callTool", toolName: "add", args: { a: 1, b: 1 }, session });
    const { callId } = await delivered(talk);
    await command(talk, "extraTool.progress", { callId, progress: 5, total: 10, message: "half" });
    expect(await caller.until(({ progress }) => progress !== undefined)).toEqual({
      id: "c",
      progress: { progress: 5, total: 10, message: "half" },
    });
    await command(talk, "extraTool.result", { callId, result: "2" });
    expect(await reply).toMatchObject({ ok: true, content: [{ text: "2" }] });
  });

  it("are cancelled with whoever called", async () => {
    const { talk, session } = await process();
    const caller = await scene.connect("call");
    const reply = caller.ask({ id: "c", type: "mcp.callTool", toolName: "add", args: { a: 1, b: 1 }, session });
    const { callId } = await delivered(talk);
    caller.say({ type: "cancel", command: "c" });
    expect(await reply).toMatchObject({ ok: false, error: { code: "cancelled" } });
    const cancelled = await talk.until(({ type }) => type === "extraTool.cancel");
    expect(cancelled).toEqual({ type: "extraTool.cancel", callId, reason: "cancelled" });
  });

  it("end when the process goes, and its tools with them; those of others stay", async () => {
    const { talk: agent, session } = await process([{ name: "own", description: "Stays." }]);
    const helper = await scene.connect("call");
    await command(helper, SET, { session, tools: [ADD] });
    const answer = call(session);
    await delivered(helper);
    helper.socket.terminate();
    const ended = await answer;
    expect(ended.status).toBe(503);
    expect(ended.json()).toMatchObject({
      error: {
        code: "server_unavailable",
        message: 'The process that offers the tool "add" has disconnected. Whether the call ran is not known.',
      },
    });
    expect(await seen(session)).toEqual(["own"]);
    expect(code(await call(session))).toBe("not_found");
    agent.socket.terminate();
    await expect.poll(async () => (await call(session, "own", {})).text).toContain(`No session ${session}`);
  });

  it("end as too large when the answer is more than a frame may have", async () => {
    const { talk, session } = await process();
    const answer = call(session);
    const { callId } = await delivered(talk);
    talk.say({ type: "extraTool.result", callId, result: "x".repeat(100_000) });
    expect((await answer).json()).toMatchObject({
      error: { code: "too_large", hint: expect.stringContaining("bodyBytes") },
    });
  });

  it("are answered also above the limit of commands", async () => {
    scene.frames.perMinute = 2;
    const { talk, session } = await process([ADD], "reviewer");
    await command(talk, "ping");
    const refused = { ok: false, error: { code: "rate_limited" } };
    expect(await command(talk, "ping")).toMatchObject(refused);
    const answer = call(session, "add", { a: 1, b: 2 }, "reviewer");
    const { callId } = await delivered(talk);
    expect(await command(talk, "extraTool.progress", { callId, progress: 1 })).toMatchObject(refused);
    expect(await command(talk, "extraTool.result", { callId, result: "3" })).toMatchObject({ ok: true });
    expect((await answer).text).toContain("3");
    expect(await command(talk, "extraTool.result", { callId, result: "3" })).toMatchObject(refused);
    scene.frames.perMinute = 10_000;
  });

  it("go on where the list is changed, and an empty list clears it", async () => {
    const { talk, session } = await process();
    const answer = call(session);
    const { callId } = await delivered(talk);
    expect(await command(talk, SET, { tools: [] })).toMatchObject({ ok: true, tools: [] });
    expect(await seen(session)).toEqual([]);
    expect(code(await call(session))).toBe("not_found");
    await command(talk, "extraTool.result", { callId, result: "still" });
    expect((await answer).text).toContain("still");
  });
});
