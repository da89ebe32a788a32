import { describe, expect, it } from "vitest";
import { LruMap } from "../../src/base/maps.ts";

describe("[gate-08e] a map with room for so many", () => {
  it("lets the least recently used go", () => {
    const map = new LruMap<string, { n: number }>(2);
    map.set("a", { n: 1 });
    map.set("b", { n: 2 });
    expect(map.get("a")).toEqual({ n: 1 });
    map.set("c", { n: 3 });
    expect([map.get("b"), map.get("a"), map.get("c"), map.size]).toEqual([undefined, { n: 1 }, { n: 3 }, 2]);
    map.set("a", { n: 4 });
    expect([map.get("c"), map.get("a"), map.size]).toEqual([{ n: 3 }, { n: 4 }, 2]);
    map.clear();
    expect([map.get("a"), map.size]).toEqual([undefined, 0]);
  });
});
