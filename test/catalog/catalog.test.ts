import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Catalog } from "../../src/catalog/catalog.ts";
import type { CatalogChange } from "../../src/catalog/snapshot.ts";
import type { ToolDefinition } from "../../src/model/protocol.ts";
import { FakeSource, tool, tools } from "./fake-source.ts";

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function watch(catalog: Catalog): { changes: CatalogChange[]; warnings: string[] } {
  const seen = { changes: [] as CatalogChange[], warnings: [] as string[] };
  catalog.on("change", (change) => seen.changes.push(change));
  catalog.on("warning", ({ message }) => seen.warnings.push(message));
  return seen;
}

function names(catalog: Catalog): string[] {
  return catalog.snapshot().tools.map((capability) => capability.name);
}

describe("versions and changes", () => {
  it("[spine-14a] starts empty at version 0 and tells of each version once", async () => {
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    const seen = watch(catalog);
    expect(catalog.snapshot().version).toBe(0);
    const a = new FakeSource("a", tools("x", "y"));
    catalog.addSource(a);
    expect(catalog.snapshot().version).toBe(1);
    await settle();
    expect(seen.changes).toEqual([{ version: 1, added: ["a__x", "a__y"], removed: [], changed: [], kinds: ["tool"] }]);

    a.set({ tools: [tool("x", { description: "new" }), tool("z")], prompts: [{ name: "p" }] });
    await settle();
    expect(seen.changes[1]).toEqual({
      version: 2,
      added: ["a__z", "a__p"],
      removed: ["a__y"],
      changed: ["a__x"],
      kinds: ["tool", "prompt"],
    });
  });

  it("[spine-14a] a list that is equal, in new objects with other key order, is no change", async () => {
    const a = new FakeSource("a", { tools: [{ name: "x", inputSchema: { type: "object" }, title: "X" }] });
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    catalog.addSource(a);
    const before = catalog.snapshot();
    const seen = watch(catalog);
    a.set({ tools: [{ title: "X", inputSchema: { type: "object" }, name: "x" }] });
    await settle();
    expect(catalog.snapshot()).toBe(before);
    expect(seen.changes.filter((change) => change.version > before.version)).toEqual([]);
  });

  it("[spine-14a] a burst makes one version, and reading in between is never stale", async () => {
    const a = new FakeSource("a");
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    catalog.addSource(a);
    const seen = watch(catalog);
    for (let i = 0; i < 100; i += 1) a.set(tools(`x${i}`));
    await settle();
    expect(seen.changes).toHaveLength(1);
    expect(names(catalog)).toEqual(["a__x99"]);
    a.set(tools("now"));
    expect(catalog.find("a__now")?.origin).toEqual({ source: "a", name: "now" });
    a.set(tools("later"));
    expect(catalog.snapshot().version).toBe(3);
    await settle();
    expect(seen.changes.map((change) => change.version)).toEqual([1, 2, 3]);
  });

  it("[spine-14a] the order is that of the config, then each server's own, in-process tools last", () => {
    const catalog = new Catalog({ servers: [{ id: "z" }, { id: "a" }] });
    const sources = [
      new FakeSource("local", tools("mine"), "local"),
      new FakeSource("extra", tools("e")),
      new FakeSource("a", tools("two", "one")),
      new FakeSource("z", tools("b", "a")),
    ];
    catalog.setSources(sources);
    const expected = ["z__b", "z__a", "a__two", "a__one", "extra__e", "mine"];
    expect(names(catalog)).toEqual(expected);
    sources[3]?.set({});
    sources[3]?.set(tools("b", "a"));
    expect(names(catalog)).toEqual(expected);
  });

  it("[spine-14a] a new order alone is a change too, for it is what a door lists", async () => {
    const [x, y] = [tool("x"), tool("y")];
    const a = new FakeSource("a", { tools: [x, y] });
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    catalog.addSource(a);
    await settle();
    const seen = watch(catalog);
    a.set({ tools: [y, x] });
    await settle();
    expect(seen.changes).toEqual([{ version: 2, added: [], removed: [], changed: [], kinds: ["tool"] }]);
  });

  it("[spine-14a] a snapshot never changes, and its parts are frozen", () => {
    const a = new FakeSource("a", tools("x"));
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    catalog.addSource(a);
    const before = catalog.snapshot();
    a.set(tools("y"));
    expect(catalog.find("a__x")).toBeUndefined();
    expect(before.find("a__x")?.name).toBe("a__x");
    expect(before.tools.map((one) => one.name)).toEqual(["a__x"]);
    for (const part of [before, before.tools, before.tools[0], before.tools[0]?.origin])
      expect(Object.isFrozen(part)).toBe(true);
  });

  it("definitions are the very objects that the source gave", () => {
    const definition = tool("x", {
      icons: [{ src: "data:" }],
      execution: { taskSupport: "optional" },
      unknownField: { a: 1 },
    });
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    catalog.addSource(new FakeSource("a", { tools: [definition] }));
    expect(catalog.find("a__x")?.definition).toBe(definition);
  });

  it("follows sources that come and go, and listens to none after close", async () => {
    const catalog = new Catalog({ servers: [{ id: "a" }, { id: "b" }] });
    const [a, b] = [new FakeSource("a", tools("x")), new FakeSource("b", tools("y"))];
    catalog.setSources([a, b]);
    expect(catalog.source("b")).toBe(b);
    expect(() => catalog.addSource(new FakeSource("a"))).toThrow(/already exists/);
    catalog.setSources([b]);
    expect(names(catalog)).toEqual(["b__y"]);
    expect([a.listeners, b.listeners]).toEqual([0, 1]);
    catalog.removeSource("nobody");
    const seen = watch(catalog);
    catalog.close();
    b.set(tools("z"));
    await settle();
    expect(b.listeners).toBe(0);
    expect(seen.changes).toEqual([]);
  });
});

describe("names in the catalog", () => {
  it("[spine-14b] do not depend on who is up, who came first, or what came and went", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", "__", "."), minLength: 1, maxLength: 4 });
    const server = fc.record({
      id: word.filter((text) => /^[a-z0-9]/.test(text)),
      toolPrefix: fc.option(fc.constantFrom("", "a__", "a"), { nil: undefined }),
      tools: fc.uniqueArray(word, { maxLength: 4 }),
    });
    const servers = fc.uniqueArray(server, { selector: (one) => one.id, minLength: 1, maxLength: 4 });
    const events = fc.array(fc.record({ at: fc.nat({ max: 3 }), up: fc.boolean() }), { maxLength: 12 });
    fc.assert(
      fc.property(servers, events, (all, happenings) => {
        const full = new Catalog({ servers: all });
        full.setSources(all.map((one) => new FakeSource(one.id, tools(...one.tools))));
        const expected = new Map(full.snapshot().tools.map((one) => [JSON.stringify(one.origin), one.name]));
        expect(new Set(expected.values()).size).toBe(all.flatMap((one) => one.tools).length);

        const live = new Catalog({ servers: all });
        const sources = all.map((one) => new FakeSource(one.id));
        live.setSources(sources.toReversed());
        for (const { at, up } of happenings) {
          sources[at]?.set(up ? tools(...(all[at]?.tools ?? [])) : {});
          for (const one of live.snapshot().tools) expect(one.name).toBe(expected.get(JSON.stringify(one.origin)));
        }
      }),
    );
  });

  it("[spine-14b] prompts follow the rule of tools, in a space of their own", () => {
    const catalog = new Catalog({ servers: [{ id: "a" }, { id: "b", toolPrefix: "" }] });
    catalog.addSource(new FakeSource("a", { ...tools("x"), prompts: [{ name: "x" }, { name: "ask me" }] }));
    catalog.addSource(new FakeSource("b", { prompts: [{ name: "x" }] }));
    expect(catalog.snapshot().prompts.map((prompt) => prompt.name)).toEqual(["a__x", "a__ask-me", "x"]);
    expect(catalog.findPrompt("a__ask-me")?.origin).toEqual({ source: "a", name: "ask me" });
    expect(catalog.find("a__ask-me")).toBeUndefined();
  });

  it("[spine-14b] a server's name yields when an in-process tool of that name appears, and returns after", async () => {
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    const local = new FakeSource("local", {}, "local");
    catalog.setSources([new FakeSource("a", tools("x")), local]);
    await settle();
    const seen = watch(catalog);
    local.set(tools("a__x"));
    expect(catalog.find("a__x")?.origin.source).toBe("local");
    expect(names(catalog)).toEqual([expect.stringMatching(/^a__x-[0-9a-f]{10}$/), "a__x"]);
    await expect.poll(() => seen.changes[0]).toBeDefined();
    expect(seen.changes[0]).toMatchObject({ added: [names(catalog)[0]], changed: ["a__x"], removed: [] });
    local.set({});
    expect(catalog.find("a__x")?.origin.source).toBe("a");
  });

  it("tells of servers that share a prefix", () => {
    const servers = [
      { id: "a", toolPrefix: "" },
      { id: "b", toolPrefix: "" },
    ];
    expect(new Catalog({ servers }).namingWarnings()).toEqual([expect.stringContaining("toolPrefix for b")]);
  });
});

describe("size", () => {
  /** Counts how often anything inside is read. */
  function counted(name: string, reads: { count: number }): ToolDefinition {
    return new Proxy(tool(name, { description: `The tool ${name}.` }), {
      ownKeys(target) {
        reads.count += 1;
        return Reflect.ownKeys(target);
      },
    });
  }

  it("[spine-14a] of 10,000 tools only those of the server that changed are looked at again", () => {
    const servers = Array.from({ length: 20 }, (_, i) => ({ id: `s${i}` }));
    const reads = { count: 0 };
    const list = (): ToolDefinition[] => Array.from({ length: 500 }, (_, i) => counted(`tool_${i}`, reads));
    const sources = servers.map(({ id }) => new FakeSource(id, { tools: list() }));
    const catalog = new Catalog({ servers });
    catalog.setSources(sources);
    const before = catalog.snapshot();
    expect(before.tools).toHaveLength(10_000);
    const readsPerTool = reads.count / 10_000;

    reads.count = 0;
    const kept = sources[7]?.definitions().tools ?? [];
    sources[7]?.set({ tools: [...kept.slice(1), counted("fresh", reads)] });
    const after = catalog.snapshot();
    expect(reads.count).toBe(readsPerTool);
    expect(after.version).toBe(before.version + 1);
    expect(after.find("s7__fresh")).toBeDefined();
    expect(after.find("s3__tool_9")).toBe(before.find("s3__tool_9"));
    expect(sources[3]?.reads).toBe(1);
  });
});
