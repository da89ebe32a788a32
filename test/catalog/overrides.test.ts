import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Catalog } from "../../src/catalog/catalog.ts";
import {
  originalArguments,
  shapeDefinition,
  shapedResult,
  shapeTool,
  shapeTools,
} from "../../src/catalog/overrides.ts";
import type { ToolCapability } from "../../src/model/capability.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { ToolDefinition } from "../../src/model/protocol.ts";
import { ToolOverrideSchema, type ToolOverride } from "../../src/model/server-spec.ts";
import { compileSchema } from "../../src/tools/validator.ts";
import { FakeSource, tool } from "./fake-source.ts";

const PLACE = { level: "server", where: "a test" } as const;
const noSecrets = async (text: string): Promise<string> => text;

const CREATE_ISSUE: ToolDefinition = {
  name: "create_issue",
  title: "Create",
  description: "Creates an issue.",
  inputSchema: {
    type: "object",
    properties: {
      repo: { type: "string", description: "owner/name" },
      draft: { type: "boolean" },
      body: { type: "string" },
      labels: { type: "array", items: { type: "string" } },
    },
    required: ["repo", "draft", "body"],
    additionalProperties: true,
  },
  annotations: { readOnlyHint: true, openWorldHint: true },
};

function capability(definition: ToolDefinition, name = `hub__${definition.name}`): ToolCapability {
  return { kind: "tool", name, origin: { source: "hub", name: definition.name }, definition, fingerprint: "f" };
}

function shaped(definition: ToolDefinition, override: ToolOverride): ToolCapability {
  return shapeTool(capability(definition), override, PLACE, { name: `hub__${definition.name}` });
}

async function sent(override: ToolOverride, args: JsonObject): Promise<unknown> {
  return originalArguments(shaped(CREATE_ISSUE, override), args, async (text) => text.replace("${REPO}", "acme/web"));
}

describe("an overridden definition", () => {
  const override: ToolOverride = {
    title: "Report",
    description: "Reports a bug of the web site.",
    annotations: { readOnlyHint: false },
    parameters: { repo: { fixed: "acme/web" }, draft: { default: true }, body: { description: "What went wrong." } },
  };

  it("[shape-05a] has no fixed parameter, a default that is no longer required, and the texts and hints of the override", () => {
    const { definition, misfit } = shapeDefinition(CREATE_ISSUE, override);
    expect(misfit).toBeUndefined();
    expect(definition).toEqual({
      name: "create_issue",
      title: "Report",
      description: "Reports a bug of the web site.",
      inputSchema: {
        type: "object",
        properties: {
          draft: { type: "boolean", default: true },
          body: { type: "string", description: "What went wrong." },
          labels: { type: "array", items: { type: "string" } },
        },
        required: ["body"],
        additionalProperties: true,
      },
      annotations: { readOnlyHint: false, openWorldHint: true },
    });
    expect(CREATE_ISSUE.inputSchema["required"]).toEqual(["repo", "draft", "body"]);
  });

  it("[shape-05a] finds parameters behind a reference and in parts of the schema", () => {
    const { $defs, ...bare } = {
      $defs: { Args: { type: "object", properties: { repo: { type: "string" } }, required: ["repo"] } },
      $ref: "#/$defs/Args",
    };
    const behind = shapeDefinition(tool("a", { inputSchema: { $defs, ...bare } }), {
      parameters: { repo: { fixed: "x" } },
    });
    expect(behind).toMatchObject({ misfit: undefined, definition: { inputSchema: { properties: {} } } });
    expect(behind.definition.inputSchema).not.toHaveProperty("required");
    const parts = { allOf: [{ properties: { repo: { type: "string" } }, required: ["repo", "org"] }] };
    const inParts = shapeDefinition(tool("a", { inputSchema: { type: "object", ...parts } }), {
      parameters: { repo: { fixed: "x" } },
    });
    expect(inParts.misfit).toBeUndefined();
    expect(inParts.definition.inputSchema).toEqual({ type: "object", allOf: [{ properties: {}, required: ["org"] }] });
  });

  it.each([
    [{ owner: { fixed: "acme" } }, 'it has no parameter "owner"'],
    [{ owner: { description: "Who" } }, 'it has no parameter "owner"'],
    [{ repo: { fixed: 7 } }, 'its parameter "repo" does not take the value that is set'],
    [{ draft: { default: "yes" } }, 'its parameter "draft" does not take the value that is set'],
    [{ labels: { fixed: ["bug"] } }, undefined],
    [{ repo: { fixed: "${REPO}" } }, undefined],
  ])("[shape-05f] does not fit where the server's says otherwise: %j", (parameters, misfit) => {
    expect(shapeDefinition(CREATE_ISSUE, { parameters }).misfit).toBe(misfit);
  });

  it.each([
    ["of an enumeration", { enum: ["a", "b"] }, "c"],
    ["that is constant", { const: 1 }, 2],
    ["of a range", { type: "integer", maximum: 10 }, 11],
    ["of several types", { type: ["string", "null"] }, false],
    ["of alternatives", { anyOf: [{ type: "string" }, { type: "null" }] }, 5],
    ["behind a reference", { $ref: "#/$defs/Name" }, 5],
  ])("[shape-05f] knows a value that is not one %s", (_what, parameter, wrong) => {
    const inputSchema = { type: "object", $defs: { Name: { type: "string" } }, properties: { p: parameter } };
    const fit = (fixed: unknown): string | undefined =>
      shapeDefinition(tool("a", { inputSchema }), { parameters: { p: { fixed } } }).misfit;
    expect(fit(wrong)).toMatch(/does not take/);
  });

  it("[shape-05a] is refused as an entry of the config if it both fixes a parameter and describes it", () => {
    expect(ToolOverrideSchema.safeParse({ parameters: { a: { fixed: 1, default: 2 } } }).success).toBe(false);
    expect(ToolOverrideSchema.safeParse({ name: "toolcrib_search" }).success).toBe(false);
    expect(ToolOverrideSchema.safeParse({ output: { drop: ["a..b"] } }).success).toBe(false);
    expect(ToolOverrideSchema.safeParse({ output: { drop: ["a.b[*].c", "[*].d"] } }).success).toBe(true);
  });
});

describe("the arguments of an overridden tool", () => {
  it("[shape-05b] are those of the caller with what is fixed, and with defaults for what is absent", async () => {
    const parameters = { repo: { fixed: "acme/web" }, draft: { default: true } };
    expect(await sent({ parameters }, { body: "x" })).toEqual({ repo: "acme/web", draft: true, body: "x" });
    expect(await sent({ parameters }, { body: "x", draft: false })).toEqual({
      ...{ repo: "acme/web", draft: false, body: "x" },
    });
    expect(await sent({ parameters: { repo: { fixed: null } } }, {})).toEqual({ repo: null });
  });

  it("[shape-05b] cannot name a fixed parameter, whatever additional properties the schema allows", async () => {
    const parameters = { repo: { fixed: "acme/web" } };
    await expect(sent({ parameters }, { repo: "evil/repo" })).rejects.toMatchObject({
      code: "invalid_arguments",
      message: 'hub__create_issue has no argument "repo".',
    });
    await expect(sent({ parameters }, { repo: undefined })).rejects.toThrow(/no argument/);
  });

  it("[shape-05b] cannot name it in other case, which some servers take for it", async () => {
    const parameters = { repo: { fixed: "acme/web" } };
    for (const twin of ["Repo", "REPO", "re_po"]) {
      await expect(sent({ parameters }, { [twin]: "evil/x" })).rejects.toThrow(`has no argument "${twin}"`);
    }
  });

  it("[shape-05c] have the values of references, deep in what is fixed too", async () => {
    const parameters = { repo: { fixed: "${REPO}" }, labels: { fixed: ["for ${REPO}", "$${REPO}"] } };
    const seen: string[] = [];
    const found = await originalArguments(shaped(CREATE_ISSUE, { parameters }), { body: "x" }, async (text) => {
      seen.push(text);
      return `<${text}>`;
    });
    expect(found).toEqual({ repo: "<${REPO}>", labels: ["<for ${REPO}>", "<$${REPO}>"], body: "x" });
    expect(seen.toSorted()).toEqual(["$${REPO}", "${REPO}", "for ${REPO}"]);
  });
});

const NAMES = ["a", "b", "c", "d"] as const;

/** What can be said of an object by the names of its properties. */
const constraints = fc.record(
  {
    required: fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 3 }),
    dependentRequired: fc.dictionary(
      fc.constantFrom(...NAMES),
      fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 2 }),
      { maxKeys: 2 },
    ),
    minProperties: fc.integer({ min: 0, max: 3 }),
    maxProperties: fc.integer({ min: 4, max: 6 }),
  },
  { requiredKeys: [] },
);

const schemas = fc.record(
  {
    own: constraints,
    anyOf: fc.array(constraints, { minLength: 1, maxLength: 2 }),
    oneOf: fc.array(constraints, { minLength: 1, maxLength: 2 }),
    not: constraints,
    if: constraints,
    then_: constraints,
    dependentSchemas: fc.dictionary(fc.constantFrom(...NAMES), constraints, { maxKeys: 1 }),
    additionalProperties: fc.boolean(),
  },
  { requiredKeys: ["own"] },
);

describe("[shape-07a] what a server gets", () => {
  const values = { a: "fixed", b: 7, c: true, d: ["x"] } as const;
  const types = { a: "string", b: "number", c: "boolean", d: "array" } as const;

  it("is what it gets from a caller who filled in the original form, and no other form is accepted", async () => {
    await fc.assert(
      fc.asyncProperty(
        schemas,
        fc.uniqueArray(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 }),
        fc.uniqueArray(fc.constantFrom(...NAMES, "other"), { maxLength: 5 }),
        async ({ own, then_, ...rest }, fixed, given) => {
          const properties = Object.fromEntries(NAMES.map((name) => [name, { type: types[name] }]));
          // JSON Schema's word, which the linter takes for a promise's.
          const consequence = then_ === undefined ? [] : [["then", then_] as const];
          const inputSchema: JsonObject = {
            ...{ type: "object", properties, ...own, ...rest },
            ...Object.fromEntries(consequence),
          };
          const parameters = Object.fromEntries(fixed.map((name) => [name, { fixed: values[name] }]));
          const overridden = shaped(tool("t", { inputSchema }), { parameters });
          const args: JsonObject = Object.fromEntries(
            given
              .filter((name) => !(fixed as string[]).includes(name))
              .map((name) => [name, name === "other" ? 1 : values[name]]),
          );
          const original = { ...args, ...Object.fromEntries(fixed.map((name) => [name, values[name]])) };
          expect(await originalArguments(overridden, args, noSecrets)).toEqual(original);
          expect(overridden.shape?.layers[0]?.misfit).toBeUndefined();
          const accepts = compileSchema(overridden.definition.inputSchema)(args);
          expect(accepts).toBe(compileSchema(inputSchema)(original));
          for (const name of fixed) {
            expect(() => originalArguments(overridden, { ...args, [name]: "mine" }, noSecrets)).toThrow(/no argument/);
            expect(overridden.definition.inputSchema["properties"]).not.toHaveProperty(name);
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  it("has the defaults where the caller left them out, and the caller's values where not", async () => {
    await fc.assert(
      fc.asyncProperty(
        constraints,
        fc.uniqueArray(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 }),
        fc.dictionary(fc.constantFrom(...NAMES), fc.constant(null)),
        async (own, preset, given) => {
          const properties = Object.fromEntries(NAMES.map((name) => [name, {}]));
          const inputSchema: JsonObject = { type: "object", properties, required: own.required };
          const parameters = Object.fromEntries(preset.map((name) => [name, { default: values[name] }]));
          const overridden = shaped(tool("t", { inputSchema }), { parameters });
          const expected = { ...Object.fromEntries(preset.map((name) => [name, values[name]])), ...given };
          const found = await originalArguments(overridden, { ...given }, noSecrets);
          expect(found).toEqual(expected);
          expect(compileSchema(overridden.definition.inputSchema)(given)).toBe(compileSchema(inputSchema)(expected));
        },
      ),
      { numRuns: 200 },
    );
  });

  it("has passed a role's override and then the server's", async () => {
    const base = shaped(CREATE_ISSUE, { parameters: { repo: { fixed: "acme/web" }, draft: { default: true } } });
    const layers = new Map([
      [
        base.name,
        [
          { override: { parameters: { body: { fixed: "by role" } } }, level: "role", where: "r" },
          { override: { name: "report", parameters: { body: { default: "by view" } } }, level: "session", where: "v" },
        ] as const,
      ],
    ]);
    const [tool] = shapeTools([base], layers).list;
    if (tool === undefined) throw new Error("no tool");
    expect(tool).toMatchObject({ name: "report", shape: { formerNames: ["hub__create_issue"], isRenamed: true } });
    expect(tool.shape?.layers.map(({ misfit }) => misfit)).toEqual([undefined, undefined, undefined]);
    expect(await originalArguments(tool, { labels: [] }, noSecrets)).toEqual({
      ...{ repo: "acme/web", draft: true, body: "by role", labels: [] },
    });
    for (const name of ["repo", "body"])
      expect(() => originalArguments(tool, { [name]: "mine" }, noSecrets)).toThrow(/no argument/);
    expect(tool.shape?.original.definition).toBe(CREATE_ISSUE);
  });
});

describe("[shape-05d] the result of a tool whose output drops fields", () => {
  const drop = ["items[*].body", "debug", "user.email"];
  const structured = {
    items: [{ id: 1, body: "long" }, { id: 2, body: "longer" }, "odd"],
    debug: { trace: "x" },
    user: { name: "a", email: "a@b" },
  };
  const left = { items: [{ id: 1 }, { id: 2 }, "odd"], user: { name: "a" } };
  const trimmed = (result: JsonObject, paths = drop): JsonObject =>
    shapedResult(shaped(CREATE_ISSUE, { output: { drop: paths } }), { content: [], ...result });

  it("has none of them, neither as structure nor in text that repeats it, whole or in parts", () => {
    const texts = [
      JSON.stringify(structured),
      JSON.stringify(structured, null, 2),
      ...structured.items.map((item) => JSON.stringify(item)),
    ];
    const content = texts.map((text) => ({ type: "text", text }));
    const result = trimmed({ structuredContent: structured, content });
    expect(result["structuredContent"]).toEqual(left);
    expect(JSON.stringify(result)).not.toMatch(/long|trace|a@b/);
    expect(result["content"]).toEqual(
      [JSON.stringify(left), JSON.stringify(left, null, 2), '{"id":1}', '{"id":2}', '"odd"'].map((text) => ({
        type: "text",
        text,
      })),
    );
  });

  it("loses them in JSON text without structure, in resources too, and keeps everything else to the letter", () => {
    const resource = { type: "resource", resource: { uri: "a:b", text: JSON.stringify(structured) } };
    const image = { type: "image", data: "AA", mimeType: "image/png" };
    const big = '{"debug":1,"n":12345678901234567890,"e":1e5,"f":1.10}';
    const plain = ['{"debug": not json', "debug: yes", '{"n": 1.10}'];
    const content = [resource, image, { type: "text", text: big }, ...plain.map((text) => ({ type: "text", text }))];
    const result = trimmed({ content });
    expect(result["content"]).toEqual([
      { type: "resource", resource: { uri: "a:b", text: JSON.stringify(left) } },
      image,
      { type: "text", text: '{"n":12345678901234567890,"e":1e5,"f":1.10}' },
      ...plain.map((text) => ({ type: "text", text })),
    ]);
    expect(result).not.toHaveProperty("structuredContent");
  });

  it("still satisfies the output schema that callers see", () => {
    const item = { type: "object", properties: { id: {}, body: {} }, required: ["id", "body"] };
    const outputSchema = {
      type: "object",
      properties: {
        items: { type: "array", items: item },
        debug: {},
        user: { type: "object", properties: { email: {} } },
      },
      required: ["items", "debug"],
      additionalProperties: false,
    };
    const definition = { ...CREATE_ISSUE, outputSchema };
    const effective = shapeDefinition(definition, { output: { drop } }).definition.outputSchema;
    expect(effective).toMatchObject({ required: ["items"], properties: { items: { items: { required: ["id"] } } } });
    expect(compileSchema(effective ?? {})({ items: [{ id: 1 }] })).toBe(true);
    // A schema that is not followed makes no promise that the result does not keep.
    const vague = { type: "object", anyOf: [{ required: ["debug"] }] };
    expect(
      shapeDefinition({ ...CREATE_ISSUE, outputSchema: vague }, { output: { drop } }).definition,
    ).not.toHaveProperty("outputSchema");
  });

  it("takes a text that nests deep without failing", () => {
    const text = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    expect(trimmed({ structuredContent: { items: [] }, content: [{ type: "text", text }] })["content"]).toEqual([
      { type: "text", text },
    ]);
  });
});

describe("a catalog with overrides", () => {
  const source = (): FakeSource => new FakeSource("hub", { tools: [CREATE_ISSUE, tool("list"), tool("open")] });
  const catalogWith = (overrides: Record<string, ToolOverride>, from = source()): Catalog => {
    const catalog = new Catalog({ servers: [{ id: "hub", overrides }] });
    catalog.addSource(from);
    return catalog;
  };
  const names = (catalog: Catalog): string[] => catalog.snapshot().tools.map(({ name }) => name);

  it("[shape-05e] names a tool as its override does; a tool of the server that has the name gets a hash", () => {
    const catalog = catalogWith({ create_issue: { name: "report" } });
    expect(names(catalog)).toEqual(["hub__report", "hub__list", "hub__open"]);
    expect(catalog.find("hub__report")).toMatchObject({
      origin: { source: "hub", name: "create_issue" },
      shape: { original: { name: "hub__create_issue", definition: CREATE_ISSUE }, formerNames: ["hub__create_issue"] },
    });
    const clashing = catalogWith({ create_issue: { name: "open" } });
    expect(clashing.find("hub__open")?.origin.name).toBe("create_issue");
    expect(names(clashing)[2]).toMatch(/^hub__open-[0-9a-f]{10}$/);
  });

  it("[shape-05e] of a role or view gives names in the same way", () => {
    const { tools } = catalogWith({}).snapshot();
    const override = { override: { name: "hub__open" }, level: "role", where: "r" } as const;
    const { list, byName } = shapeTools(tools, new Map([["hub__create_issue", [override]]]));
    expect(byName.get("hub__open")?.origin.name).toBe("create_issue");
    expect(list[2]?.name).toMatch(/^hub__open-[0-9a-f]{10}$/);
    expect(list[1]).toBe(tools[1]);
    expect(byName.size).toBe(3);
  });

  it("[shape-05g] changes with its overrides, and only the tools that they are about", async () => {
    const catalog = catalogWith({ list: { description: "One" } });
    catalog.snapshot();
    const changes: unknown[] = [];
    catalog.on("change", ({ changed, added, removed }) => changes.push({ changed, added, removed }));
    const [issue, before] = catalog.snapshot().tools;
    catalog.configure({ servers: [{ id: "hub", overrides: { list: { description: "Two" } } }] });
    expect(catalog.snapshot().tools[0]).toBe(issue);
    expect(catalog.snapshot().tools[1]).not.toBe(before);
    await expect.poll(() => changes).toContainEqual({ changed: ["hub__list"], added: [], removed: [] });
    catalog.configure({ servers: [{ id: "hub", overrides: {} }] });
    expect(catalog.find("hub__list")).not.toHaveProperty("shape");
  });

  it("[shape-05f] warns of an override that does not fit any more, and of one for a tool that is not there", async () => {
    const from = source();
    const catalog = catalogWith(
      { create_issue: { parameters: { repo: { fixed: "a" } } }, gone: { hidden: true } },
      from,
    );
    const warnings: string[] = [];
    catalog.on("warning", ({ message }) => warnings.push(message));
    await expect.poll(() => warnings).toEqual(["hub has no tool gone, which the config overrides."]);
    from.set({ tools: [tool("create_issue", { inputSchema: { type: "object", properties: { repository: {} } } })] });
    await expect.poll(() => warnings.at(-1)).toMatch(/hub__create_issue is held.*it has no parameter "repo"/);
    const count = warnings.length;
    from.set({ tools: [tool("create_issue", { inputSchema: { type: "object", properties: { repository: {} } } })] });
    catalog.snapshot();
    expect(warnings).toHaveLength(count);
  });
});
