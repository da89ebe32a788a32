import { describe, expect, it } from "vitest";
import type { ToolRules } from "../../src/model/tool-rules.ts";
import { Policy, type ServerPolicy, type PolicySubject } from "../../src/policy/decide.ts";

const owner = { owner: true };
const guest = { owner: false };

function policy(hub: ToolRules, servers: Record<string, Omit<ServerPolicy, "where">> = {}): Policy {
  const entries = Object.entries(servers).map(([id, rest]) => [id, { ...rest, where: `servers.${id}` }] as const);
  return new Policy({ hub, where: "hub.json", servers: new Map(entries) });
}

function tool(server: string | null, name: string, more: Partial<PolicySubject> = {}): PolicySubject {
  return { kind: "tool", publicName: server === null ? name : `${server}__${name}`, originName: name, server, ...more };
}

describe("rules on names", () => {
  it("[spine-17c] without rules all is allowed, and no rule is named", () => {
    expect(policy({}).decide(tool("files", "read"), owner)).toEqual({ verdict: "allow", rule: null });
  });

  it("[spine-17c] a hub deny matches the public name and is named", () => {
    const decision = policy({ deny: ["x", "files__write_*"] }).decide(tool("files", "write_file"), owner);
    expect(decision).toEqual({
      verdict: "deny",
      rule: { level: "hub", list: "deny", pattern: "files__write_*", where: "hub.json" },
    });
  });

  it("[spine-17c] hub rules do not match a server's own name", () => {
    expect(policy({ deny: ["write_*"] }).decide(tool("files", "write_file"), owner).verdict).toBe("allow");
    expect(policy({ deny: ["write_*"] }).decide(tool(null, "write_file"), owner).verdict).toBe("deny");
  });

  it("[spine-17c] server rules match the server's own name or the public one, on that server only", () => {
    for (const pattern of ["delete_*", "github__delete_*"]) {
      const rules = policy({}, { github: { rules: { deny: [pattern] } }, files: {} });
      expect(rules.decide(tool("github", "delete_repo"), owner)).toMatchObject({
        verdict: "deny",
        rule: { level: "server", list: "deny", pattern, where: "servers.github" },
      });
      expect(rules.decide(tool("files", "delete_file"), owner).verdict).toBe("allow");
    }
  });

  it("[spine-17c] deny beats allow in one level", () => {
    const both = policy({ allow: ["*"], deny: ["a__x"] });
    expect(both.decide(tool("a", "x"), owner).verdict).toBe("deny");
    expect(both.decide(tool("a", "y"), owner)).toMatchObject({
      verdict: "allow",
      rule: { list: "allow", pattern: "*" },
    });
  });

  it("[spine-17c] an allow list that is there and does not match denies; an empty one denies all", () => {
    const listed = policy({ allow: ["a__*", "b__*"] });
    expect(listed.decide(tool("c", "x"), owner)).toEqual({
      verdict: "deny",
      rule: { level: "hub", list: "allow", pattern: "a__*, b__*", where: "hub.json" },
    });
    expect(policy({ allow: [] }).decide(tool("c", "x"), owner).verdict).toBe("deny");
  });

  it("[spine-17c] a server narrows the hub and never widens it", () => {
    const rules = policy(
      { allow: ["a__read"], deny: ["b__*"] },
      { a: { rules: { allow: ["*"] } }, b: { rules: { allow: ["*"] } } },
    );
    expect(rules.decide(tool("a", "read"), owner)).toMatchObject({ verdict: "allow", rule: { level: "server" } });
    expect(rules.decide(tool("a", "write"), owner)).toMatchObject({ verdict: "deny", rule: { level: "hub" } });
    expect(rules.decide(tool("b", "read"), owner)).toMatchObject({ verdict: "deny", rule: { level: "hub" } });
    const narrower = policy({ allow: ["*"] }, { a: { rules: { allow: ["read"] } } });
    expect(narrower.decide(tool("a", "write"), owner)).toMatchObject({
      verdict: "deny",
      rule: { level: "server", list: "allow", pattern: "read" },
    });
  });

  it("[spine-17c] deny holds for resources and prompts too, allow for tools only", () => {
    const rules = policy({ allow: ["a__read"], deny: ["file:///secret/*", "a__evil"] });
    const resource = (uri: string): PolicySubject => ({
      kind: "resource",
      publicName: uri,
      originName: uri,
      server: "a",
    });
    expect(rules.decide(resource("file:///open/x"), owner).verdict).toBe("allow");
    expect(rules.decide(resource("file:///secret/x"), owner).verdict).toBe("deny");
    expect(rules.decide(tool("a", "evil", { kind: "prompt" }), owner).verdict).toBe("deny");
    expect(rules.decide(tool("a", "greet", { kind: "prompt" }), owner).verdict).toBe("allow");
  });
});

describe("roles and owner", () => {
  const rules = policy({}, { open: {}, closed: { roles: ["reviewer", "ops"] }, nobody: { roles: [] } });

  it("[spine-17c] a role sees servers that name it or name none", () => {
    const reviewer = { owner: false, role: "reviewer" };
    expect(rules.decide(tool("open", "x"), reviewer).verdict).toBe("allow");
    expect(rules.decide(tool("closed", "x"), reviewer).verdict).toBe("allow");
    expect(rules.decide(tool(null, "local"), reviewer).verdict).toBe("allow");
    expect(rules.decide(tool("nobody", "x"), reviewer)).toMatchObject({ verdict: "deny", rule: { list: "roles" } });
  });

  it("[spine-17c] an unknown role sees nothing, not even in-process tools", () => {
    for (const who of [
      { owner: false, role: "stranger" },
      { owner: true, role: "stranger" },
    ]) {
      for (const subject of [tool("open", "x"), tool("closed", "x"), tool(null, "local")]) {
        expect(rules.decide(subject, who)).toMatchObject({
          verdict: "deny",
          rule: { level: "role", pattern: "stranger" },
        });
      }
    }
  });

  it("[spine-17c] without a role the owner sees all, others what names no roles", () => {
    expect(rules.decide(tool("closed", "x"), owner).verdict).toBe("allow");
    expect(rules.decide(tool("open", "x"), guest).verdict).toBe("allow");
    expect(rules.decide(tool("closed", "x"), guest)).toEqual({
      verdict: "deny",
      rule: { level: "server", list: "roles", pattern: "reviewer, ops", where: "servers.closed" },
    });
  });

  it("[spine-17c] a tool for the owner only is denied to others", () => {
    const secret = tool(null, "wipe", { ownerOnly: true });
    expect(rules.decide(secret, owner).verdict).toBe("allow");
    expect(rules.decide(secret, guest)).toMatchObject({ verdict: "deny", rule: { level: "tool", list: "ownerOnly" } });
    expect(rules.decide(secret, { owner: false, role: "ops" }).verdict).toBe("deny");
  });
});
