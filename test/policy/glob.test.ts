import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileGlob } from "../../src/policy/glob.ts";

describe("compileGlob", () => {
  it.each([
    ["*", "", true],
    ["*", "anything", true],
    ["read_file", "read_file", true],
    ["read_file", "Read_file", false],
    ["read_*", "read_", true],
    ["read_*", "xread_a", false],
    ["*_file", "read_file", true],
    ["*_file", "read_files", false],
    ["files__*_file", "files__read_file", true],
    ["files__*_file", "files_file", false],
    ["a*a", "a", false],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "a-c-b", false],
    ["a*bc*c", "abc", false],
    ["?", "é", true],
    ["?", "😀", true],
    ["??", "😀", false],
    ["a?c", "abc", true],
    ["a?c", "ac", false],
    ["*a?c*", "xxabc", true],
    ["*a?c", "xxabcx", false],
    ["", "", true],
    ["a.c", "abc", false],
    ["[ab]+(c)", "[ab]+(c)", true],
    ["$^\\", "$^\\", true],
  ])("[spine-17c] %j on %j: %s", (pattern, text, expected) => {
    expect(compileGlob(pattern)(text)).toBe(expected);
  });

  it("agrees with a regular expression on small inputs", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "*", "?"), maxLength: 8 });
    const text = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 10 });
    fc.assert(
      fc.property(letters, text, (pattern, name) => {
        const regex = new RegExp(`^${pattern.replaceAll("*", ".*").replaceAll("?", ".")}$`);
        expect(compileGlob(pattern)(name)).toBe(regex.test(name));
      }),
      { numRuns: 2000 },
    );
  });

  it("stays linear on a megabyte made to hurt", () => {
    const text = "a".repeat(1_000_000);
    expect(compileGlob("*a".repeat(500) + "*b")(text)).toBe(false);
    expect(compileGlob(`*${"a".repeat(300_000)}b*`)(text)).toBe(false);
    expect(compileGlob(`*${"a".repeat(300_000)}*${"a".repeat(300_000)}*`)(text)).toBe(true);
    expect(compileGlob("*a?a?a?b*")(text)).toBe(false);
  });
});
