import fc from "fast-check";
import { expect, it } from "vitest";
import { editDistance, findNearest } from "../../src/base/near-matches.ts";

it.each([
  ["", "", 0],
  ["abc", "abc", 0],
  ["abc", "", 3],
  ["abc", "acb", 1],
  ["kitten", "sitting", 3],
  ["dney", "deny", 1],
])("counts %j to %j as %d edits", (a, b, distance) => {
  expect(editDistance(a, b)).toBe(distance);
});

it("is a distance: symmetric, and zero for equals only", () => {
  const word = fc.string({ maxLength: 8 });
  fc.assert(
    fc.property(word, word, (a, b) => {
      expect(editDistance(a, b)).toBe(editDistance(b, a));
      expect(editDistance(a, b) === 0).toBe(a === b);
    }),
  );
});

it("gives the nearest word, or none if nothing is near", () => {
  const known = ["command", "args", "env"];
  expect(findNearest("comand", known)).toBe("command");
  expect(findNearest("ENV", known)).toBe("env");
  expect(findNearest("qqqqqq", known)).toBeUndefined();
  expect(findNearest("x".repeat(10_000), known)).toBeUndefined();
});
