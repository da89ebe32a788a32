import { describe, expect, it, onTestFinished } from "vitest";
import { CallerSessions } from "../../../../src/doors/http/api/caller-sessions.ts";
import { createHub } from "../../../../src/hub/create/create-hub.ts";
import type { Caller, Scope } from "../../../../src/model/caller.ts";
import { Session } from "../../../../src/sessions/session.ts";
import { FakeClock } from "../../../support/fake-clock.ts";

const MINUTE = 60_000;

function caller(key: string, given: Partial<Caller> = {}): Caller {
  return { key, owner: false, scopes: new Set<Scope>(["read", "call"]), ...given };
}

function scene(): { sessions: CallerSessions; clock: FakeClock } {
  const clock = new FakeClock();
  const hub = { openSession: (options: ConstructorParameters<typeof Session>[0]) => new Session(options) };
  return { sessions: new CallerSessions(hub, clock, { holdsCalls: true }), clock };
}

describe("[oper-07a] one session for each caller", () => {
  it("is the same for the same identity, and another for another", () => {
    const { sessions } = scene();
    const ada = sessions.of(caller("a", { user: "ada", role: "reviewer" }));
    expect(sessions.of(caller("a", { user: "ada", role: "reviewer" }))).toBe(ada);
    expect(ada).toMatchObject({ door: "rest", user: "ada", role: "reviewer", owner: false });
    expect(ada.holdsCalls).toBe(true);
    const others = [caller("b"), caller("a", { user: "ada" }), caller("a", { user: "ada", role: "writer" })];
    for (const other of others) expect(sessions.of(other)).not.toBe(ada);
    expect(sessions.size).toBe(4);
  });

  it("lets only somebody with the scope admin decide for all", () => {
    const { sessions } = scene();
    expect(sessions.of(caller("local", { owner: true })).decidesForAll).toBe(false);
    const admin = caller("hub", { owner: true, scopes: new Set<Scope>(["read", "call", "approve", "admin"]) });
    expect(sessions.of(admin).decidesForAll).toBe(true);
  });

  it("ends half an hour after its last use, not while a call runs", async () => {
    const { sessions, clock } = scene();
    const [idle, busy, used] = ["idle", "busy", "used"].map((key) => sessions.of(caller(key)));
    const call = new AbortController();
    busy?.running.add(call);
    await clock.advance(20 * MINUTE);
    expect(sessions.of(caller("used"))).toBe(used);
    await clock.advance(12 * MINUTE);
    expect([idle?.closed, busy?.closed, used?.closed]).toEqual([true, false, false]);
    busy?.running.delete(call);
    await clock.advance(20 * MINUTE);
    expect([busy?.closed, used?.closed, sessions.size, clock.pending]).toEqual([true, true, 0, 0]);
  });

  it("opens another one where the first was closed by an operator, and closes all in the end", async () => {
    const { sessions, clock } = scene();
    const first = sessions.of(caller("a"));
    first.close();
    const second = sessions.of(caller("a"));
    expect(second).not.toBe(first);
    sessions.close();
    expect([second.closed, sessions.size, clock.pending]).toEqual([true, 0, 0]);
  });
});

describe("[joy-10c] visits of the page", () => {
  it("are not sessions in lists, counts and events, beside those of programs with the same token", async () => {
    const hub = await createHub({});
    onTestFinished(() => hub.close());
    const opened: string[] = [];
    hub.on("session", ({ session }) => opened.push(session.id));
    const sessions = new CallerSessions(hub, new FakeClock());
    const scopes = new Set<Scope>(["read", "call", "admin"]);
    const page = sessions.of(caller("a", { owner: true, page: true, scopes }));
    const program = sessions.of(caller("a", { owner: true }));
    expect(page).not.toBe(program);
    expect(sessions.of(caller("a", { owner: true, page: true, scopes }))).toBe(page);
    expect(opened).toEqual([page.id, program.id]);
    const listed = async (): Promise<string[]> =>
      (await hub.internals.activity.sessions({ state: "all", limit: 10 })).sessions.map(({ id }) => id);
    expect(new Set(await listed())).toEqual(new Set([hub.session.id, program.id]));
    expect(hub.internals.activity.overview().sessions).toBe(2);
    // Those of others who may open the page are for the operator to see and end.
    const other = sessions.of(caller("b", { page: true }));
    expect(await listed()).toContain(other.id);
    sessions.close();
    expect(new Set(await listed())).toEqual(new Set([hub.session.id, program.id, other.id]));
  });
});
