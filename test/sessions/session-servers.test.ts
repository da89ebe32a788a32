import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Hub } from "../../src/hub/hub.ts";
import type { Session } from "../../src/sessions/session.ts";
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
