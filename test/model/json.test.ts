import { describe, expect, it } from "vitest";
import { mapTexts, pointerSteps, referencedIn, textsIn, valueAt } from "../../src/model/json.ts";

const DOCUMENT = { $defs: { "a/b": 1, "x y": 2, "50%": 3, "~1": 4 }, list: [{ name: "first" }, "second"] };

describe("what is at a place in JSON", () => {
  it.each([
    ["#", DOCUMENT],
    ["#/$defs/a~1b", 1],
    ["#/$defs/x%20y", 2],
    ["#/$defs/50%", 3],
    ["#/$defs/~01", 4],
    ["#/list/0/name", "first"],
    ["#/list/length", undefined],
    ["#/list/2", undefined],
    ["#/list/", undefined],
    ["#/constructor", undefined],
    ["#anchor", undefined],
    ["other.json#/list", undefined],
  ])("a reference %s", (reference, found) => {
    expect(referencedIn(DOCUMENT, reference)).toEqual(found);
  });

  it("a path, and a pointer that is no part of a URI", () => {
    expect(valueAt(DOCUMENT, ["list", 1])).toBe("second");
    expect(valueAt(DOCUMENT, ["list", -1])).toBeUndefined();
    expect(valueAt("text", [0])).toBeUndefined();
    expect(pointerSteps("/a~1b/%20/~01")).toEqual(["a/b", "%20", "~1"]);
    expect(pointerSteps("")).toEqual([]);
  });

  it("all texts, in their order and changed", () => {
    expect(textsIn(DOCUMENT)).toEqual(["first", "second"]);
    expect(mapTexts({ a: ["x", 1, null], b: { c: "y" } }, (text) => `${text}!`)).toEqual({
      a: ["x!", 1, null],
      b: { c: "y!" },
    });
  });
});
