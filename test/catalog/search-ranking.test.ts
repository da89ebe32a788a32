import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ToolIndex } from "../../src/catalog/search/tool-index.ts";
import { syntheticTools } from "../../bench/synthetic-tools.ts";
import { realTools } from "../support/real-tools.ts";
import { everything, filesystem, memory } from "../support/servers.ts";
import { QUERIES } from "./search-queries.ts";

let index: ToolIndex;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolcrib-search-"));
  const servers = { everything: everything(), files: filesystem(folder), memory: memory(join(folder, "memory.json")) };
  index = new ToolIndex([...(await realTools(servers)), ...syntheticTools(5000)]);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe("[guard-05c] over the tools of real servers and 5,000 others", () => {
  it.each(QUERIES)("%s finds %s among the first three", (query, tool) => {
    expect(index.search(query, 3).map((hit) => hit.name)).toContain(tool);
  });

  it("has the right tool first for most of them", () => {
    const first = QUERIES.filter(([query, tool]) => index.search(query, 1)[0]?.name === tool);
    expect(first.length / QUERIES.length).toBeGreaterThan(0.8);
  });
});
