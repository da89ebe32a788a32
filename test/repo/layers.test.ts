import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findCycle, importsOf, packagesLoadedWith, readImportGraph } from "../support/import-graph.ts";
import { layerBreaches } from "./layers.ts";

const SOURCE = join(import.meta.dirname, "..", "..", "src");
const graph = readImportGraph(SOURCE);

describe("the source tree", () => {
  it("[spine-01a] follows the layer order", () => {
    expect(graph.size).toBeGreaterThan(20);
    expect([...graph.values()].flat().length).toBeGreaterThan(50);
    expect(layerBreaches(graph)).toEqual([]);
  });

  it("[spine-01a] has no import cycle", () => {
    expect(findCycle(graph)).toBeUndefined();
  });

  it("loads only small packages when a hub starts; readers of YAML and TOML come with the first file of theirs", () => {
    const start = ["cli/main.ts", "cli/serve/serve-command.ts", "hub/create/create-hub.ts"];
    expect(packagesLoadedWith(SOURCE, start)).toEqual(["commander", "json5", "jsonc-parser", "zod"]);
  });
});

describe("the layer checker", () => {
  const breachesOf = (files: Readonly<Record<string, string>>): string[] =>
    layerBreaches(new Map(Object.entries(files).map(([file, text]) => [file, importsOf(text)])));

  it("accepts imports from lower rows and from the same folder", () => {
    const files = {
      "model/a.ts": 'import { z } from "zod";\nimport type { B } from "./b.ts";',
      "model/b.ts": "",
      "hub/call.ts": 'import { readFile } from "node:fs/promises";\nimport { a } from "../model/a.ts";',
      "index.ts": 'export { call } from "./hub/call.ts";',
    };
    expect(breachesOf(files)).toEqual([]);
  });

  it.each([
    ["a value import upward", 'import { hub } from "../hub/hub.ts";'],
    ["a type import upward", 'import type { Hub } from "../hub/hub.ts";'],
    ["an import for its effects", 'import "../hub/hub.ts";'],
    ["a re-export", 'export * from "../hub/hub.ts";'],
    ["an import over several lines", 'import {\n  hub,\n  type Hub,\n} from "../hub/hub.ts";'],
    ["a dynamic import", 'const load = () => import("../hub/hub.ts");'],
    ["the type of a module", 'let hub: typeof import("../hub/hub.ts");'],
  ])("finds %s", (_what, text) => {
    expect(breachesOf({ "policy/decide.ts": text, "hub/hub.ts": "" })).toEqual([
      "policy/decide.ts: imports hub/hub.ts",
    ]);
  });

  it("finds imports between folders of one row, and between doors", () => {
    expect(breachesOf({ "policy/a.ts": 'import "../guard/b.ts";', "guard/b.ts": "" })).toHaveLength(1);
    expect(breachesOf({ "doors/mcp/a.ts": 'import "../acp/b.ts";', "doors/acp/b.ts": "" })).toHaveLength(1);
  });

  it("finds a package other than zod in the model, a folder without a row, and a file that is not there", () => {
    expect(breachesOf({ "model/a.ts": 'import { join } from "node:path";' })).toEqual([
      "model/a.ts: imports node:path",
    ]);
    expect(breachesOf({ "helpers/a.ts": "" })).toHaveLength(1);
    expect(breachesOf({ "hub/a.ts": 'import "./gone.ts";' })).toHaveLength(1);
  });

  it("is not misled by a comment that mentions an import", () => {
    expect(
      breachesOf({ "policy/a.ts": '/**\n * import { hub } from "../hub/hub.ts";\n */\n', "hub/hub.ts": "" }),
    ).toEqual([]);
  });

  it("finds a cycle of three files, of one file, and none in a diamond", () => {
    const cycle = (files: Readonly<Record<string, readonly string[]>>) => findCycle(new Map(Object.entries(files)));
    expect(cycle({ "a.ts": ["./b.ts"], "b.ts": ["./c.ts"], "c.ts": ["./b.ts"] })).toEqual(["b.ts", "c.ts", "b.ts"]);
    expect(cycle({ "a.ts": ["./a.ts"] })).toEqual(["a.ts", "a.ts"]);
    expect(cycle({ "a.ts": ["./b.ts", "./c.ts"], "b.ts": ["./d.ts"], "c.ts": ["./d.ts"], "d.ts": [] })).toBeUndefined();
  });
});
