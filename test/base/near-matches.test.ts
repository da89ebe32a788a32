import { describe, expect, it } from "vitest";
import { nearMatches } from "../../src/base/near-matches.ts";

const names = [
  "files__read_file",
  "files__write_file",
  "files__list_directory",
  "github__readIssue",
  "memory__read_graph",
  "echo",
];

describe("nearMatches", () => {
  it.each([
    ["read_file", "files__read_file"],
    ["Files__Read_File", "files__read_file"],
    ["files.read-file", "files__read_file"],
    ["files/readFile", "files__read_file"],
    ["mcp__files__read_file", "files__read_file"],
    ["file__read_file", "files__read_file"],
    ["files__raed_file", "files__read_file"],
    ["reed_file", "files__read_file"],
    ["read_issue", "github__readIssue"],
    ["ehco", "echo"],
    ["directory", "files__list_directory"],
  ])("[spine-14d] %s finds %s first", (asked, expected) => {
    expect(nearMatches(asked, names)[0]).toBe(expected);
  });

  it("[spine-14d] finds nothing where nothing is near", () => {
    expect(nearMatches("quantum_teleport", names)).toEqual([]);
    expect(nearMatches("", names)).toEqual([]);
    expect(nearMatches("__", names)).toEqual([]);
  });

  it("[spine-14d] gives at most so many, in an order that depends on the names alone", () => {
    const many = Array.from({ length: 50 }, (_, i) => `s${i}__read_file`);
    const found = nearMatches("read_file", many);
    expect(found).toEqual(nearMatches("read_file", [...many, ...many].toReversed()));
    expect(found).toEqual(["s0__read_file", "s1__read_file", "s2__read_file"]);
    expect(nearMatches("read_file", many, 5)).toHaveLength(5);
  });

  it("copes with long names among many", () => {
    const many = Array.from({ length: 10_000 }, (_, i) => `server${i % 50}__some_rather_long_tool_name_${i}`);
    expect(nearMatches("server7__some_rather_long_tool_nmae_57", many)).toContain(
      "server7__some_rather_long_tool_name_57",
    );
    expect(nearMatches("x".repeat(1_000_000), many)).toEqual([]);
  });
});
