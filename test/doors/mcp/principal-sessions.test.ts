import { describe, expect, it } from "vitest";
import { canonicalScope, type RequestOrigin, type ViewScope } from "../../../src/doors/mcp/view-scope.ts";
import { PrincipalSessions } from "../../../src/doors/mcp/principal-sessions.ts";
import { Session } from "../../../src/sessions/session.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { guest } from "./door-bench.ts";

const known = {
  views: new Set<string>(),
  servers: new Set(["a", "b"]),
  tags: new Set<string>(),
  roles: new Set(["dev"]),
};

function place(): { clock: FakeClock; opened: Session[]; principals: PrincipalSessions } {
  const clock = new FakeClock();
  const opened: Session[] = [];
  const open = ({ caller, scope }: RequestOrigin): Session => {
    const role = caller.role ?? scope.role;
    const session = new Session({ owner: false, role });
    opened.push(session);
    return session;
  };
  return {
    clock,
    opened,
    principals: new PrincipalSessions(clock, open, { of: (scope) => canonicalScope(scope, known) }),
  };
}

const asks = (user: string, scope: ViewScope = {}): RequestOrigin => ({ caller: guest(user), scope });
/** Different for every number, and known. */
const part = (n: number): ViewScope => ({ servers: [`s${n}`] });

describe("[gate-08e] sessions of callers that have none", () => {
  it("are shared by all that means the same, and not between callers", () => {
    const { opened, principals } = place();
    const first = principals.of(asks("u", { servers: ["a", "b"] }));
    for (let n = 0; n < 50; n++) {
      expect(principals.of(asks("u", { servers: ["b", "a", `zz${n}`] }))).toBe(first);
      principals.of(asks("u", { role: `invented-${n}` }));
      principals.of(asks("u", { servers: [`zz${n}`] }));
    }
    expect(principals.size).toBe(3);
    expect(principals.of(asks("v", { servers: ["a", "b"] }))).not.toBe(first);
    expect(opened).toHaveLength(4);
  });

  it("are so many for one caller; the longest unused ends, if nobody uses it", () => {
    const clock = new FakeClock();
    const principals = new PrincipalSessions(clock, () => new Session({ owner: false }));
    const other = principals.of(asks("other"));
    const held = principals.hold(asks("u", part(0)));
    const second = principals.of(asks("u", part(1)));
    const third = principals.of(asks("u", part(2)));
    for (let n = 3; n < 100; n++) principals.of(asks("u", part(n)));
    principals.of(asks("u", part(1)));
    expect(principals.size).toBe(101);
    const last = principals.of(asks("u", part(100)));
    expect(principals.size).toBe(101);
    expect([held.session.closed, second.closed, third.closed, last.closed]).toEqual([false, false, true, false]);
    held.release();
    for (let n = 200; n < 400; n++) principals.of(asks("u", part(n)));
    expect(principals.size).toBe(101);
    expect([held.session.closed, second.closed, other.closed]).toEqual([true, true, false]);
    principals.close();
    expect([last.closed, other.closed]).toEqual([true, true]);
  });

  it("end when they were not used for a while, also behind one that was used long", async () => {
    const { clock, principals } = place();
    const held = principals.hold(asks("u"));
    const idle = principals.of(asks("v"));
    await clock.advance(29 * 60_000);
    held.release();
    await clock.advance(2 * 60_000);
    expect([held.session.closed, idle.closed]).toEqual([false, true]);
    expect(principals.of(asks("v"))).not.toBe(idle);
    await clock.advance(62 * 60_000);
    expect([principals.size, clock.pending]).toEqual([0, 0]);
  });
});
