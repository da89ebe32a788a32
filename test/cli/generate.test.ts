/** The client that `toolcrib generate` writes compiles under strict settings and calls a real hub. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { clientFor } from "../../src/cli/commands/generate.ts";
import { readHubRecords } from "../../src/hub/activity/hub-records.ts";
import type { ToolCapability } from "../../src/model/capability.ts";
import { typeScriptType } from "../../src/schemas/typescript-types.ts";
import { eventually } from "../support/eventually.ts";
import { isBuilt } from "../support/main-program.ts";
import { runProgram } from "../support/run-program.ts";
import { bundled, type Workspace, workspace } from "./run-cli.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

const built = isBuilt();
if (!built) console.warn("Not tested here: generated clients are compiled against dist/, which npm test builds.");

/** A folder in which `toolcrib` is installed. */
function project(place: Workspace): void {
  mkdirSync(join(place.dir, "node_modules"));
  symlinkSync(ROOT, join(place.dir, "node_modules/toolcrib"), "dir");
  writeFileSync(join(place.dir, "package.json"), JSON.stringify({ type: "module" }));
  for (const [name, module, moduleResolution] of [
    ["nodenext", "nodenext", "nodenext"],
    ["bundler", "esnext", "bundler"],
  ]) {
    const compilerOptions = {
      ...{ strict: true, noEmit: true, target: "es2023", lib: ["es2023"], module, moduleResolution },
      ...{ noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, allowImportingTsExtensions: true },
      ...{ types: ["node"], typeRoots: [join(ROOT, "node_modules/@types")], skipLibCheck: true },
    };
    writeFileSync(join(place.dir, `${name}.json`), JSON.stringify({ compilerOptions, files: ["main.ts"] }));
  }
}

async function compile(place: Workspace, how: string): Promise<string> {
  const { stdout } = await runProgram(process.execPath, [TSC, "-p", `${how}.json`], { cwd: place.dir });
  return stdout;
}

const MAIN = `
import { createHub } from "toolcrib";
import { ToolcribClient } from "toolcrib/client";
import { createTools, ToolFailure } from "./tools.ts";

const [config = "", url = "", token = ""] = process.argv.slice(2);
const hub = await createHub(config);
for (const caller of [hub, new ToolcribClient({ url, token })]) {
  const tools = createTools(caller);
  const { structured } = await tools.everything.getStructuredContent({ location: "Chicago" });
  const humidity: number = structured.humidity;
  const sum = await tools.everything.getSum({ a: 2, b: 40 });
  const graph = await tools.memory.readGraph();
  const names: string[] = graph.structured.entities.map(({ name }) => name);
  const failed = await tools.memory.addObservations({ observations: [{ entityName: "nobody", contents: [] }] }).catch(
    (error: unknown) => (error instanceof ToolFailure ? error.code : "other"),
  );
  console.log(JSON.stringify({ humidity, text: sum.text, names, failed }));
}
await hub.close();
`;

describe.skipIf(!built)("[joy-15b] toolcrib generate", () => {
  it("writes a client that compiles under strict, nodenext and bundler, and calls a hub in the process and over HTTP", async () => {
    const place = workspace();
    place.configure({ everything: bundled("everything"), memory: bundled("memory") });
    project(place);
    const wanted = ["everything__get-s*", "memory__*", "--out", "tools.ts"];
    const made = await place.run(["generate", ...wanted, "--json"]);
    expect(made.code, made.stderr).toBe(0);
    expect(made.json<{ tools: string[] }>().tools).toContain("everything__get-sum");
    const text = place.read("tools.ts");
    const printed = await place.run(["generate", ...wanted.slice(0, 2), "--json"]);
    expect(printed.json()).toEqual({ tools: made.json<{ tools: string[] }>().tools, text });
    // Again, over its own file.
    expect((await place.run(["generate", ...wanted])).code).toBe(0);
    expect(place.read("tools.ts")).toBe(text);

    place.write("main.ts", MAIN);
    for (const how of ["nodenext", "bundler"]) expect(await compile(place, how)).toBe("");
    const serving = place.start(["serve", "--port", "0"], { open: true });
    const { url, token } = await eventually(() => readHubRecords(place.home)[0], "the hub");
    const ran = await runProgram(process.execPath, ["main.ts", place.configFile, url, token], {
      cwd: place.dir,
      env: place.env(),
    });
    serving.child.kill("SIGTERM");
    await serving.finished;
    const expected = { humidity: 82, text: "The sum of 2 and 40 is 42.", names: [], failed: "tool_error" };
    const lines = ran.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { text: string });
    expect(lines, ran.stderr).toEqual([
      { ...expected, text: expect.stringContaining("42") as string },
      { ...expected, text: expect.stringContaining("42") as string },
    ]);

    place.write("main.ts", MAIN.replace('location: "Chicago"', "location: 7").replace("b: 40", "c: 40"));
    const errors = await compile(place, "nodenext");
    expect(errors).toContain("main.ts(10,");
    expect(errors).toContain("main.ts(12,");
  });

  it("compiles whatever servers call their tools and write into their schemas", async () => {
    const place = workspace();
    project(place);
    const node = { type: "object", properties: { next: { $ref: "#/$defs/a~1b" }, "*/ x": { enum: ["*/", 1, null] } } };
    const tools = [
      tool("constructor", "__proto__", { type: "object", properties: { "a-b": { type: ["string", "null"] } } }),
      tool("s", "get-it", { type: "object", $defs: { "a/b": node }, properties: { tree: { $ref: "#/$defs/a~1b" } } }),
      tool("s", "get_it", { type: "object", properties: {}, additionalProperties: false }),
      tool(
        "s",
        "9 lives",
        { type: "object", required: ["x"], properties: { x: { anyOf: [{ type: "string" }, { const: 3 }] } } },
        {
          description: "*/ }; process.exit(1); /*\u2028\n`${1}`",
          outputSchema: {
            type: "object",
            properties: { n: { type: "integer", description: "a */ b" } },
            additionalProperties: { type: "number" },
          },
        },
      ),
      tool("s", "delete", {
        type: "object",
        allOf: [{ properties: { a: { type: "array", items: { oneOf: [{ type: "number" }, { type: "boolean" }] } } } }],
      }),
      tool("s", "日本", {
        type: "object",
        properties: { t: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] } },
      }),
    ];
    place.write("main.ts", clientFor(tools));
    for (const how of ["nodenext", "bundler"]) expect(await compile(place, how)).toBe("");
  });
});

it("[sound-10a] has no hidden characters of a server in its text, and no name that sets a prototype", () => {
  const hidden = "\u202eevil\u2066\u200b\u2028";
  const text = clientFor([
    tool(
      "__proto__",
      `get${hidden}`,
      {
        type: "object",
        properties: { [`a${hidden}`]: { type: "string", description: `b${hidden}` }, b: { enum: [`c${hidden}`] } },
      },
      { description: `d${hidden}` },
    ),
  ]);
  expect(text).not.toMatch(/[\u200b\u2028\u202e\u2066]/);
  expect(text).toContain('"c\\u202eevil');
  expect(text).toContain('["__proto__"]: {');
});

const tool = (source: string, name: string, inputSchema: object, more: object = {}): ToolCapability =>
  // The parts that are looked at.
  ({
    kind: "tool",
    name: `${source}__${name}`,
    origin: { source, name },
    definition: { name, inputSchema, ...more },
  }) as unknown as ToolCapability;

describe("[joy-15b] types", () => {
  it.each<[unknown, string]>([
    [{ type: "string" }, "string"],
    [{ type: "array", items: { type: ["string", "null"] } }, "(string | null)[]"],
    [{ enum: ["a", 1] }, '"a" | 1'],
    [{ anyOf: [{ type: "string" }, {}] }, "unknown"],
    [{ type: "object", additionalProperties: { type: "number" } }, "Record<string, number>"],
    [true, "unknown"],
    [{ $ref: "https://elsewhere.example/x.json" }, "unknown"],
    [
      { type: "object", required: ["a"], properties: { a: { type: "integer" }, "b c": {} } },
      '{\n  a: number;\n  "b c"?: unknown;\n}',
    ],
  ])("%j is %s", (schema, type) => {
    expect(typeScriptType(schema, "X").type).toBe(type);
  });

  it("a schema that refers to itself or nests without end has a type", () => {
    const list = {
      $ref: "#/$defs/list",
      $defs: { list: { type: "object", properties: { rest: { $ref: "#/$defs/list" } } } },
    };
    expect(typeScriptType(list, "X")).toEqual({
      type: "XList",
      declarations: ["export type XList = {\n  rest?: XList;\n};"],
    });
    let deep: object = {};
    for (let depth = 0; depth < 5000; depth += 1) deep = { type: "array", items: deep };
    expect(typeScriptType(deep, "X").type).toMatch(/^unknown(?:\[\])+$/);
  });
});

describe("[joy-15b] files and names", () => {
  it("overwrites no file of yours, and suggests a name", async () => {
    const place = workspace();
    place.configure({ memory: bundled("memory") });
    place.write("mine.ts", "export {};\n");
    const refused = await place.run(["generate", "--out", "mine.ts"]);
    expect([refused.code, place.read("mine.ts")]).toEqual([1, "export {};\n"]);
    expect((await place.run(["generate", "memory__read_grph"])).stderr).toContain("Did you mean memory__read_graph");
  });
});
