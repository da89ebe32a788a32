/** What strangers write decides how much there is to do; none of it may grow faster than its size. Ratios of one run only. */
import { describe, expect, it } from "vitest";
import { UriTemplate } from "../../src/catalog/uri-template.ts";
import { findShadowing, listedTool } from "../../src/hub/pins/shadowing.ts";
import { changesBetween } from "../../src/hub/pins/definition-diff.ts";
import type { ToolCapability } from "../../src/model/capability.ts";
import type { ToolDefinition } from "../../src/model/protocol.ts";
import { normalizeSchema, type Provider } from "../../src/schemas/normalize.ts";
import { readChallenge } from "../../src/secrets/oauth/authorization-server.ts";
import { isCredentialName } from "../../src/secrets/credential-names.ts";
import { parseSkill } from "../../src/skills/read/read-skill.ts";
import { mirroredParams } from "../../src/upstream/http/mcp-headers.ts";

/** The least of some runs: what else the machine does only adds. */
function cost(work: () => unknown): number {
  const times = Array.from({ length: 3 }, () => {
    const began = performance.now();
    work();
    return performance.now() - began;
  });
  return Math.max(Math.min(...times), 0.05);
}

/** Work on eight times as much takes about eight times as long; with the square it would be 64 times. */
function growth(work: (size: number) => () => unknown, size: number): number {
  work(size)();
  return cost(work(8 * size)) / cost(work(size));
}

const LINEAR = 24;

describe("[trust-06d] what a stranger writes", { retry: 2 }, () => {
  it.each(["anthropic", "openai", "openai-strict", "gemini"] as const)(
    "is not copied once for each reference to it, for %s",
    (provider: Provider) => {
      const uses = (count: number) => () => {
        const used = Object.fromEntries(
          Array.from({ length: count }, (_, index) => [`p${index}`, { $ref: "#/$defs/X" }]),
        );
        const X = { enum: Array.from({ length: 10_000 }, (_, index) => `e${index}`) };
        return normalizeSchema({ type: "object", properties: used, $defs: { X } }, provider);
      };
      expect(cost(uses(400)) / cost(uses(4))).toBeLessThan(20);
    },
  );

  it("is not compared at every level where lists are nested in lists", () => {
    const nested = (levels: number, last: number): unknown => {
      let value: unknown = Array.from({ length: 300 }, (_, index) => ({ a: index + last }));
      for (let level = 0; level < levels; level += 1) value = [value, {}];
      return value;
    };
    const changes = (levels: number) => changesBetween(nested(levels, 0), nested(levels, 1));
    // Each step of a path is one more time that all below it was written out.
    expect(changes(90).map(({ path }) => path.length)).toEqual([8]);
    expect(changes(2).length).toBe(300);
  });

  it("cannot make a template that takes long for every URI", () => {
    expect(UriTemplate.parse("{+a}".repeat(33))).toBeUndefined();
    const usual = UriTemplate.parse("repo://{owner}/{repo}/contents{/path*}{?ref}");
    expect([usual?.matches("repo://a/b/contents/c/d?ref=e"), usual?.cost("file:///x")]).toEqual([true, 0]);
  });

  it("is looked at for headers only as far as a schema may go", () => {
    const properties = { a: { type: "string", "x-mcp-header": "A" } };
    expect(mirroredParams({ name: "t", inputSchema: { type: "object", properties } })).toMatchObject({ ok: true });
    const deep = JSON.parse(
      `${'{"properties":{"a":'.repeat(50_000)}{}${"}}".repeat(50_000)}`,
    ) as ToolDefinition["inputSchema"];
    expect(mirroredParams({ name: "t", inputSchema: deep })).toMatchObject({ ok: false });
  });

  it("may be one long run of any character", () => {
    const tool = (description: string): ToolCapability => ({
      kind: "tool",
      name: "s__t",
      origin: { source: "s", name: "t" },
      fingerprint: "",
      definition: { name: "t", description, inputSchema: { type: "object" } },
    });
    const reads: Record<string, (size: number) => () => unknown> = {
      shadowing: (size) => () => findShadowing([listedTool(tool(`${"./:-".repeat(size)}a`))]),
      challenge: (size) => () => readChallenge(`Bearer ${"a".repeat(size)}`),
      "names of secrets": (size) => () => isCredentialName("A".repeat(size)),
      "keys of a skill": (size) => () =>
        parseSkill(Buffer.from(`---\nname: a\ndescription: b\nmetadata:\n  ${"-".repeat(size)}x: 1\n---\n`), "a"),
    };
    for (const [what, work] of Object.entries(reads)) expect([what, growth(work, 3000) < LINEAR]).toEqual([what, true]);
  });
});
