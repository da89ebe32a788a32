import { describe, expect, it } from "vitest";
import type { Tool } from "../../src/model/tool.ts";
import { ToolRegistry, type ToolContext } from "../../src/tools/tool-registry.ts";
import { tool } from "./support.ts";

function names(registry: ToolRegistry, context?: ToolContext): string[] {
  return registry.list(context).map(({ name }) => name);
}

function changes(registry: ToolRegistry): string[] {
  const seen: string[] = [];
  registry.on("change", ({ added, removed }) => seen.push(`+${added.join(",")} -${removed.join(",")}`));
  return seen;
}

describe("registering", () => {
  it("[spine-15a] lists tools in the order of registration and tells of changes", () => {
    const registry = new ToolRegistry();
    const seen = changes(registry);
    registry.register(tool("zebra"));
    const removeApe = registry.register(tool("ape"));
    registry.register(tool("mole"));
    expect(names(registry)).toEqual(["zebra", "ape", "mole"]);
    removeApe();
    removeApe();
    expect(registry.unregister("zebra")).toBe(true);
    expect(registry.unregister("zebra")).toBe(false);
    expect(names(registry)).toEqual(["mole"]);
    expect(registry.size).toBe(1);
    expect(seen).toEqual(["+zebra -", "+ape -", "+mole -", "+ -ape", "+ -zebra"]);
  });

  it("[spine-15a] an old unregister function does not touch a later tool of the same name", () => {
    const registry = new ToolRegistry();
    const removeFirst = registry.register(tool("a"));
    removeFirst();
    const second = tool("a");
    registry.register(second);
    removeFirst();
    expect(registry.get("a")).toBe(second);
  });

  it("[spine-15a] refuses a name that is taken, by a factory too", () => {
    const registry = new ToolRegistry();
    registry.register(tool("a"));
    registry.registerFactory(() => tool("made"));
    for (const name of ["a", "made"]) {
      expect(() => registry.register(tool(name))).toThrow(
        expect.objectContaining({ code: "conflict", message: expect.stringContaining(`"${name}"`) }),
      );
    }
  });

  it.each<[string, unknown, RegExp]>([
    ["no object", null, /must be an object, found null/],
    ["no name", { description: "" }, /needs a name/],
    ["a name with a space", tool("a b"), /"a b" has a name that is not usable/],
    ["a name that begins with a digit", tool("1a"), /not usable/],
    ["a name that is too long", tool("a".repeat(65)), /not usable/],
    ["a reserved skill name", tool("skill__x"), /reserved/],
    ["a reserved name of ours", tool("toolcrib_x"), /reserved/],
    ["no description", { ...tool("a"), description: undefined }, /needs a description/],
    ["no execute", { ...tool("a"), execute: "x" }, /execute to be a function/],
    ["a label that is no string", { ...tool("a"), label: 3 }, /label/],
    ["parameters that are no object", { ...tool("a"), parameters: [] }, /"a" needs parameters/],
    [
      "parameters of another type",
      tool("a", { parameters: { type: "string" } }),
      /"a" has parameters of type "string"/,
    ],
    [
      "parameters that are no schema",
      tool("a", { parameters: { type: "object", properties: { x: { type: "text" } } } }),
      /"a" has parameters that are not a valid JSON Schema/,
    ],
    [
      "a reference that leads outside",
      tool("a", { parameters: { type: "object", properties: { x: { $ref: "https://example.com/x.json" } } } }),
      /"a" has parameters.*can't resolve reference/,
    ],
  ])("[spine-15a] refuses %s and says so", (_case, bad, message) => {
    const registry = new ToolRegistry();
    // The point is what happens to values that are no Tool.
    expect(() => registry.register(bad as Tool)).toThrow(
      expect.objectContaining({ code: "invalid_arguments", message: expect.stringMatching(message) }),
    );
    expect(registry.size).toBe(0);
  });

  it("lists tools mirrored from MCP servers without judging their schemas, and does not offer them again", () => {
    const registry = new ToolRegistry();
    registry.register(tool("mirrored", { parameters: { $ref: "https://example.com/x.json" } }), { origin: "mcp" });
    registry.register(tool("own"));
    expect(names(registry)).toEqual(["mirrored", "own"]);
    expect(
      registry
        .source()
        .definitions()
        .tools.map(({ name }) => name),
    ).toEqual(["own"]);
  });

  it("knows tools that are for the owner only", () => {
    const registry = new ToolRegistry();
    registry.register(tool("secret", { ownerOnly: true }));
    registry.registerFactory(() => tool("made", { ownerOnly: true }));
    registry.register(tool("open"));
    expect(["secret", "made", "open", "nothing"].map((name) => registry.isOwnerOnly(name))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

describe("factories", () => {
  it("[spine-15a] makes tools anew for each context, keeps them, and forgets them on request", () => {
    const registry = new ToolRegistry();
    const made: ToolContext[] = [];
    registry.registerFactory((context) => {
      made.push(context);
      return [tool("one"), tool(`for-${context.role ?? "all"}`)];
    });
    expect(names(registry)).toEqual(["one", "for-all"]);
    const alice: ToolContext = { sessionId: "alice", role: "reviewer", owner: false };
    expect(names(registry, alice)).toEqual(["one", "for-reviewer"]);
    const first = registry.get("one", alice);
    expect(registry.get("one", { ...alice })).toBe(first);
    expect(registry.get("one")).not.toBe(first);
    registry.forgetContext("alice");
    expect(registry.get("one", alice)).not.toBe(first);
    expect(made.map(({ sessionId }) => sessionId)).toEqual([undefined, "alice", "alice"]);
  });

  it("[spine-15a] keeps tools of a context without a session by the context object", () => {
    const registry = new ToolRegistry();
    registry.registerFactory(() => tool("one"));
    const context: ToolContext = { owner: true };
    expect(registry.get("one", context)).toBe(registry.get("one", context));
    expect(registry.get("one", { owner: true })).not.toBe(registry.get("one", context));
  });

  it("[spine-15a] stands in the order of registration and goes with all its tools", () => {
    const registry = new ToolRegistry();
    registry.register(tool("first"));
    const remove = registry.registerFactory(() => [tool("a"), tool("b")]);
    registry.register(tool("last"));
    expect(names(registry)).toEqual(["first", "a", "b", "last"]);
    expect(registry.unregister("a")).toBe(false);
    const seen = changes(registry);
    remove();
    expect(names(registry)).toEqual(["first", "last"]);
    expect(seen).toEqual(["+ -a,b"]);
  });

  it.each<[string, () => unknown, RegExp]>([
    [
      "throws",
      () => {
        throw new Error("no luck");
      },
      /mine failed: no luck/,
    ],
    ["is async", async () => tool("late"), /mine is async/],
    ["makes a bad tool", () => [tool("bad name"), tool("good")], /mine: The tool "bad name"/],
    ["takes a name again", () => [tool("taken"), tool("good")], /mine: the name "taken" is taken/],
  ])("[spine-15a] a factory that %s is a warning and harms nothing else", (_case, factory, message) => {
    const registry = new ToolRegistry();
    const warnings: string[] = [];
    registry.on("warning", (warning) => warnings.push(warning.message));
    const taken = tool("taken");
    registry.register(taken);
    // The point is what happens with factories that break their contract.
    registry.registerFactory(factory as () => Tool, { label: "mine" });
    expect(warnings).toEqual([expect.stringMatching(message)]);
    expect(registry.get("taken")).toBe(taken);
    expect(names(registry).filter((name) => name !== "good")).toEqual(["taken"]);
  });

  it("[whole-08a] a factory that breaks in every session is one warning for them", () => {
    const registry = new ToolRegistry();
    // The point is what happens with factories that break their contract.
    registry.registerFactory((async () => tool("late")) as unknown as () => Tool);
    const warnings: string[] = [];
    registry.on("warning", (warning) => warnings.push(warning.message));
    for (const sessionId of ["one", "two", "three"]) registry.list({ sessionId, owner: false });
    expect(warnings).toEqual([expect.stringMatching(/is async/)]);
  });
});
