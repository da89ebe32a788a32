import { describe, expect, it } from "vitest";
import { openCallerSession, OpenedSessions } from "../../../../src/doors/http/api/caller-sessions.ts";
import type { Caller, Scope } from "../../../../src/model/caller.ts";
import { Session, type SessionOptions } from "../../../../src/sessions/session.ts";
import { FakeClock } from "../../../support/fake-clock.ts";

const MINUTE = 60_000;
const hub = { openSession: (options: SessionOptions) => new Session(options) };

function caller(key: string, given: Partial<Caller> = {}): Caller {
  return { key, owner: false, scopes: new Set<Scope>(["read", "call"]), ...given };
}

function scene(): { opened: OpenedSessions; clock: FakeClock } {
  const clock = new FakeClock();
  return { opened: new OpenedSessions(hub, clock, { holdsCalls: true }), clock };
}

const door = (who: Caller, name: "rest" | "websocket"): Session => openCallerSession(hub, who, name, {});

describe("[agent-01a] sessions that callers of HTTP opened", () => {
  it("are theirs, with what the token has", () => {
    const { opened } = scene();
    const ada = caller("a", { user: "ada", role: "reviewer" });
    const session = opened.open(ada, door(ada, "rest"), { workspaceDir: "/tmp" });
    expect(session).toMatchObject({ door: "rest", user: "ada", role: "reviewer", workspaceDir: "/tmp", owner: false });
    expect(session.holdsCalls).toBe(true);
  });

  it("end half an hour after their last use, not while a call runs, and not those of a socket", async () => {
    const { opened, clock } = scene();
    const who = caller("a");
    const [rest, socket] = [door(who, "rest"), door(who, "websocket")];
    const [idle, used, busy] = [0, 1, 2].map(() => opened.open(who, rest, {}));
    const ofSocket = opened.open(who, socket, {});
    busy?.running.add(new AbortController());
    await clock.advance(20 * MINUTE);
    if (used !== undefined) opened.used(used);
    await clock.advance(12 * MINUTE);
    expect([idle?.closed, used?.closed, busy?.closed, ofSocket.closed]).toEqual([true, false, false, false]);
    socket.close();
    expect([ofSocket.closed, opened.size]).toEqual([true, 2]);
    opened.close();
    expect([used?.closed, busy?.closed, opened.size, clock.pending]).toEqual([true, true, 0, 0]);
  });

  it("end with the credentials", async () => {
    const { opened, clock } = scene();
    const who = caller("a", { expiresAt: clock.now() + 5 * MINUTE });
    const session = opened.open(who, door(who, "rest"), {});
    session.running.add(new AbortController());
    await clock.advance(4 * MINUTE);
    expect(session.closed).toBe(false);
    await clock.advance(2 * MINUTE);
    expect([session.closed, opened.size]).toEqual([true, 0]);
    await clock.advance(MINUTE);
    expect(clock.pending).toBe(0);
  });

  it("[agent-01c] are twenty of one caller at most", () => {
    const { opened } = scene();
    const who = caller("a");
    const rest = door(who, "rest");
    const first = opened.open(who, rest, {});
    for (let count = 1; count < 20; count++) opened.open(who, rest, {});
    expect(() => opened.open(who, rest, {})).toThrow("20 sessions of this caller are open.");
    expect(opened.open(caller("b"), rest, {}).closed).toBe(false);
    first.close();
    expect(opened.open(who, rest, {}).closed).toBe(false);
  });

  it("[agent-01f] may run commands only with the scope admin, whoever the owner is", () => {
    const asked: (boolean | undefined)[] = [];
    const noting = {
      openSession(options: SessionOptions): Session {
        asked.push(options.mayRunCommands);
        return new Session(options);
      },
    };
    openCallerSession(noting, caller("local", { owner: true }), "rest", {});
    openCallerSession(
      noting,
      caller("boss", { scopes: new Set<Scope>(["read", "call", "approve", "admin"]) }),
      "websocket",
      {},
    );
    expect(asked).toEqual([false, true]);
  });
});
