import { describe, expect, it } from "vitest";
import type { Caller, Scope } from "../../src/model/caller.ts";
import { type HttpConfig, HttpSchema } from "../../src/model/config.ts";
import { Quota, quotaError, quotaOf } from "../../src/policy/quota.ts";

const caller = (key: string, user?: string, scopes: readonly Scope[] = ["read"]): Caller => ({
  key,
  user,
  owner: false,
  scopes: new Set(scopes),
});

const http = (given: object): HttpConfig => HttpSchema.parse(given);
const token = (name: string, scopes?: readonly Scope[]): object => ({ token: name, ...(scopes && { scopes }) });

describe("[trust-13a] a quota", () => {
  it("is given back once, whoever gives it back twice", () => {
    const quota = new Quota({ total: 10, perToken: 2 });
    const [first] = [quota.take(caller("a")), quota.take(caller("a"))];
    expect(quota.reachedFor(caller("a"))).toEqual({ of: "token", limit: 2 });
    first();
    first();
    quota.take(caller("a"));
    expect([quota.reachedFor(caller("a"))?.of, quota.reachedFor(caller("b")), quota.size]).toEqual([
      "token",
      undefined,
      2,
    ]);
  });

  it("tells a token from a user of the same name", () => {
    const quota = new Quota({ total: 10, perToken: 1, perUser: 1 });
    quota.take(caller("ann"));
    expect(quota.reachedFor(caller("other", "ann"))).toBeUndefined();
  });

  it("is a fifth of all where several callers share the hub, and all of it where there is only one", () => {
    const several = { tokens: [token("a"), token("b"), token("c", ["admin"])] };
    const one = { tokens: [token("a"), token("b", ["admin"])] };
    const oauth = { oauth: { issuer: "https://login.example.com" } };
    expect(quotaOf(http({ auth: several }), 5000)).toEqual({ total: 5000, perToken: 1000, perUser: 1000 });
    expect(quotaOf(http({ auth: oauth }), 5000)).toMatchObject({ perToken: 1000, perUser: 1000 });
    expect(quotaOf(http({ auth: several }), 1)).toMatchObject({ perToken: 1 });
    expect(quotaOf(http({ auth: one }), 5000)).toMatchObject({ perToken: 5000, perUser: 5000 });
    expect(quotaOf(http({}), 5000)).toMatchObject({ perToken: 5000, perUser: 5000 });
    const set = { auth: several, limits: { sessionsPerToken: 7, sessionsPerUser: 9 } };
    expect(quotaOf(http(set), 5000)).toEqual({ total: 5000, perToken: 7, perUser: 9 });
  });
});

describe("[whole-42a] a refusal", () => {
  const refusedBy = (limits: object, auth?: object): string => {
    const quota = new Quota(quotaOf(http({ limits, ...(auth && { auth }) }), 2));
    const one = caller("a", "ann");
    while (quota.reachedFor(one) === undefined) quota.take(one);
    return String(quotaError("sessions", quota.reachedFor(one) ?? expect.fail(), "sessions").hint);
  };

  it("names the number of all places where the caller may have all of them, and otherwise the caller's own limit", () => {
    expect(refusedBy({})).toMatch(/http\.limits\.sessions\.$/);
    expect(refusedBy({ sessionsPerToken: 1 })).toContain("http.limits.sessionsPerToken");
    expect(refusedBy({ sessionsPerUser: 1 })).toContain("http.limits.sessionsPerUser");
    expect(refusedBy({}, { tokens: [token("a"), token("b")] })).toContain("http.limits.sessionsPerToken");
  });
});
