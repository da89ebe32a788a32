import { describe, expect, it } from "vitest";
import { Catalog } from "../../src/catalog/catalog.ts";
import { joinSlices } from "../../src/catalog/kind-table.ts";
import type { Quarantined } from "../../src/catalog/quarantine.ts";
import type { ToolCapability } from "../../src/model/capability.ts";
import type { ToolDefinition } from "../../src/model/protocol.ts";
import type { Definitions } from "../../src/model/source.ts";
import { FakeSource, tool } from "./fake-source.ts";

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const deep = JSON.parse(`${'{"a":'.repeat(200)}1${"}".repeat(200)}`) as object;

/** What a server may really send where a definition belongs. */
const asTool = (value: unknown): ToolDefinition => value as ToolDefinition;

function catalogOf(offer: Partial<Definitions>): Catalog {
  const catalog = new Catalog({ servers: [{ id: "a" }] });
  catalog.addSource(new FakeSource("a", offer));
  return catalog;
}

describe("quarantine", () => {
  const cyclic: { name: string; inputSchema: { self?: unknown } } = { name: "x", inputSchema: {} };
  cyclic.inputSchema.self = cyclic;

  it.each<[string, unknown, RegExp]>([
    ["null", null, /null, not an object/],
    ["text", "tool", /text, not an object/],
    ["a list", [], /a list, not an object/],
    ["no name", { inputSchema: { type: "object" } }, /name is missing/],
    ["a number as name", { name: 7, inputSchema: {} }, /name is a number/],
    ["an empty name", { name: " ", inputSchema: {} }, /name is empty/],
    ["a name with terminal codes", { name: "a\u001b[2J", inputSchema: {} }, /control characters/],
    ["half a character", { name: "a\ud83d", inputSchema: {} }, /not valid Unicode/],
    ["an endless name", { name: "x".repeat(2000), inputSchema: {} }, /longer than 1024/],
    [
      "a description that is no text",
      { name: "x", inputSchema: {}, description: { a: 1 } },
      /description is an object/,
    ],
    ["annotations that are no object", { name: "x", inputSchema: {}, annotations: "yes" }, /annotations is text/],
    ["a huge definition", { name: "x", inputSchema: {}, description: "x".repeat(1024 * 1024) }, /larger than 1 MB/],
    ["a deep definition", { name: "x", inputSchema: deep }, /nested/],
    ["a definition that holds itself", cyclic, /cannot be read/],
    ["a definition that JSON cannot carry", { name: "x", inputSchema: {}, n: 1n }, /cannot be read/],
    [
      "an input schema of too many values",
      { name: "x", inputSchema: { enum: Array.from({ length: 20_000 }, () => 1) } },
      /inputSchema has more than 20000 values/,
    ],
    [
      "an output schema that is too large",
      { name: "x", inputSchema: {}, outputSchema: { description: "x".repeat(600_000) } },
      /outputSchema is larger than 512 KB/,
    ],
  ])("[spine-14c] [trust-06a] %s is set aside with a reason and sinks nothing else", (_, definition, reason) => {
    const catalog = catalogOf({ tools: [tool("before"), asTool(definition), tool("after")] });
    expect(catalog.snapshot().tools.map((one) => one.name)).toEqual(["a__before", "a__after"]);
    expect(catalog.quarantined()).toEqual([
      {
        source: "a",
        kind: "tool",
        name: expect.any(String) as string,
        reason: expect.stringMatching(reason) as string,
      },
    ]);
  });

  it.each<[string, unknown, object, unknown]>([
    ["no inputSchema", undefined, { type: "object" }, null],
    ["null as inputSchema", null, { type: "object" }, null],
    ["true as inputSchema", true, { type: "object" }, true],
    ["a schema that is a list", [], { type: "object" }, []],
    ["a schema of another type", { type: "string" }, { type: "object" }, { type: "string" }],
    [
      "a schema of several types",
      { type: ["object", "null"], properties: { a: {} } },
      { type: "object", properties: { a: {} } },
      { type: ["object", "null"], properties: { a: {} } },
    ],
    ["an empty schema", {}, { type: "object" }, {}],
    [
      "only a union",
      { anyOf: [{ required: ["a"] }] },
      { type: "object", anyOf: [{ required: ["a"] }] },
      { anyOf: [{ required: ["a"] }] },
    ],
    [
      "a list as properties",
      { type: "object", properties: [] },
      { type: "object" },
      { type: "object", properties: [] },
    ],
    [
      "properties that are not schemas",
      { type: "object", properties: { any: true, text: "string" } },
      { type: "object", properties: { any: true, text: {} } },
      { type: "object", properties: { any: true, text: "string" } },
    ],
    [
      "required that is not a list of names",
      { type: "object", required: [1, "a"] },
      { type: "object", required: ["a"] },
      { type: "object", required: [1, "a"] },
    ],
    ["true as required", { type: "object", required: true }, { type: "object" }, { type: "object", required: true }],
  ])("[whole-06a] a tool with %s is offered with an object schema", (_, inputSchema, offered, original) => {
    const given = { name: "x", inputSchema, _meta: { "example.com/kept": 1 } };
    const catalog = catalogOf({ tools: [asTool(given)] });
    expect(catalog.quarantined()).toEqual([]);
    expect(catalog.snapshot().tools[0]?.definition).toEqual({
      name: "x",
      inputSchema: offered,
      _meta: { "example.com/kept": 1, "dev.toolcrib/inputSchema": original, "toolcrib/inputSchema": original },
    });
  });

  it("[whole-06c] optional fields that clients cannot read are left out", () => {
    const inputSchema = { type: "object" };
    const given = {
      tools: [
        {
          name: "nulls",
          inputSchema,
          description: null,
          annotations: null,
          outputSchema: null,
          _meta: null,
          other: null,
        },
        {
          name: "wrong",
          inputSchema,
          icons: "i.png",
          execution: [],
          annotations: { readOnlyHint: "true", title: "T" },
        },
        { name: "output", inputSchema, outputSchema: { properties: [] } },
      ].map(asTool),
      resources: [{ uri: "file:///a", name: "a", mimeType: null, size: null } as never],
      prompts: [{ name: "p", description: null, arguments: [{ name: "a", required: null }] } as never],
    };
    const catalog = catalogOf(given);
    expect(catalog.quarantined()).toEqual([]);
    const { tools, resources, prompts } = catalog.snapshot();
    expect([...tools, ...resources, ...prompts].map(({ definition }) => definition)).toEqual([
      { name: "nulls", inputSchema, other: null },
      { name: "wrong", inputSchema, annotations: { title: "T" } },
      { name: "output", inputSchema, outputSchema: { type: "object" } },
      { uri: "file:///a", name: "a" },
      { name: "p", arguments: [{ name: "a" }] },
    ]);
  });

  it("takes what is unusual but usable", () => {
    const odd = [{ name: "weird ☃ name", inputSchema: { type: "object", properties: { format: { type: "string" } } } }];
    const catalog = catalogOf({ tools: odd.map(asTool) });
    expect(catalog.quarantined()).toEqual([]);
    expect(catalog.snapshot().tools.map((one) => one.definition)).toEqual(odd);
  });

  it("[spine-14c] holds for resources, templates and prompts too", () => {
    const catalog = catalogOf({
      resources: [
        { uri: "", name: "empty" },
        { uri: "file:///ok", name: "ok" },
      ],
      templates: [
        { uriTemplate: "file:///{", name: "broken" },
        { uriTemplate: "file:///{x}", name: "ok" },
      ],
      prompts: [
        { name: "bad", arguments: [{ name: 1 } as never] },
        { name: "ok", arguments: [{ name: "x" }] },
      ],
    });
    expect(catalog.quarantined().map(({ kind, reason }) => `${kind}: ${reason}`)).toEqual([
      "resource: uri is empty",
      "template: uriTemplate is not a URI template (RFC 6570)",
      "prompt: an argument has no name",
    ]);
    const { resources, templates, prompts } = catalog.snapshot();
    expect([resources.length, templates.length, prompts.length]).toEqual([1, 1, 1]);
  });

  it("[spine-14c] reserved names of in-process tools are refused, of servers renamed", () => {
    const catalog = new Catalog({ servers: [{ id: "a", toolPrefix: "" }] });
    catalog.addSource(new FakeSource("local", { tools: [tool("toolcrib_x"), tool("mine")] }, "local"));
    catalog.addSource(new FakeSource("a", { tools: [tool("skill__x")] }));
    expect(catalog.snapshot().tools.map((one) => one.name)).toEqual(["t-skill__x", "mine"]);
    expect(catalog.quarantined()).toEqual([
      { source: "local", kind: "tool", name: "toolcrib_x", reason: expect.stringContaining("reserved") as string },
    ]);
  });

  it("[spine-14c] is lifted when the server mends the definition", () => {
    const source = new FakeSource("a", { tools: [asTool({ name: "x", description: 7 })] });
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    catalog.addSource(source);
    expect(catalog.quarantined()).toHaveLength(1);
    source.set({ tools: [tool("x")] });
    expect(catalog.quarantined()).toEqual([]);
    expect(catalog.find("a__x")).toBeDefined();
  });
});

describe("[whole-06b] many definitions that are left out together", () => {
  it("are named with their reasons, the later ones in one warning", async () => {
    const tools = Array.from({ length: 30 }, (_, at) => asTool({ name: `x${at}`, description: 7 }));
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    const warnings: string[] = [];
    catalog.on("warning", ({ message }) => warnings.push(message));
    catalog.addSource(new FakeSource("a", { tools }));
    await settle();
    expect(warnings.slice(0, 5)).toEqual(
      Array.from({ length: 5 }, (_, at) => `The tool "x${at}" is not offered: description is a number, not text`),
    );
    expect(warnings[5]).toMatch(/^Also not offered: tool "x5" .*, tool "x24" \(.*\) and 5 more$/);
    expect(warnings[5]?.split("(description is a number, not text)")).toHaveLength(21);
    expect(warnings).toHaveLength(6);
  });
});

describe("duplicates", () => {
  it("[spine-14c] the last wins, with one warning until it is over", async () => {
    const source = new FakeSource("a", {
      tools: [tool("x", { title: "first" }), tool("y"), tool("x", { title: "last" })],
    });
    const catalog = new Catalog({ servers: [{ id: "a" }] });
    const warnings: string[] = [];
    catalog.on("warning", ({ message }) => warnings.push(message));
    catalog.addSource(source);
    await settle();
    expect(catalog.find("a__x")?.definition.title).toBe("last");
    expect(catalog.snapshot().tools.map((one) => one.name)).toEqual(["a__y", "a__x"]);
    expect(warnings).toEqual(["a lists the tool x twice; the last one is used."]);
    source.set({ tools: [tool("x"), tool("x"), tool("z")] });
    await settle();
    expect(warnings).toHaveLength(1);
    expect(catalog.quarantined()).toEqual([]);
  });
});

describe("a public name that comes out twice in spite of all", () => {
  const capability = (source: string, name: string): ToolCapability => ({
    kind: "tool",
    name,
    origin: { source, name: "own" },
    definition: tool("own"),
    fingerprint: "",
  });

  it("[spine-14b] goes to neither of two servers", () => {
    const clashes: Quarantined[] = [];
    const slices = ["a", "b"].map((id) => ({
      isLocal: false,
      capabilities: [capability(id, "same"), capability(id, id)],
    }));
    const table = joinSlices(slices, clashes);
    expect([...table.byName.keys()]).toEqual(["a", "b"]);
    expect(table.list.map((one) => one.name)).toEqual(["a", "b"]);
    expect(clashes.map((one) => one.source)).toEqual(["a", "b"]);
  });

  it("[spine-14b] stays with an in-process tool", () => {
    const clashes: Quarantined[] = [];
    const local = capability("local", "same");
    const slices = [
      { isLocal: false, capabilities: [capability("a", "same")] },
      { isLocal: true, capabilities: [local] },
    ];
    expect(joinSlices(slices, clashes).list).toEqual([local]);
    expect(clashes.map((one) => one.source)).toEqual(["a"]);
  });
});
