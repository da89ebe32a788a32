import { describe, expect, it } from "vitest";
import { ChurnMap, ChurnSet } from "../../src/base/maps.ts";

describe("TurnoverMap", () => {
  it("holds what was set and not deleted, in order, however often it was made anew", () => {
    const map = new ChurnMap<number, string>();
    const mirror = new Map<number, string>();
    for (let round = 0; round < 2000; round += 1) {
      map.set(round, `value ${round}`);
      mirror.set(round, `value ${round}`);
      // Some stay for long, most for a few rounds.
      const gone = round - (round % 7 === 0 ? 500 : 20);
      expect(map.delete(gone)).toBe(mirror.delete(gone));
      expect(map.size).toBe(mirror.size);
    }
    expect([...map]).toEqual([...mirror]);
    expect([...map.keys()]).toEqual([...mirror.keys()]);
    expect([...map.values()]).toEqual([...mirror.values()]);
    for (const key of mirror.keys()) expect(map.get(key)).toBe(mirror.get(key));
  });

  it("tells apart what a map tells apart", () => {
    const map = new ChurnMap<number | string, string>();
    map.set(1, "number");
    map.set("1", "text");
    expect(map.delete(1)).toBe(true);
    expect(map.delete(1)).toBe(false);
    expect(map.has(1)).toBe(false);
    expect(map.get("1")).toBe("text");
  });

  it("meets everything when entries are deleted while it is gone through", () => {
    const map = new ChurnMap<number, number>();
    for (let key = 0; key < 300; key += 1) map.set(key, key);
    const met: number[] = [];
    for (const [key] of map) {
      met.push(key);
      map.delete(key);
    }
    expect(met).toHaveLength(300);
    expect(map.size).toBe(0);
  });
});

describe("TurnoverSet", () => {
  it("holds each item once", () => {
    const set = new ChurnSet<object>();
    const item = {};
    set.add(item);
    set.add(item);
    expect(set.size).toBe(1);
    expect([...set]).toEqual([item]);
    expect(set.delete(item)).toBe(true);
    expect(set.delete(item)).toBe(false);
    expect(set.size).toBe(0);
  });
});
