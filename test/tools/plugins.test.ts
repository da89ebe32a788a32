import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadPlugins } from "../../src/tools/plugins.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { session, use, useContext } from "./support.ts";

let baseDir: string;
let registry: ToolRegistry;
let warnings: string[];

beforeEach(async () => {
  baseDir = await mkdtemp(join(tmpdir(), "toolcrib-plugins-"));
  registry = new ToolRegistry();
  warnings = [];
});

afterEach(() => rm(baseDir, { recursive: true, force: true }));

function load(...paths: string[]) {
  return loadPlugins(paths, { baseDir, registry, warn: (message) => warnings.push(message) });
}

async function plugin(name: string, body: string): Promise<string> {
  const tool = `const tool = (name, more) => ({ name, description: name, parameters: { type: "object" }, execute: async () => ({ content: [] }), ...more });`;
  await writeFile(join(baseDir, name), `${tool}\n${body}\n`);
  return name;
}

function names(): string[] {
  return registry.list().map(({ name }) => name);
}

describe("the example", () => {
  const dir = join(import.meta.dirname, "../../examples/plugin");

  it("[spine-15d] brings tools that run", async () => {
    await loadPlugins(["tools.mjs"], { baseDir: dir, registry, warn: (message) => warnings.push(message) });
    const source = registry.source();
    expect(source.definitions().tools.map(({ name, title }) => [name, title])).toEqual([
      ["word_count", "Word count"],
      ["note", undefined],
    ]);
    expect(await source.run(use("word_count", { text: "one two  three" }), useContext())).toEqual({
      content: [{ type: "text", text: "3 words, 14 characters" }],
      details: { words: 3, characters: 14 },
    });
    await expect(source.run(use("word_count", {}), useContext())).rejects.toMatchObject({ code: "invalid_arguments" });
  });

  it("[spine-15d] has a factory that keeps sessions apart", async () => {
    await loadPlugins(["./tools.mjs"], { baseDir: dir, registry, warn: (message) => warnings.push(message) });
    const source = registry.source();
    const note = (id: string, text: string) =>
      source.run(use("note", { text }), useContext({ session: session({ id }) }));
    await note("a", "first");
    expect(await note("a", "second")).toMatchObject({
      content: [{ text: "first\nsecond" }],
      details: { sessionId: "a", count: 2 },
    });
    expect(await note("b", "other")).toMatchObject({ content: [{ text: "other" }] });
  });
});

describe("loading", () => {
  it("[spine-15d] takes functions, async functions and objects, in the order of the config", async () => {
    await plugin("z.mjs", `export default (api) => { api.registerTool(tool("from-z")); };`);
    await plugin(
      "a.mjs",
      `export default { name: "a", async register(api) { await null; api.registerTool(tool("from-" + this.name)); } };`,
    );
    const plugins = await load("z.mjs", "./a.mjs");
    expect(names()).toEqual(["from-z", "from-a"]);
    expect(plugins.map(({ file }) => file)).toEqual([join(baseDir, "z.mjs"), join(baseDir, "a.mjs")]);
    plugins[0]?.unregister();
    expect(names()).toEqual(["from-a"]);
  });

  it("tells a plugin the version of Toolcrib", async () => {
    await plugin("p.mjs", `export default (api) => { api.registerTool(tool("v", { description: api.version })); };`);
    await load("p.mjs");
    expect(registry.get("v")?.description).toMatch(/^\d+\.\d+\.\d+/);
  });

  it.each<[string, string, RegExp]>([
    [
      "throws",
      `export default (api) => { api.registerTool(tool("half")); throw new Error("out of luck"); };`,
      /^Plugin .*bad\.mjs: out of luck$/,
    ],
    [
      "rejects",
      `export default async (api) => { api.registerTool(tool("half")); await null; throw "out of luck"; };`,
      /bad\.mjs: out of luck$/,
    ],
    ["cannot be parsed", `export default (`, /bad\.mjs: /],
    ["exports nothing of use", `export const register = 1;`, /bad\.mjs: its default export is neither/],
    [
      "registers a bad tool",
      `export default (api) => { api.registerTool(tool("half")); api.registerTool(tool("no good")); };`,
      /bad\.mjs: The tool "no good"/,
    ],
    [
      "takes a name again",
      `export default (api) => { api.registerTool(tool("half")); api.registerTool(tool("good")); };`,
      /bad\.mjs: A tool named "good"/,
    ],
  ])("[spine-15d] a plugin that %s is named, and nothing of it or the others stays", async (_case, body, message) => {
    await plugin("good.mjs", `export default (api) => { api.registerTool(tool("good")); };`);
    await plugin("bad.mjs", body);
    const error = await load("good.mjs", "bad.mjs").then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: "invalid_config", message: expect.stringMatching(message) });
    expect((error as Error).message).not.toMatch(/\n\s+at /);
    expect(names()).toEqual([]);
  });

  it("[spine-15d] names a file that is not there", async () => {
    await expect(load("none.mjs")).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining(join(baseDir, "none.mjs")),
    });
  });

  it("[spine-15d] makes a bad optional tool a warning", async () => {
    await plugin(
      "p.mjs",
      `export default (api) => { api.registerTool(tool("no good"), { optional: true }); api.registerTool(tool("fine")); };`,
    );
    await load("p.mjs");
    expect(names()).toEqual(["fine"]);
    expect(warnings).toEqual([expect.stringMatching(/p\.mjs: an optional tool is left out: The tool "no good"/)]);
  });

  it("[spine-15d] makes a failing factory a warning that names the plugin", async () => {
    await plugin("p.mjs", `export default (api) => { api.registerTool(() => { throw new Error("not here"); }); };`);
    await load("p.mjs");
    expect(warnings).toEqual([expect.stringMatching(/plugin .*p\.mjs failed: not here/)]);
  });

  it("lets no plugin register after it was taken out", async () => {
    await plugin(
      "p.mjs",
      `export default (api) => { globalThis.lateRegister = () => api.registerTool(tool("late")); };`,
    );
    const [handle] = await load("p.mjs");
    // Set by the plugin just above.
    const { lateRegister } = globalThis as unknown as { lateRegister: () => void };
    lateRegister();
    expect(names()).toEqual(["late"]);
    handle?.unregister();
    expect(names()).toEqual([]);
    expect(lateRegister).toThrow(/no longer loaded/);
  });
});
