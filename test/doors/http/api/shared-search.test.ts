/** How much work a search is for callers with different views. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import { ToolRegistry } from "../../../../src/tools/tool-registry.ts";
import { type ApiScene, apiScene, type Who } from "./api-setup.ts";

let scene: ApiScene;
const registry = new ToolRegistry();
/** How often the schema of the tool was read. */
let reads = 0;

function register(name: string, description: string): void {
  const properties = { dough: { type: "string" } };
  const parameters = Object.defineProperty({ type: "object" }, "properties", {
    enumerable: true,
    get() {
      reads += 1;
      return properties;
    },
  });
  registry.register({ name, description, parameters, execute: async () => ({ content: [] }) });
}

beforeAll(async () => {
  register("bake_bread", "Puts dough into the oven.");
  register("bake_cake", "Puts cake into the oven.");
  scene = await apiScene({
    servers: {},
    config: { roles: { reviewer: { tools: { deny: ["bake_cake"] } } } },
    registry,
  });
});

afterAll(() => scene.close());

async function search(who: Who, query: string): Promise<string[]> {
  const answer = await scene.request(who, "GET", `/mcp/tools?fields=summary&q=${encodeURIComponent(query)}`);
  return answer.json<{ tools: ToolInfo[] }>().tools.map(({ name }) => name);
}

it("[speed-08b] one index serves every view, and shows each caller only what it may see", async () => {
  expect(await search("admin", "oven")).toEqual(["bake_bread", "bake_cake"]);
  const before = reads;
  expect(await search("reviewer", "oven")).toEqual(["bake_bread"]);
  expect(await search("read", "oven cake")).toEqual(["bake_cake", "bake_bread"]);
  expect(await search("reviewer", "bake_cake")).toEqual(["bake_bread"]);
  expect(reads).toBe(before);

  // It is made again after a change, once.
  register("bake_pie", "Puts pie into the oven.");
  expect(await search("admin", "pie")).toEqual(["bake_pie"]);
  const after = reads;
  expect(after).toBeGreaterThan(before);
  expect(await search("reviewer", "pie")).toEqual(["bake_pie"]);
  expect(reads).toBe(after);
});
