import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { StoredSession } from "../../../src/store/store.ts";
import { place } from "./place.ts";

const ALL = { limit: 100, state: "all" } as const;
const OPEN = { limit: 100, state: "open" } as const;

function leftOver(changes: Partial<StoredSession> = {}): StoredSession {
  return {
    id: randomUUID(),
    hub: "a-hub-that-died",
    door: "mcp",
    role: null,
    user: null,
    client: null,
    owner: false,
    openedAt: "1970-01-01T00:10:00.000Z",
    closedAt: null,
    lastCallAt: null,
    calls: 3,
    taint: null,
    ...changes,
  };
}

describe("[oper-09f] sessions", () => {
  it.each(["in the store", "in memory"])("are listed with door, view, calls and taint: %s", async (where) => {
    const { hub: make, clock } = await place();
    const hub = await make(
      { roles: { narrow: { tools: { deny: ["pay"] } } } },
      where === "in memory" ? { store: false } : {},
    );
    await clock.advance(1000);
    const session = hub.openSession({
      ...{ door: "mcp", role: "narrow", user: "ann" },
      clientInfo: { name: "a-client", version: "2" },
    });
    await clock.advance(1000);
    await hub.call({ session, name: "look" });
    await hub.call({ session, name: "pay" });
    session.markTainted({
      server: "web",
      callId: "c1",
      name: "web__get",
      read: ["https://example.com/a"],
      at: clock.now(),
    });

    const { sessions, total } = await hub.internals.activity.sessions(OPEN);
    expect(total).toBe(2);
    const origin = {
      ...{ server: "web", callId: "c1", name: "web__get", read: ["https://example.com/a"] },
      at: "1970-01-01T00:16:42.000Z",
    };
    expect(sessions[0]).toEqual({
      id: session.id,
      door: "mcp",
      role: "narrow",
      user: "ann",
      client: { name: "a-client", version: "2" },
      owner: false,
      openedAt: "1970-01-01T00:16:41.000Z",
      closedAt: null,
      lastCallAt: "1970-01-01T00:16:42.000Z",
      calls: 2,
      running: 0,
      toolCount: 1,
      taint: { ...origin, origins: [origin] },
    });
    expect(sessions[1]).toMatchObject({ id: hub.session.id, owner: true, toolCount: 2, calls: 0 });
    expect(await hub.internals.activity.session(session.id)).toMatchObject({ tools: ["look"], activeSkills: [] });

    session.close();
    expect((await hub.internals.activity.sessions(OPEN)).sessions.map(({ id }) => id)).toEqual([hub.session.id]);
    expect((await hub.internals.activity.sessions({ ...ALL, state: "closed" })).sessions).toMatchObject([
      { id: session.id, closedAt: "1970-01-01T00:16:42.000Z", calls: 2, toolCount: 0, taint: { callId: "c1" } },
    ]);
    expect(await hub.internals.activity.session(session.id)).toMatchObject({ tools: [], closedAt: expect.any(String) });
    expect(await hub.internals.activity.session("nobody")).toBeUndefined();
  });

  it("come in pages, and of one door alone", async () => {
    const { hub: make, clock } = await place();
    const hub = await make();
    const ids: string[] = [];
    for (const door of ["mcp", "rest", "mcp", "mcp"]) {
      await clock.advance(1000);
      ids.unshift(hub.openSession({ door }).id);
    }
    const first = await hub.internals.activity.sessions({ ...OPEN, limit: 2 });
    expect(first).toMatchObject({ total: 5, nextCursor: expect.any(String) });
    const second = await hub.internals.activity.sessions({ ...OPEN, limit: 2, cursor: first.nextCursor });
    expect([...first.sessions, ...second.sessions].map(({ id }) => id)).toEqual(ids);
    expect((await hub.internals.activity.sessions({ ...OPEN, door: "rest" })).sessions.map(({ id }) => id)).toEqual([
      ids[2],
    ]);
  });

  it("are in the store soon, and closed there when the hub is", async () => {
    const { hub: make, clock, store } = await place();
    const hub = await make();
    const session = hub.openSession({ door: "mcp" });
    await hub.call({ session, name: "look" });
    await clock.advance(6000);
    // A thread writes them.
    await expect.poll(() => store.sessions.get(session.id)).toMatchObject({ calls: 1, closedAt: null });
    await hub.close();
    expect(await store.sessions.get(session.id)).toMatchObject({ calls: 1, closedAt: expect.any(String) });
    expect((await store.sessions.list({ limit: 10, state: "open" })).total).toBe(0);
  });

  it("that a dead hub left are closed, those of a living one are not", async () => {
    const { hub: make, clock, store } = await place();
    const living = await make();
    await clock.advance(6000);
    const [dead, gone] = [leftOver(), leftOver({ hub: "another-that-died" })];
    await store.sessions.put([dead, gone]);
    // A process id above what any system gives out.
    await store.settings.set(`hub.${gone.hub}`, JSON.stringify({ pid: 2 ** 30, at: clock.now() }));

    const next = await make();
    const { sessions } = await next.internals.activity.sessions(ALL);
    const closed = new Map(sessions.map(({ id, closedAt }) => [id, closedAt]));
    expect(closed.get(dead.id)).toEqual(expect.any(String));
    expect(closed.get(gone.id)).toEqual(expect.any(String));
    expect(closed.get(living.session.id)).toBeNull();
    expect(closed.get(next.session.id)).toBeNull();
    expect(await store.settings.get(`hub.${gone.hub}`)).toBeUndefined();
  });

  it("that are over are forgotten after a week", async () => {
    const { hub: make, clock, store } = await place();
    await clock.advance(10 * 24 * 3_600_000);
    const old = leftOver({ closedAt: "1970-01-01T00:20:00.000Z" });
    const recent = leftOver({ closedAt: new Date(clock.now() - 3_600_000).toISOString() });
    await store.sessions.put([old, recent]);
    await (await make()).internals.activity.sessions(ALL);
    expect(await store.sessions.get(old.id)).toBeUndefined();
    expect(await store.sessions.get(recent.id)).toBeDefined();
  });

  it("are ended on request, but for the hub's own and those of another hub", async () => {
    const { hub: make, clock } = await place();
    const [hub, other] = [await make(), await make()];
    const session = hub.openSession({ door: "mcp" });
    await hub.internals.activity.closeSession(session.id);
    expect(session.closed).toBe(true);
    await expect(hub.internals.activity.closeSession(session.id)).rejects.toMatchObject({ code: "not_found" });
    await expect(hub.internals.activity.closeSession("nobody")).rejects.toMatchObject({ code: "not_found" });
    await expect(hub.internals.activity.closeSession(hub.session.id)).rejects.toMatchObject({ code: "conflict" });
    await clock.advance(6000);
    await expect(hub.internals.activity.closeSession(other.session.id)).rejects.toMatchObject({ code: "conflict" });
    // What it sees is not known here.
    expect(await hub.internals.activity.session(other.session.id)).toMatchObject({ closedAt: null, toolCount: null });
  });

  it("wait for a store that fails, and the hub says so once", async () => {
    const { hub: make, clock, store } = await place();
    let isBroken = true;
    const put: typeof store.sessions.put = (sessions) =>
      isBroken ? Promise.reject(new Error("disk full")) : store.sessions.put(sessions);
    const failing = { ...store, sessions: { ...store.sessions, put } };
    const hub = await make({}, { store: failing });
    const session = hub.openSession({ door: "mcp" });
    await clock.advance(20_000);
    expect(hub.warnings().filter(({ message }) => message.includes("disk full"))).toHaveLength(1);
    isBroken = false;
    await clock.advance(6000);
    expect(await store.sessions.get(session.id)).toMatchObject({ closedAt: null });
  });
});
