import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromMcpServer } from "@agentclientprotocol/sdk/experimental/mcp-server";
import { describe, expect, it } from "vitest";
import { makeServer, startSdkHttp } from "../../fixtures/sdk-servers.ts";
import { startFakeServer } from "../../../src/testing/index.ts";
import { isAlive } from "../../support/processes.ts";
import { startEverything } from "../../support/everything-http.ts";
import { misbehaving } from "../../support/servers.ts";
import { acpOn, type Bench, calls, readOnly, says, type TestClient, type TestModel, tool } from "./acp-bench.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { ConfigSchema } from "../../../src/model/config.ts";

const cwd = mkdtempSync(join(tmpdir(), "toolcrib-acp-servers-"));
const auto = { door: { mode: "auto" } } as const;

/** As ACP writes it. */
function stdio(name: string, mode = "ok", ...args: string[]): object {
  return { name, ...misbehaving(mode, ...args), env: [{ name: "WHO", value: name }] };
}

/** The same server as a program that needs no arguments. */
function bareProgram(): string {
  const file = join(cwd, "bare.mjs");
  const [server] = misbehaving("ok").args ?? [];
  writeFileSync(file, `#!${process.execPath}\nawait import(${JSON.stringify(server)});\n`, { mode: 0o755 });
  return file;
}

/** The model calls a tool; what it reads of it. */
async function use(
  bench: Pick<Bench, "model"> & { client: TestClient },
  sessionId: string,
  name: string,
  input = {},
): Promise<string> {
  bench.model.will(calls([name, input]), says("ok"));
  await bench.client.prompt(sessionId, `use ${name}`);
  return resultText(bench.model);
}

function resultText(model: TestModel): string {
  return JSON.stringify(model.steps.at(-1)?.messages.at(-1));
}

/** Process ids of a server of the fixture, by its tool. */
async function pidOf(
  bench: Pick<Bench, "model"> & { client: TestClient },
  sessionId: string,
  server: string,
): Promise<number> {
  const found = /"pid":(\d+)/.exec((await use(bench, sessionId, `${server}__pids`)).replaceAll("\\", ""));
  return Number(found?.[1]);
}

describe("[acp-11a] mcpServers", () => {
  it("are taken in all three kinds, also where fields are missing; one that makes no sense is reported and left out", async () => {
    await using http = await startSdkHttp({ era: "modern" });
    await using sse = await startEverything("sse");
    const bench = await acpOn(auto);
    const { client, model } = bench;
    const { command, args } = misbehaving("ok");
    const { sessionId } = await client.newSession(cwd, [
      { name: "child", command, args },
      { type: "stdio", name: "bare", command: bareProgram() },
      { type: "http", name: "web", url: http.url },
      { type: "sse", name: "old", url: sse.url, headers: [] },
      { name: "nothing" },
      "junk",
    ]);
    // On a busy machine they may take longer than a first turn waits.
    const own = () => bench.hub.internals.sessions().flatMap((session) => session.own.servers());
    await eventually(() => own().filter(({ state }) => state === "ready").length === 4);
    await client.prompt(sessionId, "hi");
    expect(model.tools).toEqual(expect.arrayContaining(["child__echo", "bare__echo", "web__echo", "old__echo"]));
    expect(client.text()).toMatch(/nothing/);
    expect(client.text()).toMatch(/Server 6 .* left out/);
    expect(await use(bench, sessionId, "web__echo", { text: "over http" })).toContain("UNTRUSTED_TOOL_RESULT");
    expect(client.of("tool_call_update").at(-1)?.content).toEqual([
      { type: "content", content: { type: "text", text: "over http" } },
    ]);
  });

  it("may be missing altogether", async () => {
    const { client } = await acpOn();
    expect(await client.raw("session/new", { cwd })).toMatchObject({ sessionId: expect.any(String) });
    await expect(client.raw("session/new", { cwd, mcpServers: "files" })).rejects.toMatchObject({ code: -32602 });
  });
});

describe("what an editor brings", () => {
  const canary = "canary-of-the-hub-7d1c";
  const env = { PATH: process.env["PATH"], HUB_CANARY: canary };

  it("[trust-05a] gets nothing of the hub for a reference; the server is left out with a message, the session goes on", async () => {
    const home = mkdtempSync(join(tmpdir(), "toolcrib-acp-home-"));
    const options = { ...auto, config: { store: "sqlite" }, hubOptions: { home, env } } as const;
    const bench = await acpOn(options);
    const prog = { name: "leaky", ...misbehaving("ok") };
    const servers = [
      { ...prog, env: [{ name: "GOT", value: "${HUB_CANARY}" }] },
      { ...prog, name: "secret", env: [{ name: "GOT", value: "secret://env/HUB_CANARY" }] },
      stdio("honest"),
    ];
    const { sessionId } = await bench.client.newSession(cwd, servers);
    expect(await use(bench, sessionId, "honest__env")).toContain('WHO\\":\\"honest');
    expect(bench.model.tools.filter((name) => /^(?:leaky|secret)__/.test(name))).toEqual([]);
    expect(bench.client.text()).toMatch(/"leaky" is left out: env\S+ contains the reference \$\{HUB_CANARY\}/);
    await bench.client.raw("session/load", { sessionId, cwd, mcpServers: servers });
    await bench.client.prompt(sessionId, "again");
    expect(JSON.stringify([bench.client.updates, bench.model.steps])).not.toContain(canary);
    await bench.client.end();
    await bench.hub.close();

    // Kept for the next process as they came, and refused there too.
    const second = await acpOn(options);
    await second.client.raw("session/resume", { sessionId, cwd });
    expect(await use(second, sessionId, "honest__env")).toContain("honest");
    expect(second.client.text()).toContain("contains the reference");
    expect(JSON.stringify([second.client.updates, second.model.steps])).not.toContain(canary);
    expect(second.model.tools.filter((name) => /^(?:leaky|secret)__/.test(name))).toEqual([]);
  });

  it("[trust-04c] may be a server of this machine", async () => {
    await using http = await startSdkHttp({ era: "modern" });
    const bench = await acpOn(auto);
    const { sessionId } = await bench.client.newSession(cwd, [{ type: "http", name: "web", url: http.url }]);
    expect(await use(bench, sessionId, "web__echo", { text: "near" })).toContain("near");
  });
});

describe("[acp-11b] [acp-15f] load and resume", () => {
  it("[whole-13f] find the live session: servers that stay the same keep their process, others end", async () => {
    const bench = await acpOn(auto);
    const { client } = bench;
    const servers = [stdio("one"), stdio("two")];
    const { sessionId } = await client.newSession(cwd, servers);
    const [one, two] = [await pidOf(bench, sessionId, "one"), await pidOf(bench, sessionId, "two")];
    await Promise.all([1, 2].map(() => client.raw("session/load", { sessionId, cwd, mcpServers: servers })));
    expect(await pidOf(bench, sessionId, "one")).toBe(one);
    await client.raw("session/load", { sessionId, cwd, mcpServers: servers.slice(0, 1) });
    expect(await pidOf(bench, sessionId, "one")).toBe(one);
    await eventually(() => !isAlive(two));
    await client.raw("session/resume", { sessionId, cwd });
    expect(await pidOf(bench, sessionId, "one")).toBe(one);
    // The protocol wants a list: an empty one says nothing about servers.
    for (const mcpServers of [[], null]) await client.raw("session/load", { sessionId, cwd, mcpServers });
    expect(await pidOf(bench, sessionId, "one")).toBe(one);
    await client.raw("session/close", { sessionId });
    await eventually(() => !isAlive(one));

    await client.raw("session/resume", { sessionId, cwd });
    const again = await pidOf(bench, sessionId, "one");
    expect(isAlive(again)).toBe(true);
    await client.end();
    await eventually(() => !isAlive(again));
  });

  it("work across processes on one home, with the servers that the session had", async () => {
    const home = mkdtempSync(join(tmpdir(), "toolcrib-acp-home-"));
    const config = { store: "sqlite" } as const;
    const first = await acpOn({ ...auto, config, hubOptions: { home } });
    const { sessionId } = await first.client.newSession(cwd, [stdio("mine")]);
    expect(await use(first, sessionId, "mine__env")).toContain('WHO\\":\\"mine');
    await first.client.end();
    await first.hub.close();

    const second = await acpOn({ ...auto, config, hubOptions: { home } });
    await second.client.raw("session/resume", { sessionId, cwd });
    expect(second.client.of("user_message_chunk")).toEqual([]);
    expect(await use(second, sessionId, "mine__env")).toContain('WHO\\":\\"mine');
    expect(second.model.steps[0]?.messages).toHaveLength(5);
    await second.client.raw("session/close", { sessionId });
    await second.client.raw("session/load", { sessionId, cwd, mcpServers: [] });
    expect(second.client.of("user_message_chunk")).toHaveLength(2);
    await second.client.raw("session/delete", { sessionId });
    expect(await second.hub.internals.store?.sealed.names()).toEqual([]);
  });
});

describe("[acp-11b] a live session that another process went on with", () => {
  it("takes over what was said there, and keeps its servers and what it was told", async () => {
    const home = mkdtempSync(join(tmpdir(), "toolcrib-acp-home-"));
    const options = { ...auto, config: { store: "sqlite" }, hubOptions: { home } } as const;
    const here = await acpOn(options);
    const servers = [stdio("mine"), { name: "broken", command: "/does/not/exist" }];
    const { sessionId } = await here.client.newSession(cwd, servers);
    const pid = await pidOf(here, sessionId, "mine");
    const there = await acpOn(options);
    await there.client.raw("session/load", { sessionId, cwd, mcpServers: [] });
    await there.client.prompt(sessionId, "said elsewhere");

    await expect(here.client.prompt(sessionId, "hi")).rejects.toMatchObject({ data: { code: "conflict" } });
    here.client.updates.length = 0;
    await here.client.raw("session/load", { sessionId, cwd, mcpServers: servers });
    expect(JSON.stringify(here.client.of("user_message_chunk"))).toContain("said elsewhere");
    here.client.updates.length = 0;
    expect(await pidOf(here, sessionId, "mine")).toBe(pid);
    expect(JSON.stringify(here.model.steps.at(-1)?.messages)).toContain("said elsewhere");
    // The server that failed was tried again; nothing else is said twice.
    expect(here.client.text().match(/Note/g)).toHaveLength(1);

    await there.client.raw("session/delete", { sessionId });
    await expect(here.client.raw("session/resume", { sessionId, cwd })).rejects.toMatchObject({ code: -32002 });
  });
});

describe("[acp-11b] opening a session", () => {
  const mute = () => stdio("mute", "never-answers");

  it("ends when the client gives the request up, or closes the session", async () => {
    const bench = await acpOn();
    const { client, hub } = bench;
    const opened = async (how: () => Promise<unknown>, giveUp: () => unknown) => {
      const opening = how().catch((error: unknown) => error);
      const session = await eventually(() => hub.internals.sessions()[1]);
      await eventually(() => session.own.servers()[0]?.state === "connecting");
      await giveUp();
      expect(await opening).toMatchObject({ code: -32800 });
      await session.over;
      expect(hub.internals.sessions()).toHaveLength(1);
    };
    const stop = new AbortController();
    const params = { cwd, mcpServers: [mute()] };
    await opened(
      () => client.raw("session/new", params, stop.signal),
      () => stop.abort(),
    );
    const { sessionId } = await client.newSession(cwd);
    await client.raw("session/close", { sessionId });
    await opened(
      () => client.raw("session/load", { sessionId, ...params }),
      () => client.raw("session/close", { sessionId }),
    );
  });
});

describe("[acp-15f] the end of the input", () => {
  it("ends a session that is still being opened, with its process", async () => {
    const bench = await acpOn();
    const opening = bench.client.newSession(cwd, [stdio("mute", "never-answers")]).catch((error: unknown) => error);
    const session = await eventually(() => bench.hub.internals.sessions()[1]);
    await eventually(() => session.own.servers()[0]?.state === "connecting");
    await bench.client.end();
    bench.client.connection.close();
    expect(await opening).toBeInstanceOf(Error);
    expect(session.closed).toBe(true);
    expect(bench.hub.internals.sessions()).toHaveLength(1);
  });
});

describe("[acp-11c] MCP over ACP", () => {
  it("mounts servers that live in the client, once, and for the session that names them", async () => {
    const bench = await acpOn(auto);
    const { client, model } = bench;
    const { handler } = fromMcpServer(() => makeServer());
    const { declaration } = client.mcp.registerServer(client.agent, { name: "inside", handler });
    const { sessionId } = await client.newSession(cwd, [declaration]);
    expect(await use(bench, sessionId, "inside__echo", { text: "through acp" })).toContain("through acp");
    expect(await use(bench, sessionId, "inside__steps", { count: 2 })).toContain("2 steps");
    await client.raw("session/load", { sessionId, cwd, mcpServers: [declaration] });
    expect(await use(bench, sessionId, "inside__echo", { text: "again" })).toContain("again");
    model.will(calls(["inside__wait"]));
    const turn = client.prompt(sessionId, "wait");
    await eventually(() =>
      client
        .of("tool_call_update")
        .some(({ toolCallId, status }) => toolCallId.includes("inside__wait") && status === "in_progress"),
    );
    await client.cancel(sessionId);
    expect(await turn).toEqual({ stopReason: "cancelled" });
    const other = await client.newSession(cwd);
    await client.prompt(other.sessionId, "hi");
    expect(model.tools).not.toContain("inside__echo");
  });
});

describe("[acp-15b] two sessions", () => {
  it("have servers, environments and answers of their own, and one that closes leaves the other alone", async () => {
    const bench = await acpOn();
    const { client, model } = bench;
    const named = (who: string) => ({ name: "tools", ...misbehaving("ok"), env: [{ name: "WHO", value: who }] });
    const [a, b] = [await client.newSession(cwd, [named("ann")]), await client.newSession(cwd, [named("bob")])];
    const empty = await client.newSession(cwd);
    expect(await use(bench, a.sessionId, "tools__env")).toContain('WHO\\":\\"ann');
    expect(await use(bench, b.sessionId, "tools__env")).toContain('WHO\\":\\"bob');
    const pids = [await pidOf(bench, a.sessionId, "tools"), await pidOf(bench, b.sessionId, "tools")] as const;
    expect(pids[0]).not.toBe(pids[1]);
    await client.prompt(empty.sessionId, "hi");
    expect(model.tools.filter((name) => name.startsWith("tools"))).toEqual([]);
    await client.raw("session/close", { sessionId: a.sessionId });
    await eventually(() => !isAlive(pids[0]));
    expect(await pidOf(bench, b.sessionId, "tools")).toBe(pids[1]);
    const told = client.updates.filter(({ sessionId }) => sessionId === a.sessionId);
    expect(JSON.stringify(told)).not.toContain("bob");
  });
});

describe("[acp-15c] [acp-15d] a bad server", () => {
  it("is not fatal, does not block, is told to user and model, and joins when it is late", async () => {
    const bench = await acpOn({ ...auto, config: { sessions: { wait: 300 } } });
    const { client, model } = bench;
    const { sessionId } = await client.newSession(cwd, [
      stdio("good"),
      { name: "missing", command: "/does/not/exist" },
      stdio("dies", "crash-on-start"),
      stdio("late", "slow-start", "900"),
      stdio("mute", "never-answers"),
    ]);
    const stateOf = (server: string) =>
      bench.hub.internals
        .sessions()
        .flatMap((session) => session.own.servers().filter(({ name }) => name === server))[0]?.state;
    expect(stateOf("mute")).toBe("connecting");
    // On a busy machine it may take longer than a session waits.
    await eventually(() => stateOf("good") === "ready");
    await client.prompt(sessionId, "hi");
    expect(model.tools).toContain("good__echo");
    expect(client.text()).toContain("missing");
    expect(model.steps[0]?.system).toContain("missing");
    expect(stateOf("mute")).toBe("connecting");
    await eventually(() => stateOf("late") === "ready");
    await client.prompt(sessionId, "again");
    expect(model.tools).toContain("late__echo");
  });
});

describe("[whole-28d] [whole-28e] once a server is ready beside one that is stuck", () => {
  it("its tools are kept from the first turn for 0.07 s at most, of the hub and of the session", async () => {
    const mcpServers = { stuck: misbehaving("never-answers"), fine: misbehaving("ok") };
    const clock = new FakeClock();
    // As it is by default.
    const config = { mcpServers, limits: ConfigSchema.parse({}).limits };
    const { client, model, hub } = await acpOn({ ...auto, config, hubOptions: { wait: false, clock } });
    const { sessionId } = await client.newSession(cwd, [stdio("mute", "never-answers"), stdio("good")]);
    const own = () => hub.internals.sessions().flatMap((session) => session.own.servers());
    expect(own().find(({ name }) => name === "good")?.state).toBe("ready");
    await eventually(() => hub.servers.list().find(({ id }) => id === "fine")?.state === "ready");
    const turn = client.prompt(sessionId, "hi");
    await clock.advance(60);
    expect(model.steps).toHaveLength(0);
    await clock.advance(10);
    await turn;
    expect(model.tools).toEqual(expect.arrayContaining(["fine__echo", "good__echo"]));
    expect(own().find(({ name }) => name === "mute")?.state).toBe("connecting");
    expect(hub.servers.list().find(({ id }) => id === "stuck")?.state).toBe("connecting");
  });
});

describe("[whole-28f] the first turn begins while a server is stuck", () => {
  /** Opens a session on a clock that stands still, with what a config has by default. */
  async function opening(hubServer: string, ownServer: string) {
    const clock = new FakeClock();
    const config = { mcpServers: { ofHub: misbehaving(hubServer) }, limits: ConfigSchema.parse({}).limits };
    const { client, model, hub } = await acpOn({ ...auto, config, hubOptions: { wait: false, clock } });
    let isOpen = false;
    const opened = client.newSession(cwd, [stdio("own", ownServer)]).then(({ sessionId }) => {
      isOpen = true;
      return sessionId;
    });
    const own = () => hub.internals.sessions().flatMap((session) => session.own.servers())[0]?.state;
    const ofHub = () => hub.servers.list()[0]?.state;
    return { clock, client, model, opened, own, ofHub, isOpen: () => isOpen };
  }

  it("of the hub, which has no other: with the session's own, 0.07 s after it was opened", async () => {
    const { clock, client, model, opened, own, ofHub } = await opening("never-answers", "ok");
    await eventually(() => own() === "ready");
    const turn = client.prompt(await opened, "hi");
    await clock.advance(63);
    await turn;
    expect(model.tools).toContain("own__echo");
    expect(ofHub()).toBe("connecting");
  });

  it("of the session, which has no other: with those of the hub, as soon as any client gets them", async () => {
    const { clock, client, model, opened, own, ofHub, isOpen } = await opening("ok", "never-answers");
    await eventually(() => ofHub() === "ready" && own() === "connecting");
    await clock.advance(740);
    expect(isOpen()).toBe(false);
    await clock.advance(10);
    await client.prompt(await opened, "hi");
    expect(model.tools).toContain("ofHub__echo");
    expect(own()).toBe("connecting");
  });
});

describe("[whole-28g] a server that comes while the model works", () => {
  it("is there at the next step of the same turn, and the user is told", async () => {
    const late = () => bench.hub.internals.sessions().flatMap((session) => session.own.servers())[0];
    const look = tool("look", {
      ...readOnly,
      execute: async () => {
        await eventually(() => late()?.state === "ready");
        return { content: [{ type: "text", text: "seen" }] };
      },
    });
    const config = { mcpServers: { fine: misbehaving("ok") }, limits: { listWaitMs: 100 } };
    const bench = await acpOn({ ...auto, config, tools: [look] });
    const { client, model } = bench;
    model.will(calls(["look"]), calls(["late__echo", { text: "I am here" }]), says("ok"));
    const { sessionId } = await client.newSession(cwd, [stdio("late", "slow-start", "1500")]);
    await client.prompt(sessionId, "hi");
    const offered = model.steps.map(({ tools }) => tools.map(({ name }) => name).includes("late__echo"));
    expect(offered).toEqual([false, true, true]);
    const thoughts = JSON.stringify(client.of("agent_thought_chunk"));
    expect(thoughts).toMatch(/late\b.* is still connecting.*late\b.* is now connected. Its tools are available/);
    expect(JSON.stringify(model.steps[2]?.messages)).toContain("I am here");
  });
});

describe("[acp-15e] [acp-15f] the first prompt", () => {
  it("has the tools of servers that are ready in time, and a server that restarts is used again", async () => {
    await using remote = await startFakeServer({ tools: { look: () => "a view" } });
    const bench = await acpOn({ ...auto, config: { limits: { listWaitMs: 120_000 } } });
    const { client, model } = bench;
    const { sessionId } = await client.newSession(cwd, [
      { type: "http", name: "web", url: remote.url, headers: [] },
      stdio("slow", "slow-start", "300"),
    ]);
    await client.prompt(sessionId, "hi");
    expect(model.tools).toEqual(expect.arrayContaining(["web__look", "slow__echo"]));
    await remote.crash();
    expect(await use(bench, sessionId, "web__look")).toContain('"isError":true');
    expect(model.tools).toContain("web__look");
    await remote.restart();
    expect(await use(bench, sessionId, "web__look")).toContain("a view");
    const slow = await pidOf(bench, sessionId, "slow");
    process.kill(slow, "SIGKILL");
    await eventually(() => !isAlive(slow));
    expect(await pidOf(bench, sessionId, "slow")).not.toBe(slow);
  });
});

describe("[acp-10f] questions of servers", () => {
  it("go to a client that has forms", async () => {
    const asked: unknown[] = [];
    const elicit = (params: object) => {
      asked.push(params);
      return { action: "accept", content: { name: "Ada" } };
    };
    await using http = await startSdkHttp({ era: "modern" });
    const bench = await acpOn({ ...auto, capabilities: { elicitation: { form: {} } }, elicit });
    const { sessionId } = await bench.client.newSession(cwd, [{ type: "http", name: "web", url: http.url }]);
    expect(await use(bench, sessionId, "web__greet")).toContain("Hello Ada");
    expect(asked).toMatchObject([{ sessionId, mode: "form", message: expect.stringContaining("Who are you?") }]);
  });

  it("use the model only where the user allows it, if the config says to ask", async () => {
    const answers = ["allow_once", "reject_once"];
    const config = { agent: { sampling: "ask" } } as const;
    const bench = await acpOn({ ...auto, config, permit: () => answers.shift() ?? "reject_once" });
    const { client, model } = bench;
    const { sessionId } = await client.newSession(cwd, [stdio("tools")]);
    model.will(calls(["tools__ask", { what: "sampling" }]), says("sampled words"), says("ok"));
    await client.prompt(sessionId, "go");
    expect(resultText(model)).toContain("sampled words");
    expect(client.permissions).toMatchObject([{ sessionId, toolCall: { title: expect.stringContaining("tools") } }]);
    expect(await use(bench, sessionId, "tools__ask", { what: "sampling" })).not.toContain("sampled words");
    expect(client.permissions).toHaveLength(2);
  });
});
