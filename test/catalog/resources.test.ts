import { describe, expect, it } from "vitest";
import { Catalog } from "../../src/catalog/catalog.ts";
import { UriTemplate } from "../../src/catalog/uri-template.ts";
import type { Definitions } from "../../src/model/source.ts";
import { FakeSource, tools } from "./fake-source.ts";

const resources = (...uris: string[]): Partial<Definitions> => ({ resources: uris.map((uri) => ({ uri, name: uri })) });
const templates = (...uris: string[]): Partial<Definitions> => ({
  templates: uris.map((uriTemplate) => ({ uriTemplate, name: "t" })),
});

function uris(catalog: Catalog): string[] {
  return catalog.snapshot().resources.map((resource) => resource.name);
}

describe("public URIs", () => {
  it("[spine-14b] stay as they are unless two servers share one; the smaller id keeps it", () => {
    const catalog = new Catalog({ servers: [{ id: "b @1" }, { id: "a" }] });
    catalog.addSource(new FakeSource("b @1", resources("file:///x", "file:///only-b")));
    expect(uris(catalog)).toEqual(["file:///x", "file:///only-b"]);
    catalog.addSource(new FakeSource("a", resources("file:///x")));
    expect(uris(catalog)).toEqual(["toolcrib://servers/b%20%401/file:///x", "file:///only-b", "file:///x"]);
    expect(catalog.findResource("file:///x")).toMatchObject({ source: "a", uri: "file:///x" });
    expect(catalog.findResource("toolcrib://servers/b%20%401/file:///x")).toMatchObject({
      source: "b @1",
      uri: "file:///x",
    });
    expect(catalog.publicUri("b @1", "file:///x")).toBe("toolcrib://servers/b%20%401/file:///x");
    expect(catalog.publicUri("a", "file:///x")).toBe("file:///x");
  });

  it("[spine-14b] end up the same in whatever order servers come, and stay when the owner goes down", () => {
    const [first, second] = [
      ["a", "b"],
      ["b", "a"],
    ].map((order) => {
      const catalog = new Catalog({ servers: [{ id: "a" }, { id: "b" }] });
      const sources = new Map(order.map((id) => [id, new FakeSource(id)]));
      catalog.setSources([...sources.values()]);
      for (const source of sources.values()) {
        source.set(resources("file:///x"));
        catalog.snapshot();
      }
      return { catalog, a: sources.get("a") };
    });
    const expected = ["file:///x", "toolcrib://servers/b/file:///x"];
    expect(uris(first?.catalog ?? new Catalog({ servers: [] }))).toEqual(expected);
    if (second === undefined) throw new Error("no second order");
    expect(uris(second.catalog)).toEqual(expected);
    second.a?.set({});
    expect(uris(second.catalog)).toEqual(["toolcrib://servers/b/file:///x"]);
    // Up again without the resource: now it is free.
    second.a?.set(tools("t"));
    expect(uris(second.catalog)).toEqual(["file:///x"]);
    second.a?.set(resources("file:///x"));
    second.catalog.removeSource("a");
    expect(uris(second.catalog)).toEqual(["file:///x"]);
  });

  it("[spine-14b] a server with bare names keeps its URIs before others do", () => {
    const catalog = new Catalog({ servers: [{ id: "a" }, { id: "z", toolPrefix: "" }] });
    catalog.setSources([new FakeSource("a", resources("file:///x")), new FakeSource("z", resources("file:///x"))]);
    expect(uris(catalog)).toEqual(["toolcrib://servers/a/file:///x", "file:///x"]);
  });

  it("no server can offer something under our own scheme", () => {
    const catalog = new Catalog({ servers: [{ id: "a", toolPrefix: "" }] });
    catalog.addSource(new FakeSource("a", resources("toolcrib://results/1", "TOOLCRIB://servers/b/x")));
    expect(uris(catalog)).toEqual([
      "toolcrib://servers/a/toolcrib://results/1",
      "toolcrib://servers/a/TOOLCRIB://servers/b/x",
    ]);
    expect(catalog.findResource("toolcrib://results/1")).toBeUndefined();
    expect(catalog.publicUri("a", "toolcrib://results/2")).toBe("toolcrib://servers/a/toolcrib://results/2");
  });
});

describe("[gate-03] URIs that their server does not list", () => {
  const two = (): Catalog => {
    const catalog = new Catalog({ servers: [{ id: "a" }, { id: "b @1" }] });
    catalog.setSources([
      new FakeSource("a", { ...resources("x://listed"), ...templates("t://{id}", "u://{+any}") }),
      new FakeSource("b @1", { ...resources("u://only-b"), ...templates("u://deep/{id}", "v://{id}") }),
      new FakeSource("local", tools("t"), "local"),
    ]);
    return catalog;
  };

  it.each([
    ["b @1", "free://1", "free://1"],
    ["b @1", "x://listed", "toolcrib://servers/b%20%401/x://listed"],
    ["b @1", "t://1", "toolcrib://servers/b%20%401/t://1"],
    ["b @1", "v://1", "v://1"],
    ["b @1", "u://other", "toolcrib://servers/b%20%401/u://other"],
    ["a", "u://other", "u://other"],
    ["a", "v://1", "toolcrib://servers/a/v://1"],
    // Its own template fits, but the other server's would be asked.
    ["a", "u://deep/1", "toolcrib://servers/a/u://deep/1"],
    ["a", "u://only-b", "toolcrib://servers/a/u://only-b"],
    ["a", "ToolCrib:x", "toolcrib://servers/a/ToolCrib:x"],
  ])("of %s: %s is public as %s, which leads back to it", (source, uri, expected) => {
    const catalog = two();
    expect(catalog.publicUri(source, uri)).toBe(expected);
    const route = catalog.findResource(expected);
    if (expected === uri && route === undefined) expect(uri).toBe("free://1");
    else expect(route).toMatchObject({ source, uri });
  });

  it("have a route in the form that names the server, with what rules need", () => {
    expect(two().findResource("toolcrib://servers/b%20%401/free://1")).toEqual({
      source: "b @1",
      uri: "free://1",
      capability: {
        kind: "resource",
        name: "toolcrib://servers/b%20%401/free://1",
        origin: { source: "b @1", name: "free://1" },
        definition: { uri: "free://1", name: "free://1" },
        fingerprint: "",
      },
    });
  });

  it("take what is listed under its own name", () => {
    const capability = { kind: "resource", name: "x://listed", fingerprint: expect.stringMatching(/./) };
    expect(two().findResource("toolcrib://servers/a/x://listed")).toMatchObject({ uri: "x://listed", capability });
  });

  it.each([
    "free://1",
    "toolcrib://servers/c/free://1",
    "toolcrib://servers/local/free://1",
    "toolcrib://servers/b @1/free://1",
    "toolcrib://servers/%61/free://1",
    "toolcrib://servers/%zz/free://1",
    "toolcrib://servers//free://1",
    "toolcrib://servers/a",
    "TOOLCRIB://servers/a/free://1",
    // The public form of this one is t://1.
    "toolcrib://servers/a/t://1",
  ])("%s leads nowhere", (uri) => {
    expect(two().findResource(uri)).toBeUndefined();
  });
});

describe("templates", () => {
  it("route a URI to the server whose template fits, the more specific one first", () => {
    const catalog = new Catalog({ servers: [{ id: "a" }, { id: "b" }] });
    catalog.addSource(new FakeSource("a", { ...templates("demo://{+any}"), ...resources("demo://listed") }));
    catalog.addSource(new FakeSource("b", templates("demo://res/{id}")));
    expect(catalog.findResource("demo://listed")).toMatchObject({ source: "a", capability: { kind: "resource" } });
    expect(catalog.findResource("demo://res/7")).toMatchObject({
      source: "b",
      uri: "demo://res/7",
      capability: { kind: "template" },
    });
    expect(catalog.findResource("demo://res/7/8")).toMatchObject({ source: "a" });
    expect(catalog.findResource("file:///x")).toBeUndefined();
  });

  it("that two servers share are told apart, and the URI is mapped back", () => {
    const catalog = new Catalog({ servers: [{ id: "a" }, { id: "b" }] });
    catalog.setSources([
      new FakeSource("a", templates("file:///{+path}")),
      new FakeSource("b", templates("file:///{+path}")),
    ]);
    expect(catalog.snapshot().templates.map((one) => one.name)).toEqual([
      "file:///{+path}",
      "toolcrib://servers/b/file:///{+path}",
    ]);
    expect(catalog.findResource("file:///x/y")).toMatchObject({ source: "a", uri: "file:///x/y" });
    expect(catalog.findResource("toolcrib://servers/b/file:///x/y")).toMatchObject({ source: "b", uri: "file:///x/y" });
    expect(catalog.publicUri("b", "file:///x/y")).toBe("toolcrib://servers/b/file:///x/y");
    expect(catalog.publicUri("a", "file:///x/y")).toBe("file:///x/y");
    expect(catalog.publicUri("a", "other://x")).toBe("other://x");
  });
});

describe("UriTemplate", () => {
  it.each([
    ["demo://a/{id}", "demo://a/1", true],
    ["demo://a/{id}", "demo://a/", false],
    ["demo://a/{id}", "demo://a/1/2", false],
    ["demo://a/{id}", "demo://b/1", false],
    ["demo://a/{id}/x", "demo://a/1/x", true],
    ["demo://a/{id}/x", "demo://a/1/y", false],
    ["{scheme}:{+rest}", "db:table/7?x#y", true],
    ["demo://{+path}/end", "demo://a/end/b/end", true],
    ["demo://a{?q,page}", "demo://a?q=1&page=2", true],
    ["demo://a{?q}", "demo://a", true],
    ["demo://a{?q}", "demo://ab", false],
    ["demo://a?x=1{&q*}", "demo://a?x=1&q=2", true],
    ["demo://a{#frag}", "demo://a#b/c", true],
    ["demo://a{/one}", "demo://a/b", true],
    ["demo://a{/one}", "demo://a/b/c", false],
    ["demo://a{/many*}", "demo://a/b/c", true],
    ["demo://a{.ext}", "demo://a.json", true],
    ["demo://a{;p}", "demo://a;p=1", true],
    ["demo://a/{name:3}", "demo://a/abc", true],
    ["demo://plain", "demo://plain", true],
    ["demo://plain", "demo://plain2", false],
    ["x{a}{b}", "x1", false],
    ["x{a}{b}", "x12", true],
    ["demo://(.*)/{a}", "demo://xx/1", false],
  ])("%s on %s: %s", (template, uri, expected) => {
    expect(UriTemplate.parse(template)?.matches(uri)).toBe(expected);
  });

  it("refuses what is no template", () => {
    for (const text of ["a{", "a}", "a{}", "a{=x}", "{a b}", "{a,}", "{{a}}"])
      expect(UriTemplate.parse(text)).toBeUndefined();
  });

  it("takes bounded time on what is made to hurt", () => {
    const template = UriTemplate.parse(`x:${"{+a}".repeat(30)}!`);
    expect(template?.matches(`x:${"a".repeat(8000)}`)).toBe(false);
    expect(UriTemplate.parse("{a}".repeat(100_000))).toBeUndefined();
    expect(UriTemplate.parse("x:{+a}")?.matches(`x:${"a".repeat(1_000_000)}`)).toBe(false);
  });
});
