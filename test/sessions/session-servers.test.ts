import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Hub } from "../../src/hub/hub.ts";
import type { Session } from "../../src/sessions/session.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { isAlive } from "../support/processes.ts";
import { misbehaving } from "../support/servers.ts";
import { messages, names, ownNames, pidOf, startHub, textOf, tool } from "./session-bench.ts";

let home: string;
let hub: Hub;
const opened: Session[] = [];

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "toolcrib-own-"));
  hub = await startHub({ roles: { narrow: { servers: ["local"] } } }, { home });
});
afterEach(async () => {
  for (const session of opened.splice(0)) {
    session.close();
    await session.over;
  }
});
afterAll(async () => {
  await hub.close();
  await rm(home, { recursive: true, force: true });
});

type Options = Parameters<Hub["openSession"]>[0];
async function open(options: Options): Promise<Session> {
  const session = await hub.openSession({ servers: {}, ...options });
  opened.push(session);
  return session;
}

describe("servers and tools of a session", () => {
  it("[agent-01a] are seen and used by that session only, and end with it", async () => {
    const servers = [{ name: "notes", ...misbehaving("ok"), env: [{ name: "WHO", value: "ann" }] }];
    const session = await open({ servers, tools: [tool("mine")] });
    const other = await open({});
    expect(ownNames(hub, session)).toEqual(expect.arrayContaining(["notes__echo", "mine"]));
    expect(names(hub, session)).toContain("files__echo");
    expect(await textOf(hub, session, "notes__echo", { text: "hi" })).toContain("hi");
    expect(await textOf(hub, session, "mine")).toBe("mine");
    expect(hub.tools({ session }).map(({ name }) => name)).toContain("notes__echo");
    expect(hub.explain("notes__echo", session)?.decision.verdict).toBe("allow");

    for (const stranger of [other, hub.session]) {
      expect(ownNames(hub, stranger)).toEqual([]);
      for (const name of ["notes__echo", "mine"]) {
        const outcome = await hub.call({ session: stranger, name, arguments: { text: "hi" } });
        expect(outcome).toMatchObject({ ok: false, error: { code: "not_found" } });
        expect(hub.explain(name, stranger)).toBeUndefined();
      }
    }
    expect(hub.servers.list().map(({ id }) => id)).toEqual(["files"]);
    expect(session.own.servers()).toMatchObject([
      { name: "notes", state: "ready", id: expect.stringMatching(/^notes@/) },
    ]);
  });

  it("[agent-01a] are the session's own business in events of the hub", async () => {
    const heard: unknown[] = [];
    const stops = (["server", "catalog", "warning", "log", "visibility"] as const).map((name) =>
      hub.on(name, (event) => heard.push([name, event])),
    );
    const session = await open({ servers: { quiet: misbehaving("ok"), bad: { command: "/no/such/program" } } });
    await textOf(hub, session, "quiet__change");
    await expect.poll(() => names(hub, session)).toContain("quiet__tool-1");
    expect(heard).toEqual([]);
    for (const stop of stops) stop();
  });

  it("[agent-01b] with one name in two sessions are two processes with two environments", async () => {
    const entry = (who: string) => ({ servers: { same: { ...misbehaving("ok"), env: { WHO: who } } } });
    const [ann, bob] = await Promise.all([open(entry("ann")), open(entry("bob"))]);
    expect(await textOf(hub, ann, "same__env")).toContain('"WHO":"ann"');
    expect(await textOf(hub, bob, "same__env")).toContain('"WHO":"bob"');
    const [first, second] = [await pidOf(hub, ann, "same__pids"), await pidOf(hub, bob, "same__pids")];
    expect(first).not.toBe(second);
    ann.close();
    await ann.over;
    expect([isAlive(first), isAlive(second)]).toEqual([false, true]);
    expect(await textOf(hub, bob, "same__echo", { text: "still" })).toContain("still");
  });

  it("[agent-01d] whose names the hub has are kept apart and explained", async () => {
    const before = names(hub, hub.session);
    const session = await open({ servers: { files: misbehaving("ok") }, tools: [tool("here", "mine")] });
    expect(names(hub, session)).toEqual(expect.arrayContaining(["files__echo", "session-files__echo", "here"]));
    const renamed = ownNames(hub, session).find((name) => name.startsWith("here-")) ?? "";
    expect(await textOf(hub, session, "here")).toBe("here");
    expect(await textOf(hub, session, renamed)).toBe("mine");
    expect(await pidOf(hub, session, "files__pids")).not.toBe(await pidOf(hub, session, "session-files__pids"));
    expect(names(hub, hub.session)).toEqual(before);
    expect(messages(session)).toEqual(
      expect.arrayContaining([expect.stringContaining('"session-files"'), expect.stringContaining(`"${renamed}"`)]),
    );
  });

  it("yield to a tool that the hub gets later", async () => {
    const session = await open({ tools: [tool("later", "mine")] });
    expect(ownNames(hub, session)).toEqual(["later"]);
    const takeBack = hub.registry.register(tool("later", "hub"));
    expect(await textOf(hub, session, "later")).toBe("hub");
    expect(ownNames(hub, session)).toEqual([expect.stringMatching(/^later-[0-9a-f]{10}$/)]);
    takeBack();
    expect(ownNames(hub, session)).toEqual(["later"]);
  });

  it("are not hidden by lists that say which part of the hub a role or session sees", async () => {
    const own = {
      servers: { notes: misbehaving("ok") },
      tools: [tool("mine"), tool("hers", "hers", { ownerOnly: true })],
    };
    const session = await open({ role: "narrow", owner: false, mayRunCommands: true, rules: { servers: [] }, ...own });
    expect(names(hub, session)).toEqual(expect.arrayContaining(["notes__echo", "mine"]));
    expect(names(hub, session)).not.toContain("here");
    expect(await hub.call({ session, name: "hers" })).toMatchObject({ ok: false, error: { code: "not_found" } });
    session.narrow("mode", { deny: ["notes__*"] });
    expect(names(hub, session)).toEqual(["mine"]);
    expect(await hub.call({ session, name: "notes__fail" })).toMatchObject({ ok: false });
  });

  it("[agent-01g] leave no process, token or listener when the session closes", async () => {
    const token = "sesame-0123456789";
    const notes = { ...misbehaving("grandchild"), env: { API_TOKEN: token } };
    const far = { url: "https://10.0.0.1/mcp", headers: { Authorization: `Bearer ${token}` } };
    const session = await open({ servers: { notes, far } });
    expect(await textOf(hub, session, "notes__echo", { text: token })).not.toContain(token);
    const pids = await textOf(hub, session, "notes__pids");
    const { pid, grandchild: child } = JSON.parse(pids) as { pid: number; grandchild: number };
    expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
    const running = hub.call({ session, name: "notes__slow", arguments: { ms: 60_000 } });
    await new Promise((resolve) => setImmediate(resolve));
    session.close();
    expect(await running).toMatchObject({ ok: false, error: { code: "cancelled" } });
    await session.over;
    await expect.poll(() => [isAlive(pid), isAlive(child)]).toEqual([false, false]);
    // What was done stays in the audit log and the store; nothing else is kept of it.
    const texts = readdirSync(home, { recursive: true, withFileTypes: true })
      .map((entry) => ({ entry, path: join(entry.parentPath, entry.name) }))
      .filter(({ entry }) => entry.isFile())
      .map(({ path }) => ({ path, text: readFileSync(path, "utf8") }));
    expect(texts.filter(({ text }) => text.includes(token))).toEqual([]);
    const others = texts.filter(({ path }) => !/audit|\.db/.test(path));
    expect(others.filter(({ text }) => text.includes("notes@"))).toEqual([]);
    // Nor does the hub mask for others what only that session had.
    expect(await textOf(hub, hub.session, "files__echo", { text: token })).toContain(token);
    await expect(session.own.mount({})).rejects.toMatchObject({ code: "cancelled" });
  });

  it("[agent-01g] end with the hub, those of closed sessions too", async () => {
    const brief = await startHub({ mcpServers: {} });
    const [one, two] = await Promise.all(
      ["ok", "exit-on-eof-late"].map((mode) => brief.openSession({ servers: { notes: misbehaving(mode) } })),
    );
    if (one === undefined || two === undefined) throw new Error("two sessions");
    const pids = [await pidOf(brief, one, "notes__pids"), await pidOf(brief, two, "notes__pids")];
    two.close();
    await brief.close();
    expect(pids.map(isAlive)).toEqual([false, false]);
  });
});

describe("servers of a session, told and bounded", () => {
  it("[whole-13a] tell the client, and the log, of lists that cannot be read and of tools that are left out", async () => {
    const logged: string[] = [];
    const stop = hub.on("session-warning", ({ session, message }) => logged.push(`${session} ${message}`));
    const session = await open({ servers: { bad: misbehaving("bad-tools") } });
    const told = (): string => messages(session).join("\n");
    await expect.poll(told).toMatch(/left out/);
    expect(told()).toMatch(/^The server "bad" lists the tool \S+ twice; the last one is used\.$/m);
    const dead = await open({ servers: { mute: { command: process.execPath, args: ["-e", LISTLESS] } } });
    await expect.poll(() => messages(dead).join("\n")).toMatch(/"mute".*tools\/list could not be read/);
    for (const [{ id }, part] of [
      [session, "left out"],
      [dead, "tools/list could not be read"],
    ] as const)
      expect(logged.some((line) => line.startsWith(id) && line.includes(part))).toBe(true);
    expect(logged.filter((line) => line.includes("tools/list could not be read"))).toHaveLength(1);
    stop();
  });

  it("[whole-13a] have no control characters of their own in what is told of them", async () => {
    const tools = [{ name: "ring\u0007\u001b[2J", inputSchema: { type: "object" } }];
    const list = LISTLESS.replace(
      'error: { code: -32603, message: "no list today" }',
      () => `result: { tools: ${JSON.stringify(tools)} }`,
    );
    const session = await open({ servers: { loud: { command: process.execPath, args: ["-e", list] } } });
    await expect.poll(() => messages(session).join("\n")).toContain('"ring\\u{0007}\\u{001B}[2J" is not offered');
  });

  it("[whole-13a] are not said to have tools where the list of them cannot be read", async () => {
    const other = await startHub({ sessions: { wait: 100 } });
    const late = `setTimeout(() => {${LISTLESS}}, 600);`;
    const session = await other.openSession({ servers: { mute: { command: process.execPath, args: ["-e", late] } } });
    const told = (): string => messages(session).join("\n");
    await expect.poll(told).toContain("is now connected. It offers no tools.");
    expect(told()).toMatch(/tools\/list could not be read/);
    expect(told()).not.toContain("tools are available");
    await other.close();
  });

  it("[whole-13b] have 120 s for a call by default, or what the config or their entry says", async () => {
    const timeouts = async (on: Hub): Promise<number[]> => {
      const servers = { plain: misbehaving("ok"), own: { ...misbehaving("ok"), toolTimeout: 7000 } };
      const session = await on.openSession({ servers });
      const found = ["plain", "own"].map((name) => {
        const connection = session.mounted?.connections().find(({ spec }) => spec.name === name);
        return connection?.spec.toolTimeout ?? 0;
      });
      session.close();
      return found;
    };
    expect(await timeouts(hub)).toEqual([120_000, 7000]);
    const other = await startHub({ sessions: { toolTimeout: 5000 } });
    expect(await timeouts(other)).toEqual([5000, 7000]);
    await other.close();
  });

  it("[whole-13b] that take longer say which setting is theirs", async () => {
    const other = await startHub({ sessions: { toolTimeout: 200 } });
    const session = await other.openSession({ servers: { notes: misbehaving("ok") } });
    const outcome = await other.call({ name: "notes__slow", arguments: { ms: 5000 }, session });
    expect(outcome).toMatchObject({
      error: { code: "timeout", hint: expect.stringContaining("`sessions.toolTimeout` if a client brought it") },
    });
    await other.close();
  });

  it("[whole-13c] end when they are not used for sessions.idleMinutes, and start again with the next use", async () => {
    const clock = new FakeClock();
    const other = await startHub({ sessions: { idleMinutes: 2 } }, { clock });
    const session = await other.openSession({ servers: { notes: misbehaving("ok") } });
    const pid = await pidOf(other, session, "notes__pids");
    await clock.advance(60_000);
    await textOf(other, session, "notes__echo", { text: "hi" });
    await clock.advance(90_000);
    expect(isAlive(pid)).toBe(true);
    await clock.advance(30_001);
    await expect.poll(() => isAlive(pid)).toBe(false);
    expect(ownNames(other, session)).toContain("notes__echo");
    expect(await pidOf(other, session, "notes__pids")).not.toBe(pid);
    await other.close();
  });

  it("[whole-13d] the warning about many programs counts those of all sessions", async () => {
    const three = (start: string): Record<string, unknown> =>
      Object.fromEntries([1, 2, 3].map((n) => [`${start}${n}`, misbehaving("ok")]));
    const first = await open({ servers: three("a") });
    expect(messages(first).join()).not.toMatch(/programs/);
    const second = await open({ servers: three("b") });
    expect(messages(second).join()).toMatch(/starts 3 programs .* With those of other sessions there are 6/);
  });
});

/** Speaks MCP and answers tools/list with an error. */
const LISTLESS = `
  require("node:readline").createInterface(process.stdin).on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    const result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "mute", version: "1" } };
    const answer = method === "initialize" ? { result } : { error: { code: -32603, message: "no list today" } };
    console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  });
`;
