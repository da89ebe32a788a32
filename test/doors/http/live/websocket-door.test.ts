import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { OPERATIONS, type OperationName } from "../../../../src/contract/operations.ts";
import { COMMANDS, type CommandName, type SocketCommand } from "../../../../src/contract/websocket.ts";
import { ToolcribError } from "../../../../src/model/errors.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { config } from "../support.ts";
import { BOSS, livePlace, Talk, USER } from "./live-setup.ts";

const error = (code: string, message?: RegExp): object =>
  expect.objectContaining({
    code,
    message: message === undefined ? expect.any(String) : expect.stringMatching(message),
  });

describe("[oper-05a] commands", () => {
  it("every name of the table runs its operation, with its fields under the operation's names", async () => {
    const scene = await livePlace();
    const talk = await scene.connect();
    for (const [index, [type, given]] of Object.entries(COMMANDS).entries()) {
      const command: SocketCommand = given;
      const fields = Object.keys(command.fields ?? {}).map((name) => [name, "somewhere"] as const);
      scene.play = () => ({ answer: index });
      const reply = await talk.ask({ id: index, type, extra: 1, ...Object.fromEntries(fields) });
      expect(reply, type).toEqual({ id: index, ok: true, answer: index });
      const inputs = Object.fromEntries(fields.map(([name, value]) => [command.fields?.[name] ?? name, value]));
      expect(scene.asked.at(-1)).toMatchObject({
        name: command.operation,
        input: { extra: 1, ...command.preset, ...inputs },
      });
      expect(scene.asked.at(-1)?.input).not.toHaveProperty("dirPath");
    }
    expect(scene.asked).toHaveLength(Object.keys(COMMANDS).length);
  });

  it("every operation is a command under its own name", async () => {
    const scene = await livePlace();
    const talk = await scene.connect();
    for (const name of Object.keys(OPERATIONS)) await talk.ask({ id: name, type: name });
    expect(scene.asked.map(({ name }) => name)).toEqual(Object.keys(OPERATIONS));
  });

  it("run as whoever opened the socket, in a session of the socket's own", async () => {
    const scene = await livePlace();
    const [boss, user] = [await scene.connect(), await scene.connect("", USER)];
    await boss.ask({ id: 1, type: "me" });
    await user.ask({ id: 1, type: "me" });
    const [first, second] = scene.asked.map(({ context }) => context);
    expect(first?.caller.scopes.has("admin")).toBe(true);
    expect(second?.session).toMatchObject({ door: "websocket", user: "ann", owner: false, decidesForAll: false });
    expect(first?.session.id).not.toBe(second?.session.id);
    expect(first?.baseUrl).toBe(scene.url);
    user.socket.close();
    await user.ended();
    await expect.poll(() => second?.session.closed).toBe(true);
    expect(first?.session.closed).toBe(false);
  });

  it.each([
    ["mcp.listServers", { servers: [1], total: 1 }, { type: "mcp.servers.list", servers: [1], total: 1 }],
    ["mcp.listTools", { tools: [], nextCursor: "x" }, { type: "mcp.tools.list", tools: [], nextCursor: "x" }],
    ["skills.list", { skills: [2], total: 1 }, { type: "skills.import.list", imports: [2], total: 1 }],
    ["openclaw.listImported", { skills: [], total: 0 }, { type: "openclaw.import.list", imports: [], total: 0 }],
  ] satisfies [CommandName, object, object][])(
    "%s also gives its event, to whoever asked",
    async (type, output, event) => {
      const scene = await livePlace();
      scene.play = () => output;
      const [asker, other] = [await scene.connect("?events=call.*"), await scene.connect()];
      expect(await asker.ask({ id: "a", type })).toEqual({ id: "a", ok: true, ...output });
      expect(await asker.until((frame) => "type" in frame && frame["type"] !== "hello")).toEqual(event);
      expect(other.frames).toHaveLength(1);
    },
  );

  it("errors come back as the error object, and faults say nothing of themselves", async () => {
    const scene = await livePlace();
    const talk = await scene.connect();
    scene.play = () => {
      throw new ToolcribError("conflict", "It is there.", { hint: "Take another name." });
    };
    expect(await talk.ask({ id: 1, type: "mcp.addServer" })).toEqual({
      id: 1,
      ok: false,
      error: { code: "conflict", message: "It is there.", hint: "Take another name." },
    });
    scene.play = () => {
      throw new Error("at line 12 of secret.ts");
    };
    const fault = await talk.ask({ id: 2, type: "me" });
    expect(fault).toMatchObject({ ok: false, error: error("internal", /^An internal error/) });
    expect(scene.warnings).toEqual(["A command could not be answered: at line 12 of secret.ts"]);
  });

  it.each([
    ["no JSON", "{", null],
    ["no object", "[1]", null],
    ["no id", { type: "me" }, null],
    ["an id that is none", { id: {}, type: "me" }, null],
    ["no type", { id: 1 }, 1],
    ["an unknown type", { id: 2, type: "mcp.listServer" }, 2],
    ["a name of every object", { id: 3, type: "constructor" }, 3],
    ["a control with too much", { id: 4, type: "ping", more: 1 }, 4],
    ["a control with too little", { id: 5, type: "cancel" }, 5],
    ["a wrong filter", { id: 6, type: "subscribe", events: ["<"] }, 6],
  ])("%s is answered with an error, and the next one is taken", async (_, frame, id) => {
    const scene = await livePlace();
    const talk = await scene.connect();
    talk.say(frame);
    expect(await talk.until(({ ok }) => ok === false)).toEqual({ id, ok: false, error: error("invalid_arguments") });
    expect(await talk.ask({ id: 9, type: "me" })).toEqual({ id: 9, ok: true });
    expect(scene.asked).toHaveLength(1);
  });

  it("progress comes before the reply, and cancelling reaches the operation", async () => {
    const scene = await livePlace();
    const talk = await scene.connect();
    scene.play = ({ context: { signal, onProgress } }) => {
      onProgress?.({ progress: 1, total: 2 });
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new ToolcribError("cancelled", "It was given up.")));
      });
    };
    talk.say({ id: "slow", type: "mcp.callTool", toolName: "x" });
    expect(await talk.until((frame) => "progress" in frame)).toEqual({
      id: "slow",
      progress: { progress: 1, total: 2 },
    });
    expect(await talk.ask({ id: "c", type: "cancel", command: "slow" })).toEqual({
      id: "c",
      ok: true,
      cancelled: true,
    });
    expect(await talk.until(({ id, ok }) => id === "slow" && ok === false)).toMatchObject({
      error: error("cancelled"),
    });
    expect(await talk.ask({ id: "d", type: "cancel", command: "slow" })).toEqual({
      id: "d",
      ok: true,
      cancelled: false,
    });
  });

  it("a socket that closes cancels its calls, but what changes the hub is finished", async () => {
    const scene = await livePlace();
    const talk = await scene.connect();
    const aborted: OperationName[] = [];
    scene.play = ({ name, context: { signal } }) =>
      new Promise(() => signal.addEventListener("abort", () => aborted.push(name)));
    for (const [id, type] of ["mcp.addServer", "mcp.callTool", "skills.import", "readResource"].entries())
      talk.say({ id, type });
    await expect.poll(() => scene.asked.length).toBe(4);
    expect(await talk.ask({ id: "c", type: "cancel", command: 0 })).toMatchObject({ cancelled: false });
    talk.socket.close();
    await expect.poll(() => aborted).toEqual(["callTool", "readResource"]);
    expect(scene.asked.map(({ context }) => context.signal.aborted)).toEqual([false, true, false, true]);
  });

  it("only so many at once, each under an id of its own", async () => {
    const scene = await livePlace();
    const talk = await scene.connect();
    const { promise, resolve } = Promise.withResolvers<object>();
    scene.play = () => promise;
    for (let id = 0; id < 64; id++) talk.say({ id, type: "me" });
    talk.say({ id: 7, type: "me" });
    expect(await talk.until(({ ok }) => ok === false)).toMatchObject({
      id: null,
      error: { code: "conflict", details: { command: 7 } },
    });
    expect(await talk.ask({ id: 64, type: "me" })).toMatchObject({ error: error("rate_limited", /64/) });
    resolve({});
    await talk.until(({ id, ok }) => id === 63 && ok === true);
    expect(await talk.ask({ id: 64.5, type: "me" })).toMatchObject({ ok: true });
  });

  it("only so many a minute, of one caller", async () => {
    const scene = await livePlace({ limits: { requestsPerMinute: 3 } });
    const [talk, second] = [await scene.connect(), await scene.connect()];
    for (let id = 1; id <= 3; id++) expect(await talk.ask({ id, type: "ping" })).toMatchObject({ ok: true });
    const refused = {
      ok: false,
      error: { code: "rate_limited", details: { retryAfterMs: expect.any(Number) as number } },
    };
    expect(await talk.ask({ id: 4, type: "me" })).toMatchObject(refused);
    expect(await second.ask({ id: 1, type: "me" })).toMatchObject(refused);
    expect(await (await scene.connect("", USER)).ask({ id: 1, type: "me" })).toMatchObject({ ok: true });
  });
});

describe("frames that are none", () => {
  it("a binary one is answered and ends the connection", async () => {
    const talk = await (await livePlace()).connect();
    talk.socket.send(Buffer.from("{}"), { binary: true });
    expect(await talk.until(({ ok }) => ok === false)).toMatchObject({ id: null, error: error("invalid_arguments") });
    expect((await talk.ended()).code).toBe(1003);
  });

  it("a huge one ends the connection", async () => {
    const scene = await livePlace({ limits: { bodyBytes: 1000 } });
    const talk = await scene.connect();
    talk.say({ id: 1, type: "me", text: "x".repeat(1000) });
    expect((await talk.ended()).code).toBe(1009);
    expect([scene.asked.length, scene.warnings]).toEqual([0, []]);
  });
});

describe("[oper-05c] resuming", () => {
  it("hello says where the numbers are; the address or a frame says from where to go on", async () => {
    const scene = await livePlace();
    scene.hub.emit("warning", { message: "one" });
    const first = await scene.connect();
    const { epoch, seq } = scene.feed;
    expect(first.frames[0]).toEqual({ type: "hello", epoch, seq: 1, version: expect.any(String) as string });
    scene.hub.emit("warning", { message: "two" });
    const second = await scene.connect(`?after=${seq}&epoch=${epoch}`);
    expect(await second.until(({ type }) => type === "warning")).toMatchObject({ type: "warning", message: "two" });
    expect(await first.ask({ id: 1, type: "subscribe", after: 0, epoch })).toEqual({ id: 1, ok: true, epoch, seq: 2 });
    await expect
      .poll(() => first.frames.filter(({ type }) => type === "warning").map(({ seq }) => seq))
      .toEqual([2, 1, 2]);
    const lost = await scene.connect("?after=1&epoch=another");
    expect(await lost.until(({ type }) => type === "events.lost")).toEqual({ type: "events.lost", from: 0, to: 2 });
    expect(await lost.ask({ id: 2, type: "ping" })).toEqual({ id: 2, ok: true, epoch, seq: 2 });
  });

  it("a subscription narrows what comes", async () => {
    const scene = await livePlace();
    const talk = await scene.connect();
    await talk.ask({ id: 1, type: "subscribe", events: ["pins.*"] });
    scene.hub.emit("warning", { message: "one" });
    scene.hub.emit("pins", {});
    expect(await talk.until(({ type }) => type !== undefined && type !== "hello")).toEqual({
      seq: 2,
      type: "pins.changed",
    });
  });

  it("a reader that does not read is let go, and holds nothing up", async () => {
    const scene = await livePlace();
    const [slow, quick] = [await scene.connect(), await scene.connect()];
    slow.socket.pause();
    const message = "x".repeat(100_000);
    let told = 0;
    while (scene.feed.receivers === 2 && told < 1000) {
      scene.hub.emit("warning", { message });
      told += 1;
      await nextTurn();
      await quick.until(({ seq }) => seq === told);
      quick.frames.length = 1;
    }
    // What the operating system keeps for it comes on top of what is kept here.
    expect(told).toBeGreaterThan(40);
    expect(scene.feed.receivers).toBe(1);
    expect(scene.hub.opened.map(({ closed }) => closed)).toEqual([true, false]);
    // If it reads on in time it learns why.
    slow.socket.resume();
    expect(await slow.ended()).toEqual({ code: 1013, reason: "Too much is unread. Reconnect and resume." });
    await expect.poll(() => scene.door.size).toBe(1);
  });
});

describe("[oper-05a] pings", () => {
  it("are answered, and count as commands do", async () => {
    const scene = await livePlace({ limits: { requestsPerMinute: 4 }, clock: new FakeClock() });
    const talk = await scene.connect();
    let pongs = 0;
    talk.socket.on("pong", () => (pongs += 1));
    for (let count = 0; count < 9; count++) talk.socket.ping("there?");
    expect(await talk.ask({ id: 1, type: "ping" })).toMatchObject({ ok: false, error: error("rate_limited") });
    expect(pongs).toBe(4);
  });

  it("of somebody who never reads fill no memory", async () => {
    const scene = await livePlace({ limits: { requestsPerMinute: 1e12 } });
    const talk = await scene.connect();
    talk.socket.pause();
    const text = Buffer.alloc(125, "x");
    let sent = 0;
    while (scene.door.size === 1 && sent < 1_000_000) {
      for (let count = 0; count < 2000; count++) talk.socket.ping(text);
      sent += 2000;
      await nextTurn();
    }
    expect(scene.door.size).toBe(0);
  });
});

describe("the life of a socket", () => {
  it("takes the one protocol that it speaks, with a token beside it", async () => {
    const scene = await livePlace();
    const url = `${scene.url.replace("http", "ws")}/ws`;
    const talk = await Talk.open(url, BOSS, ["toolcrib.v1", "other"]);
    expect(talk.socket.protocol).toBe("toolcrib.v1");
    const page = new Talk(new WebSocket(url, ["toolcrib.v1", `bearer.${USER}`]));
    await page.until(({ type }) => type === "hello");
    expect(scene.hub.opened.at(-1)?.user).toBe("ann");
    page.socket.terminate();
    const stranger = new Talk(new WebSocket(url, ["toolcrib.v1", "bearer.wrong"]));
    expect((await stranger.ended()).code).toBe(1006);
  });

  it("is refused in words where it cannot be opened", async () => {
    const scene = await livePlace({ limits: { streams: { total: 1 } } });
    expect((await scene.ask("/ws", { token: BOSS })).status).toBe(426);
    expect((await scene.ask("/ws/more", { token: BOSS })).status).toBe(404);
    const headers = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    };
    const wrong = await scene.ask("/ws?after=x", { token: BOSS, headers });
    expect([wrong.status, wrong.json().error.code]).toEqual([400, "invalid_arguments"]);
    await scene.connect();
    const full = await scene.ask("/ws", { token: USER, headers });
    expect([full.status, full.json().error.code]).toEqual([503, "server_unavailable"]);
    expect((await scene.ask("/ws", { token: USER, headers: { ...headers, "sec-websocket-key": "x" } })).status).toBe(
      503,
    );
  });

  it("[trust-13b] has places for each caller, which come back, and the operator finds one when all are taken", async () => {
    const scene = await livePlace({ limits: { streams: { total: 3, perToken: 2 } } });
    const status = async (token: string): Promise<number> => (await scene.ask("/ws", { token, headers })).status;
    const headers = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    };
    const [first] = [await scene.connect("", USER), await scene.connect("", USER)];
    const refused = await scene.ask("/ws", { token: USER, headers });
    expect([refused.status, refused.json().error]).toEqual([
      429,
      expect.objectContaining({ code: "rate_limited", hint: expect.stringContaining("sessionsPerToken") }),
    ]);
    await scene.connect("", BOSS);
    await scene.connect("", BOSS);
    first?.socket.terminate();
    await expect.poll(() => scene.door.size).toBe(3);
    // The hub is full: the operator alone comes in.
    expect(await status(USER)).toBe(503);
    await scene.connect("", BOSS);
  });

  it("ends with its session, with its credentials, and when nobody is there any more", async () => {
    const clock = new FakeClock();
    const scene = await livePlace({ clock });
    const [ended, revoked, gone] = [await scene.connect(), await scene.connect("", USER), await scene.connect()];
    scene.hub.opened[0]?.close();
    expect(await ended.ended()).toEqual({ code: 1008, reason: "The session was ended." });
    await scene.listener.reconfigure(config({ auth: { tokens: [{ token: BOSS, scopes: ["admin"] }] } }));
    await clock.advance(15_000);
    expect(await revoked.ended()).toEqual({ code: 1008, reason: "The credentials have expired." });
    // It reads nothing, so it answers no ping either.
    gone.socket.pause();
    await clock.advance(30_000);
    expect(scene.door.size).toBe(1);
    await clock.advance(30_000);
    await expect.poll(() => scene.door.size).toBe(0);
  });

  it("lives on while it answers pings", async () => {
    const clock = new FakeClock();
    const scene = await livePlace({ clock });
    const talk = await scene.connect();
    for (let beat = 0; beat < 4; beat++) {
      const pinged = new Promise((resolve) => talk.socket.once("ping", resolve));
      await clock.advance(30_000);
      await pinged;
      // The answer is on its way before this one.
      await talk.ask({ id: beat, type: "ping" });
    }
    expect(scene.door.size).toBe(1);
  });

  it("is told that the hub stops, after its commands were answered", async () => {
    const scene = await livePlace();
    const talk = await scene.connect();
    const { promise, resolve } = Promise.withResolvers<object>();
    scene.play = () => promise;
    talk.say({ id: 1, type: "mcp.addServer" });
    await expect.poll(() => scene.asked.length).toBe(1);
    const closed = scene.door.close(60_000);
    expect(await talk.ask({ id: 2, type: "me" })).toMatchObject({ ok: false, error: error("server_unavailable") });
    resolve({ done: true });
    expect(await talk.ended()).toEqual({ code: 1001, reason: "The hub is shutting down." });
    expect(talk.frames).toContainEqual({ id: 1, ok: true, done: true });
    await closed;
    expect(scene.hub.opened.every((session) => session.closed)).toBe(true);
    await expect(scene.connect()).rejects.toThrow("closed after");
  });
});
