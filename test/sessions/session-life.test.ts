import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createHub } from "../../src/hub/create/create-hub.ts";
import type { Hub } from "../../src/hub/hub.ts";
import type { SessionNotice } from "../../src/sessions/session-parts.ts";
import type { Session } from "../../src/sessions/session.ts";
import { isAlive } from "../support/processes.ts";
import { misbehaving } from "../support/servers.ts";
import { messages, names, ownNames, pidOf, startHub, textOf, tool } from "./session-bench.ts";

let hub: Hub;
const opened: Session[] = [];
beforeAll(async () => {
  hub = await startHub({ limits: { sessionServers: 3, sessionTools: 20 } });
});
afterEach(async () => {
  for (const session of opened.splice(0)) {
    session.close();
    await session.over;
  }
});
afterAll(() => hub.close());

function open(options: Parameters<Hub["openSession"]>[0] = {}): Session {
  const session = hub.openSession(options);
  opened.push(session);
  return session;
}

describe("opening", () => {
  it("[agent-03a] waits a bounded time; a late server joins and the session is told", async () => {
    const session = open();
    const heard: SessionNotice[] = [];
    let changes = 0;
    session.own.on("notice", (notice) => heard.push(notice));
    session.own.on("change", () => (changes += 1));
    await session.own.mount({ quick: misbehaving("ok"), late: misbehaving("slow-start", "1500") }, { waitMs: 900 });
    expect(ownNames(hub, session)).toContain("quick__echo");
    expect(ownNames(hub, session)).not.toContain("late__echo");
    expect(heard).toMatchObject([
      { level: "info", server: "late", message: expect.stringContaining("still connecting") },
    ]);
    const before = changes;
    await session.own.settled();
    expect(ownNames(hub, session)).toContain("late__echo");
    await expect.poll(() => changes).toBeGreaterThan(before);
    expect(heard.at(-1)).toMatchObject({ server: "late", message: expect.stringContaining("is now connected") });
  });

  it("[agent-03a] lets a call of a server on its way wait for it", async () => {
    const session = open();
    await session.own.mount({ late: misbehaving("slow-start", "400") }, { waitMs: 0 });
    expect(await textOf(hub, session, "late__echo", { text: "hi" })).toContain("hi");
  });

  it("[agent-03b] is not spoilt by servers that fail: each is a notice with the reason", async () => {
    const session = await hub.openSession({
      servers: [
        { name: "gone", command: "/no/such/program", env: { API_TOKEN: "very-secret-value" } },
        { name: "dies", ...misbehaving("crash-on-start"), restart: false },
        { name: "good", type: "stdio", ...misbehaving("ok"), env: [] },
        { name: "odd", type: "carrier-pigeon" },
        { command: "nameless" },
        "text",
      ],
    });
    opened.push(session);
    expect(ownNames(hub, session)).toContain("good__echo");
    const told = (server: string): string[] =>
      session.own.notices().flatMap((notice) => (notice.server === server ? [notice.message] : []));
    expect(told("gone")).toEqual([expect.stringMatching(/could not be connected: .*no\/such\/program/)]);
    expect(told("dies")).toEqual([expect.stringMatching(/could not be connected: .*3/)]);
    expect(told("odd")).toEqual([expect.stringContaining("is left out")]);
    expect(told("good")).toEqual([]);
    expect(messages(session).filter((message) => message.includes("has no name"))).toHaveLength(2);
    expect(JSON.stringify(session.own.notices())).not.toContain("very-secret-value");
    expect(await hub.call({ session, name: "gone__x" })).toMatchObject({
      ok: false,
      error: { code: "server_unavailable", message: expect.stringContaining('"gone"') },
    });
  });
});

describe("a session's servers", () => {
  it("[agent-03c] restart after a crash; tools stay listed and answer with a clear error meanwhile", async () => {
    const session = open();
    const restart = { initialDelay: 400 };
    await session.own.mount({ frail: { ...misbehaving("ok"), restart } });
    const before = await pidOf(hub, session, "frail__pids");
    expect(await hub.call({ session, name: "frail__exit", arguments: { code: 5 } })).toMatchObject({ ok: false });
    await expect.poll(() => session.own.servers()[0]?.state).toBe("restarting");
    expect(ownNames(hub, session)).toContain("frail__echo");
    expect(messages(session).at(-1)).toMatch(/was lost: .*It is being restarted/);
    await expect.poll(() => session.own.servers()[0]?.state).toBe("ready");
    expect(messages(session).at(-1)).toContain("is back");
    expect(await pidOf(hub, session, "frail__pids")).not.toBe(before);
    // The restart is not enough to save one that dies each time.
    await session.own.mount({ frail: { ...misbehaving("crash-mid-call"), restart: false } });
    await hub.call({ session, name: "frail__echo", arguments: { text: "x" } });
    await expect.poll(() => session.own.servers()[0]?.state).toBe("failed");
    expect(ownNames(hub, session)).toContain("frail__echo");
    expect(await hub.call({ session, name: "frail__echo", arguments: { text: "x" } })).toMatchObject({
      ok: false,
      error: { code: "server_unavailable" },
    });
  });

  it("[agent-03d] are followed when their lists change", async () => {
    const session = open();
    await session.own.mount({ moving: misbehaving("ok") });
    const view = hub.view(session);
    const changed = new Promise<void>((resolve) => session.own.on("change", () => resolve()));
    await textOf(hub, session, "moving__change");
    await changed;
    expect(ownNames(hub, session)).toContain("moving__tool-1");
    expect(hub.view(session)).not.toBe(view);
    expect(hub.view(session)).toBe(hub.view(session));
  });

  it("stay as they are when they are named again, end when they are not, and change with their entry", async () => {
    const session = open();
    const [one, two] = [misbehaving("ok"), { ...misbehaving("ok"), env: { WHO: "ann" } }];
    await session.own.mount([
      { name: "one", ...one },
      { name: "two", ...two, env: [{ name: "WHO", value: "ann" }] },
    ]);
    const pids = [await pidOf(hub, session, "one__pids"), await pidOf(hub, session, "two__pids")];
    await session.own.mount({ two, one });
    expect([await pidOf(hub, session, "one__pids"), await pidOf(hub, session, "two__pids")]).toEqual(pids);
    await session.own.mount({ two: { ...two, env: { WHO: "bob" } } });
    expect(await textOf(hub, session, "two__env")).toContain('"WHO":"bob"');
    await expect.poll(() => pids.map(isAlive)).toEqual([false, false]);
    expect(ownNames(hub, session).some((name) => name.startsWith("one__"))).toBe(false);
    await session.own.mount([]);
    expect(session.own.servers()).toEqual([]);
    expect(hub.view(session).tools).toEqual(hub.view(hub.session).tools);
  });

  it("[agent-01c] are limited like its tools: what is too many is left out with a notice", async () => {
    const session = open({ limits: { servers: 2 }, tools: [tool("mine"), tool("too")] });
    await session.own.mount({ a: misbehaving("ok"), b: misbehaving("paged", "15"), c: misbehaving("ok") });
    expect(session.own.servers().map(({ name }) => name)).toEqual(["a", "b"]);
    expect(messages(session)).toContain('The server "c" is left out: a session may bring 2 servers.');
    // 20 in all, of which two are in-process and twelve those of a.
    expect(ownNames(hub, session)).toHaveLength(20);
    expect(messages(session).at(-1)).toMatch(/"b" offers 15 tools. 9 of them are left out/);
    expect(await hub.call({ session, name: "b__tool-14" })).toMatchObject({ ok: false, error: { code: "not_found" } });
    session.own.setTools("session", []);
    expect(ownNames(hub, session)).toContain("b__tool-7");
    session.own.setTools(
      "many",
      Array.from({ length: 22 }, (_, n) => tool(`t${n}`)),
    );
    expect(ownNames(hub, session)).toEqual(Array.from({ length: 20 }, (_, n) => `t${n}`));
    expect(messages(session).at(-1)).toContain("t20, t21");
    // The agent's own count for nothing.
    session.own.setTools("agent", [tool("toolcrib_plan")]);
    expect(await textOf(hub, session, "toolcrib_plan")).toBe("toolcrib_plan");
    expect(() => session.own.setTools("many", [tool("toolcrib_mine")])).toThrow(/reserved/);
  });

  it("[agent-01c] bring a warning above five child processes", async () => {
    const roomy = await startHub({});
    const dead = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`s${n}`, { command: "/no/such/program" }]));
    const few = await roomy.openSession({ servers: dead(5) });
    const many = await roomy.openSession({ servers: dead(6) });
    expect(messages(few).some((message) => message.includes("programs"))).toBe(false);
    expect(messages(many)).toContainEqual(expect.stringContaining("starts 6 programs"));
    await roomy.close();
  });

  it("are told of when their definitions read like an attack", async () => {
    const session = open();
    await session.own.mount({ evil: { ...misbehaving("poisoned"), trust: "trusted", toolPrefix: "" } });
    await expect.poll(() => messages(session).join("\n")).toMatch(/echo looks like an attack/);
    expect(messages(session)).toContainEqual(expect.stringContaining("not used: toolPrefix, trust"));
    expect(names(hub, session)).toContain("evil__echo");
  });
});

describe("[whole-13g] a session that joins another", () => {
  it("has its rules as they are now, its tools, role and taint, and ends with it", async () => {
    await using own = await createHub({ roles: { reviewer: {} } }, { connect: "none" });
    const session = own.openSession({ door: "acp", role: "reviewer", conversation: "c1", workspaceDir: "/tmp" });
    const joined = own.openSession({ within: session, rules: { deny: ["mine"] }, door: "rest" });
    expect(joined).toMatchObject({ role: "reviewer", workspaceDir: "/tmp", door: "rest" });
    const run = async () => ({ content: [] });
    session.own.setTools("a", [
      { name: "yours", description: "", parameters: { type: "object" }, execute: run },
      { name: "mine", description: "", parameters: { type: "object" }, execute: run },
    ]);
    const seen = (of: typeof session) => own.view(of).tools.map(({ name }) => name);
    expect([seen(session), seen(joined)]).toEqual([["yours", "mine"], ["yours"]]);
    session.narrow("mode", { deny: ["yours"] });
    session.narrow("skill", { deny: ["other"] });
    expect([seen(session), seen(joined)]).toEqual([["mine"], []]);
    session.narrow("mode", undefined);
    expect(seen(joined)).toEqual(["yours"]);
    joined.markTainted({ server: "web", callId: "1", name: "web__read", read: [], at: 0 });
    expect(session.taint?.origins).toHaveLength(1);
    expect(() => own.openSession({ within: session, role: "admin" })).toThrow("the role reviewer");
    const another = own.openSession({ within: session });
    another.close();
    expect([session.closed, joined.closed]).toEqual([false, false]);
    session.close();
    expect(joined.closed).toBe(true);
    expect(joined.own.servers()).toEqual([]);
  });
});
