import { describe, expect, it } from "vitest";
import type { SessionRules } from "../../src/model/tool-rules.ts";
import { Policy, type PolicySubject, type PolicyActor } from "../../src/policy/decide.ts";

const policy = new Policy({
  hub: { deny: ["tag:secret"] },
  where: "toolcrib.json",
  servers: new Map([
    ["files", { where: "server files", tags: ["disk", "work"], replacedFor: ["bot"] }],
    ["files@bot", { where: "server files of bot", roles: ["bot"], replaces: "files", tags: ["work"] }],
    ["web", { where: "server web" }],
    ["vault", { where: "server vault", tags: ["secret"] }],
  ]),
  roles: new Map([["bot", { where: "role bot" }]]),
});

const KINDS = ["tool", "resource", "template", "prompt"] as const;

function subject(server: string | null, kind: PolicySubject["kind"] = "tool"): PolicySubject {
  return { kind, publicName: `${server}__x`, originName: "x", server };
}

function seen(rules: SessionRules, who: Partial<PolicyActor> = {}): (string | null)[] {
  const sources = [null, "files", "files@bot", "web"];
  return sources.filter((id) => policy.decide(subject(id), { owner: true, rules, ...who }).verdict !== "deny");
}

describe("[gate-05b] the part of the hub that a session asks for", () => {
  it("is the named servers, with `local` for in-process tools", () => {
    expect(seen({ servers: ["web"] })).toEqual(["web"]);
    expect(seen({ servers: ["local", "files"] })).toEqual([null, "files", "files@bot"]);
    expect(seen({ servers: [] })).toEqual([]);
    expect(seen({ servers: ["no-such"] })).toEqual([]);
  });

  it("holds a role's own server under the id of the one that it replaces", () => {
    const bot = { role: "bot", owner: false };
    expect(seen({ servers: ["files"] }, bot)).toEqual(["files@bot"]);
    expect(seen({ servers: ["files@bot"] }, bot)).toEqual(["files@bot"]);
    expect(seen({ servers: ["web"] }, bot)).toEqual(["web"]);
  });

  it("is the servers with one of the tags, and no in-process tool", () => {
    expect(seen({ tags: ["disk"] })).toEqual(["files"]);
    expect(seen({ tags: ["disk", "work"] })).toEqual(["files", "files@bot"]);
    expect(seen({ tags: [] })).toEqual([]);
    expect(seen({ servers: ["files", "web"], tags: ["work"] })).toEqual(["files", "files@bot"]);
  });

  it.each(KINDS)("holds for every kind: %s", (kind) => {
    const rules = { servers: ["files"] };
    expect(policy.decide(subject("web", kind), { owner: true, rules }).verdict).toBe("deny");
    expect(policy.decide(subject("files", kind), { owner: true, rules }).verdict).toBe("allow");
    expect(policy.decide(subject("web", kind), { owner: true, rules: { tags: ["disk"] } }).verdict).toBe("deny");
  });

  it("is named as the session's own when it is explained", () => {
    const { decision, steps } = policy.explain(subject("web"), {
      owner: true,
      rules: { servers: ["files", "mail"], tags: ["disk"] },
    });
    expect(decision).toEqual({
      verdict: "deny",
      rule: { level: "session", list: "servers", pattern: "files, mail", where: "this session" },
    });
    expect(steps).toContainEqual(
      expect.objectContaining({ verdict: "deny", rule: expect.objectContaining({ list: "tags", pattern: "disk" }) }),
    );
  });

  it("narrows only: the session's other rules and everybody else's hold on", () => {
    expect(seen({ servers: ["web", "files"], deny: ["web__*"] })).toEqual(["files", "files@bot"]);
    expect(policy.decide(subject("vault"), { owner: true, rules: { tags: ["secret"] } }).verdict).toBe("deny");
  });

  it("knows the tags of a server of which nothing else is known", () => {
    expect(policy.decide(subject("vault"), { owner: true })).toMatchObject({ verdict: "deny", rule: { list: "deny" } });
    expect(policy.decide({ ...subject("vault"), tags: [] }, { owner: true }).verdict).toBe("allow");
  });
});
