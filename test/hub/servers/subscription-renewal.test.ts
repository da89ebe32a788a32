import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";
import type { Session } from "../../../src/sessions/session.ts";
import { ask, ReloadPlace, type ServerOptions, WAIT } from "../reload/reload-place.ts";

const uri = "x://1";

/** A hub with a server `a` that offers a resource, and how often each process was asked to tell of it. */
async function setUp(config: ConfigInput = {}) {
  const place = new ReloadPlace();
  const entry = (label: string, more: ServerOptions = {}): ServerEntryInput =>
    place.server(label, { resource: uri, ...more }, { restart: false });
  const hub = await place.open({ ...config, mcpServers: { a: entry("old") } });
  return {
    place,
    hub,
    entry,
    /** All that a server was sent before is dealt with when it answers. */
    async subscriptions(label: string, caller: Session = hub.session): Promise<number> {
      await ask(hub, "a__who", caller);
      return existsSync(join(place.dir, `${label}.subscribed`))
        ? place.read(`${label}.subscribed`).trim().split("\n").length
        : 0;
    },
  };
}

async function follow(hub: Hub, session: Session): Promise<void> {
  expect(await hub.internals.subscribe(session, { uri })).toMatchObject({ ok: true });
}

describe("[gate-07c] a resource that sessions follow", () => {
  it("is followed at a replacement that was down at first", async () => {
    const { place, hub, entry, subscriptions } = await setUp();
    const [session, closed] = [hub.openSession(), hub.openSession()];
    await follow(hub, session);
    await follow(hub, closed);
    place.touch("down");
    await hub.reload({ mcpServers: { a: entry("late", { down: "down" }) } });
    expect(hub.servers.list()[0]?.state).toBe("failed");
    closed.close();
    rmSync(join(place.dir, "down"));
    await hub.servers.connect("a");
    expect(await subscriptions("late")).toBe(1);
    // A server that only starts again is told by its own connection, and by nobody else.
    await hub.servers.disconnect("a");
    await hub.servers.connect("a");
    expect(await subscriptions("late")).toBe(2);
  });

  it("is followed at a server that is taken out and put back under the same id", async () => {
    const { hub, entry, subscriptions } = await setUp();
    await follow(hub, hub.openSession());
    await hub.reload({});
    await hub.reload({ mcpServers: { a: entry("back") } });
    expect(await subscriptions("back")).toBe(1);
  });

  it("is not looked for at another server that has one of the same name", async () => {
    const { hub, entry, place } = await setUp();
    await follow(hub, hub.openSession());
    await hub.reload({ mcpServers: { b: entry("other") } });
    expect(await ask(hub, "b__who")).toContain("other ");
    expect(existsSync(join(place.dir, "other.subscribed"))).toBe(false);
  });

  it("is no longer followed for those who gave it up or ended", async () => {
    const { hub, entry, subscriptions } = await setUp();
    const [gaveUp, ended] = [hub.openSession(), hub.openSession()];
    await follow(hub, gaveUp);
    await follow(hub, ended);
    await hub.internals.unsubscribe(gaveUp, { uri });
    ended.close();
    await hub.reload({ mcpServers: { a: entry("next") } });
    expect(await subscriptions("next")).toBe(0);
  });

  it("is followed anew by those only who may still see it, and by the others once they may again", async () => {
    const { hub, entry, subscriptions } = await setUp({ roles: { r: {} } });
    await follow(hub, hub.openSession({ role: "r" }));
    const mcpServers = { a: entry("next") };
    await hub.reload({ mcpServers, roles: { r: { tools: { deny: [uri] } } } });
    expect(await subscriptions("next")).toBe(0);
    await hub.reload({ mcpServers, roles: { r: {} } });
    expect(await subscriptions("next")).toBe(1);
  });

  it("is followed anew without a call of anybody, and so beyond all limits", async () => {
    const { hub, entry, place } = await setUp({ limits: { callsPerMinute: 1 } });
    const session = hub.openSession();
    await follow(hub, session);
    const calls: string[] = [];
    hub.on("call", ({ name }) => calls.push(name));
    await hub.reload({ mcpServers: { a: entry("new") }, limits: { callsPerMinute: 1 } });
    await place.appears("new.subscribed");
    expect(calls).toEqual([]);
    expect(await hub.read({ session, uri })).toMatchObject({ ok: false, error: { code: "rate_limited" } });
  });

  it("is followed at a server that took over while the old one was asked", async () => {
    const { hub, entry, place } = await setUp();
    const updates: string[] = [];
    hub.on("resource-updated", (event) => updates.push(event.uri));
    const following = follow(hub, hub.openSession());
    await hub.reload({ mcpServers: { a: entry("new") } });
    await following;
    await place.appears("new.subscribed");
    await vi.waitFor(() => expect(updates).toEqual([uri]), WAIT);
  });

  it("is followed anew by each user on their own connection", async () => {
    const { hub, place } = await setUp();
    const entry = (label: string): ServerEntryInput => place.server(label, { resource: uri }, { isolation: "user" });
    await hub.reload({ mcpServers: { a: entry("each") } });
    const users = ["ann", "bob"].map((user) => hub.openSession({ user }));
    for (const session of users) await follow(hub, session);
    const told: unknown[] = [];
    hub.on("resource-updated", ({ user }) => told.push(user));
    // It tells of an update to whoever subscribes.
    await hub.reload({ mcpServers: { a: entry("new") } });
    await vi.waitFor(() => expect(told.toSorted()).toEqual(["ann", "bob"]), WAIT);
  });
});
