import { describe, expect, it } from "vitest";
import { diffLines } from "../../src/cli/masked-diff.ts";
import { clip, type Column, firstLine, renderTable, textWidth } from "../../src/cli/table.ts";

type Row = readonly [string, string];
const columns: readonly Column<Row>[] = [
  { title: "NAME", cell: ([name]) => name },
  { title: "DESCRIPTION", cell: ([, description]) => description, shrink: true },
];

describe("table", () => {
  it("aligns columns and leaves no blanks at the end of a line", () => {
    expect(
      renderTable(columns, [
        ["a", "first"],
        ["longer", ""],
      ]),
    ).toEqual(["NAME    DESCRIPTION", "a       first", "longer"]);
  });

  it("cuts nothing without a width", () => {
    const long = "word ".repeat(100).trim();
    expect(renderTable(columns, [["a", long]])[1]).toContain(long);
  });

  it("fits a width by the columns that may shrink, then by the others", () => {
    const rows: Row[] = [["a-rather-long-name", "a description that is much too long for the terminal"]];
    const fitted = renderTable(columns, rows, { width: 40 });
    expect(fitted.every((line) => textWidth(line) <= 40)).toBe(true);
    expect(fitted[1]).toMatch(/^a-rather-long-name {2}a description.*…$/);
    const narrow = renderTable(columns, rows, { width: 20 });
    expect(narrow.every((line) => textWidth(line) <= 20)).toBe(true);
  });

  it("keeps columns straight beside wide and combining characters", () => {
    const lines = renderTable(columns, [
      ["日本", "x"],
      ["e\u0301", "y"],
    ]);
    expect(lines[1]).toBe("日本  x");
    expect(lines[2]).toBe("e\u0301     y");
  });

  it("shows the first line that says something, without terminal codes", () => {
    expect(renderTable(columns, [["a\u001b[31m", "\n \n second\tline\nthird"]])[1]).toBe("a\\u{001B}[31m  second line");
    expect(firstLine("")).toBe("");
  });

  it("clips by cells, not by code units", () => {
    expect(clip("日本語", 4)).toBe("日…");
    expect(clip("abc", 3)).toBe("abc");
  });
});

describe("diff", () => {
  it("shows changed lines with a little around them", () => {
    const before = "{\n  1\n  2\n  3\n  4\n  5\n  6\n  7\n}\n";
    const after = before.replace("  1\n", "  1a\n").replace("  7\n", "");
    expect(diffLines(before, after)).toEqual([
      "  {",
      "-   1",
      "+   1a",
      "    2",
      "    3",
      "  …",
      "    5",
      "    6",
      "-   7",
      "  }",
    ]);
  });

  it("is empty for equal texts and whole for a new file", () => {
    expect(diffLines("a\n", "a\n")).toEqual([]);
    expect(diffLines("", "a\nb\n")).toEqual(["+ a", "+ b"]);
  });
});
