import { describe, expect, it } from "vitest";
import { Catalog, LayeredCatalog } from "../../src/catalog/catalog.ts";
import type { NamedServer } from "../../src/catalog/naming.ts";
import { FakeSource, tools } from "./fake-source.ts";

const HASHED = /-[0-9a-f]{10}$/;
const names = (catalog: Catalog): string[] => catalog.snapshot().tools.map(({ name }) => name);

interface Layers {
  readonly hub: Catalog;
  readonly own: Catalog;
  readonly both: LayeredCatalog;
}

function layers(hosts: readonly NamedServer[], guests: readonly NamedServer[], naming?: string): Layers {
  const hub = new Catalog({ servers: hosts, naming });
  const own = new Catalog({ servers: guests }, hub);
  return { hub, own, both: new LayeredCatalog(hub, own) };
}

describe("[agent-01d] names of what a session brings", () => {
  it("are plain where no pattern of the hub could give them, whether its server is up or not", () => {
    const { own, both } = layers([{ id: "files" }, { id: "notes__x" }], [{ id: "n@1", shownAs: "notes" }]);
    own.addSource(new FakeSource("n@1", tools("read", "x__read")));
    const [read, other = ""] = names(own);
    expect(read).toBe("notes__read");
    expect(other).toMatch(/^notes__x__read-[0-9a-f]{10}$/);
    expect(both.find(other)?.origin).toEqual({ source: "n@1", name: "x__read" });
  });

  it("get a hash all of them where a server of the hub is called the same", () => {
    const { own } = layers([{ id: "files" }], [{ id: "f@1", shownAs: "files" }]);
    own.addSource(new FakeSource("f@1", tools("read")));
    expect(names(own)).toEqual([expect.stringMatching(HASHED)]);
  });

  it("yield to what a server with bare names really has, and to nothing else of it", () => {
    const { hub, own, both } = layers([{ id: "bare", toolPrefix: "" }], [{ id: "n@1", shownAs: "notes" }]);
    own.addSource(new FakeSource("n@1", tools("read")));
    own.addSource(new FakeSource("local:1", tools("mine", "toolcrib_plan"), "local"));
    expect(names(own)).toEqual(["notes__read", "mine", "toolcrib_plan"]);
    const bare = new FakeSource("bare", tools("notes__read", "mine"));
    hub.addSource(bare);
    expect(names(own)).toEqual([expect.stringMatching(HASHED), expect.stringMatching(HASHED), "toolcrib_plan"]);
    expect(both.find("mine")?.origin.source).toBe("bare");
    bare.set(tools("other"));
    expect(names(own)).toEqual(["notes__read", "mine", "toolcrib_plan"]);
    expect(both.find("mine")?.origin.source).toBe("local:1");
  });

  it("follow the hub's template when it changes, and never change the hub's", () => {
    const { hub, own } = layers([{ id: "files" }], [{ id: "n@1", shownAs: "notes" }]);
    hub.addSource(new FakeSource("files", tools("read")));
    own.addSource(new FakeSource("n@1", tools("read")));
    const before = names(hub);
    expect(names(own)).toEqual(["notes__read"]);
    expect(names(hub)).toEqual(before);
    hub.configure({ naming: "{tool}.{server}", servers: [{ id: "files" }] });
    expect(names(own)).toEqual(["read-notes"]);
  });

  it("are told of when the hub makes them others", async () => {
    const { hub, own } = layers([], []);
    own.addSource(new FakeSource("local:1", tools("mine"), "local"));
    await Promise.resolve();
    const changes: string[][] = [];
    own.on("change", ({ added, removed }) => changes.push([...removed, ...added]));
    hub.addSource(new FakeSource("local", tools("mine"), "local"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(changes).toEqual([["mine", expect.stringMatching(HASHED)]]);
  });
});

describe("resources of what a session brings", () => {
  it("have the URI that the server gives them, unless the hub has it", () => {
    const { hub, own, both } = layers([{ id: "files" }], [{ id: "n@1" }]);
    const resource = (uri: string): { uri: string; name: string } => ({ uri, name: uri });
    own.addSource(
      new FakeSource("n@1", {
        resources: [resource("a://1"), resource("b://2")],
        templates: [{ uriTemplate: "t://{x}", name: "t" }],
      }),
    );
    expect(both.findResource("a://1")?.source).toBe("n@1");
    hub.addSource(
      new FakeSource("files", {
        resources: [resource("a://1")],
        templates: [{ uriTemplate: "b://{x}", name: "b" }],
      }),
    );
    expect(both.findResource("a://1")?.source).toBe("files");
    expect(both.findResource("b://2")?.source).toBe("files");
    for (const uri of ["a://1", "b://2", "b://unlisted"]) {
      const mapped = both.publicUri("n@1", uri);
      expect(mapped).toBe(`toolcrib://servers/n%401/${uri}`);
      expect(both.findResource(mapped)).toMatchObject({ source: "n@1", uri });
    }
    expect(both.publicUri("n@1", "c://3")).toBe("c://3");
    expect(both.publicUri("files", "a://1")).toBe("a://1");
    expect(both.findTemplate("t://{x}")?.origin.source).toBe("n@1");
    expect(both.findResource("t://z")).toMatchObject({ source: "n@1", uri: "t://z" });
  });

  it("are gone, and nobody listens, when the catalog closes", () => {
    const { hub, own } = layers([], [{ id: "n@1" }]);
    const source = new FakeSource("n@1", tools("read"));
    own.addSource(source);
    own.close();
    expect(source.listeners).toBe(0);
    const version = own.snapshot().version;
    hub.addSource(new FakeSource("local", tools("x"), "local"));
    expect(own.snapshot().version).toBe(version);
  });
});
