import { describe, expect, it } from "vitest";
import { canonicalScope, CanonicalScopes, knownNames, requestedScope } from "../../../src/doors/mcp/view-scope.ts";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import { guest } from "./door-bench.ts";

const known = {
  views: new Set(["review", "dev"]),
  servers: new Set(["a", "b", "local", "review"]),
  tags: new Set(["x", "y"]),
  roles: new Set(["dev"]),
};

describe("[gate-08e] scopes that mean the same", () => {
  it.each([
    [{}, {}],
    [{ role: "dev" }, { role: "dev" }],
    [{ servers: ["b", "zz1", "a", "b"] }, { servers: ["a", "b"] }],
    [
      { role: "dev", tags: ["y", "no", "x"], servers: ["local"] },
      { role: "dev", servers: ["local"], tags: ["x", "y"] },
    ],
    // Who asks for nothing that there is gets nothing, and not everything.
    [{ servers: ["zz1"] }, { servers: [] }],
    [{ servers: ["a"], tags: ["no"] }, { servers: [] }],
    [{ tags: ["no"] }, { servers: [] }],
    [
      { role: "dev", tags: [] },
      { role: "dev", servers: [] },
    ],
    [{ role: "invented" }, { role: "(unknown)" }],
    [
      { role: "dev", view: "review" },
      { role: "dev", view: "review" },
    ],
    [{ view: "invented" }, { servers: [] }],
    [{ role: "other", servers: ["a"], tags: ["x"] }, { role: "(unknown)" }],
  ])("%j is %j", (scope, canonical) => {
    expect(canonicalScope(scope, known)).toEqual(canonical);
  });

  it("no role that there is stands for those that there are not", () => {
    const roles = new Set(["(unknown)", "((unknown))"]);
    const { role } = canonicalScope({ role: "invented" }, { ...known, roles });
    expect(roles.has(role ?? "")).toBe(false);
    expect(canonicalScope({ role: "(unknown)" }, { ...known, roles })).toEqual({ role: "(unknown)" });
  });

  it("are equal under the names of the current config", async () => {
    const config = (tag: string) => ({
      mcpServers: {
        a: { command: "/no/such", tags: [tag], roles: ["only"], enabled: false },
        b: { command: "/no/such", enabled: false },
      },
      roles: { dev: { mcpServers: { b: { command: "/no/such" }, own: { command: "/no/such" } } } },
    });
    await using first = await createHub(config("x"), { connect: "none" });
    await using second = await createHub(config("z"), { connect: "none" });
    expect(knownNames(first.config)).toEqual({
      views: new Set(),
      servers: new Set(["local", "a", "b", "b@dev", "own@dev", "own"]),
      tags: new Set(["x"]),
      roles: new Set(["dev", "only"]),
    });
    let now = first.config;
    const scopes = new CanonicalScopes(() => now);
    const written = { tags: ["z", "x", "no"] };
    expect(scopes.of(written)).toEqual({ tags: ["x"] });
    expect(scopes.of({ tags: ["x", "x"] })).toEqual(scopes.of(written));
    expect(scopes.of({ role: "one" })).toEqual(scopes.of({ role: "two", servers: ["a"] }));
    expect(scopes.of({})).toEqual({});
    now = second.config;
    expect(scopes.of(written)).toEqual({ tags: ["z"] });
  });
});

describe("[shape-06b] the name in the path of a client", () => {
  const scopeOf = (path: string, role?: string): unknown => {
    const [name = "", query] = path.split("?");
    const caller = role === undefined ? guest("a") : { ...guest("a"), role };
    const choice = requestedScope("/mcp", name, new URLSearchParams(query), caller, known);
    return choice.ok ? choice.scope : choice.reason;
  };

  it("is that of a role, else of a view, else of a server", () => {
    expect(scopeOf("/mcp")).toEqual({});
    expect(scopeOf("/mcp/dev")).toEqual({ role: "dev" });
    expect(scopeOf("/mcp/review")).toEqual({ view: "review" });
    expect(scopeOf("/mcp/a")).toEqual({ servers: ["a"] });
    expect(scopeOf("/mcp/invented")).toEqual({ role: "invented" });
    expect(scopeOf("/mcp/local")).toEqual({ role: "local" });
    expect(scopeOf("/mcp/review?servers=a")).toEqual({ view: "review", servers: ["a"] });
    expect(scopeOf("/mcp/a?servers=b")).toEqual({ servers: [] });
    expect(scopeOf("/mcp/a/b")).toBe("no such path");
  });

  it("narrows who is bound to a role, and leads to no other role", () => {
    expect(scopeOf("/mcp/review", "ops")).toEqual({ role: "ops", view: "review" });
    expect(scopeOf("/mcp/a", "ops")).toEqual({ role: "ops", servers: ["a"] });
    expect(scopeOf("/mcp/dev", "ops")).toBe("other role");
    expect(scopeOf("/mcp/invented", "ops")).toBe("other role");
  });
});
