import { describe, expect, it } from "vitest";
import type { Caller, Scope } from "../../src/model/caller.ts";
import { type HttpConfig, HttpSchema } from "../../src/model/config.ts";
import { Quota, quotaOf } from "../../src/policy/quota.ts";

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
