import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { patchBetween, revertPatch } from "../../../src/hub/clients/client-files.ts";

describe("a text patch", () => {
  it("[skill-15c] leads back from any text to any other", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "{", "}", "\n", "é", "😀") });
    fc.assert(
      fc.property(text, text, (before, after) => {
        expect(revertPatch(after, patchBetween(before, after))).toBe(before);
      }),
    );
  });

  it("keeps no more of the old text than was replaced", () => {
    const patch = patchBetween('{"secret": "abc", "b": 1}', '{"secret": "abc", "b": 1, "c": 2}');
    expect(patch).toMatchObject({ start: 24, length: 8, removed: "" });
  });

  it("is of no use for a text that somebody changed", () => {
    expect(revertPatch("ac", patchBetween("a", "ab"))).toBeUndefined();
  });
});
