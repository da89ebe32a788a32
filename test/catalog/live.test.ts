import { describe, expect, it } from "vitest";
import { Catalog } from "../../src/catalog/catalog.ts";
import type { CatalogChange } from "../../src/catalog/snapshot.ts";
import { FakeSource, tool, tools } from "./fake-source.ts";

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const names = (catalog: Catalog): string[] => catalog.snapshot().tools.map(({ name }) => name);
const uris = (catalog: Catalog): string[] => catalog.snapshot().resources.map(({ name }) => name);

async function changesOf(catalog: Catalog, cause: () => void): Promise<CatalogChange[]> {
  await settle();
  const changes: CatalogChange[] = [];
  const stop = catalog.on("change", (change) => changes.push(change));
  cause();
  await settle();
  stop();
  return changes;
}

function filled(): Catalog {
  const catalog = new Catalog({ servers: [{ id: "a" }, { id: "b" }] });
  catalog.addSource(new FakeSource("a", tools("x", "y")));
  catalog.addSource(new FakeSource("b", tools("z")));
  return catalog;
}

describe("[gate-07a] a catalog with another configuration", () => {
  it("gives other names after another template, in one version", async () => {
    const catalog = filled();
    const servers = [{ id: "a" }, { id: "b", toolPrefix: "" }];
    const changes = await changesOf(catalog, () => catalog.configure({ naming: "{tool}.{server}", servers }));
    expect(names(catalog)).toEqual(["x-a", "y-a", "z"]);
    expect(changes).toHaveLength(1);
    expect(changes[0]?.removed).toEqual(["a__x", "a__y", "b__z"]);
  });

  it("lists servers in another order, which is a change of the list and of no tool", async () => {
    const catalog = filled();
    const before = new Set(catalog.snapshot().tools);
    const changes = await changesOf(catalog, () => catalog.configure({ servers: [{ id: "b" }, { id: "a" }] }));
    expect(names(catalog)).toEqual(["b__z", "a__x", "a__y"]);
    expect(catalog.snapshot().tools.every((each) => before.has(each))).toBe(true);
    expect(changes).toMatchObject([{ added: [], removed: [], changed: [], kinds: ["tool"] }]);
  });

  it("[gate-07c] that says the same has the same version", async () => {
    const catalog = filled();
    const before = catalog.snapshot();
    expect(await changesOf(catalog, () => catalog.configure({ servers: [{ id: "a" }, { id: "b" }] }))).toEqual([]);
    expect(catalog.snapshot()).toBe(before);
  });

  it("names tools after the configured servers alone, whoever is up", async () => {
    const catalog = new Catalog({ servers: [{ id: "b", toolPrefix: "p__" }] });
    catalog.addSource(new FakeSource("b", tools("x")));
    expect(names(catalog)).toEqual(["p__x"]);
    const both = [
      { id: "b", toolPrefix: "p__" },
      { id: "a", toolPrefix: "p__" },
    ];
    catalog.configure({ servers: both });
    expect(names(catalog)).toEqual([expect.stringMatching(/^p__x-[0-9a-f]{10}$/)]);
    expect(catalog.namingWarnings()).toHaveLength(1);
    const fresh = new Catalog({ servers: both });
    fresh.addSource(new FakeSource("b", tools("x")));
    expect(names(catalog)).toEqual(names(fresh));
  });

  it("gives a shared URI to the server that now comes first", async () => {
    const catalog = new Catalog({ servers: [{ id: "a" }, { id: "b" }] });
    for (const id of ["a", "b"]) catalog.addSource(new FakeSource(id, { resources: [{ uri: "x://1", name: id }] }));
    expect(uris(catalog)).toEqual(["x://1", "toolcrib://servers/b/x://1"]);
    catalog.configure({ servers: [{ id: "a" }, { id: "b", toolPrefix: "" }] });
    expect(uris(catalog)).toEqual(["toolcrib://servers/a/x://1", "x://1"]);
  });
});

describe("[gate-07c] a source that is replaced", () => {
  it("keeps equal capabilities, and changes what differs in one version", async () => {
    const catalog = filled();
    const [x] = catalog.snapshot().tools;
    const next = new FakeSource("a", { tools: [tool("x"), tool("y", { description: "new" }), tool("w")] });
    const changes = await changesOf(catalog, () => catalog.replaceSource(next));
    expect(changes).toMatchObject([{ added: ["a__w"], removed: [], changed: ["a__y"] }]);
    expect(catalog.snapshot().tools[0]).toBe(x);
    expect(catalog.source("a")).toBe(next);
    expect(names(catalog)).toEqual(["a__x", "a__y", "a__w", "b__z"]);
  });

  it("by one that offers the same is no change, and is the one that is listened to", async () => {
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    const [old, next] = [new FakeSource("a", tools("x")), new FakeSource("a", tools("x"))];
    catalog.addSource(old);
    const before = catalog.snapshot();
    expect(await changesOf(catalog, () => catalog.replaceSource(next))).toEqual([]);
    expect(catalog.snapshot()).toBe(before);
    expect([old.listeners, next.listeners]).toEqual([0, 1]);
    expect(await changesOf(catalog, () => old.set(tools("y")))).toEqual([]);
    expect(await changesOf(catalog, () => next.set(tools("y")))).toMatchObject([{ added: ["a__y"] }]);
  });

  it("keeps its URIs while the new one offers nothing yet", async () => {
    const catalog = new Catalog({ servers: [{ id: "a" }, { id: "b" }] });
    for (const id of ["a", "b"]) catalog.addSource(new FakeSource(id, { resources: [{ uri: "x://1", name: id }] }));
    expect(uris(catalog)).toEqual(["x://1", "toolcrib://servers/b/x://1"]);
    catalog.replaceSource(new FakeSource("a"));
    expect(uris(catalog)).toEqual(["toolcrib://servers/b/x://1"]);
  });

  it("is added if there was none", () => {
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    catalog.replaceSource(new FakeSource("a", tools("x")));
    expect(names(catalog)).toEqual(["a__x"]);
  });
});
