import { describe, expect, it } from "vitest";
import { diffLines } from "../../src/config/masked-diff.ts";
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

  it("[joy-14c] on a terminal leaves out what says nothing, then what matters least, before names are cut", () => {
    const wide: readonly Column<Row>[] = [
      { title: "NAME", cell: ([name]) => name },
      { title: "EMPTY", cell: () => "-" },
      { title: "TIME", cell: () => "2026-11-17T15:00:00.000Z", short: () => "15:00:00", dropAt: 2 },
      { title: "SESSION", cell: () => "01234567", dropAt: 1 },
      { title: "WHY", cell: ([, why]) => why, shrink: true },
    ];
    const rows: Row[] = [["files__read_text_file", "because of a rule that has a long name"]];
    const at = (width: number): string => renderTable(wide, rows, { width })[0] ?? "";
    expect(at(120)).toMatch(/^NAME +TIME +SESSION +WHY$/);
    expect(at(45)).toMatch(/^NAME +TIME +WHY$/);
    expect(at(35)).toMatch(/^NAME +WHY$/);
    expect(renderTable(wide, rows, { width: 35 })[1]).toMatch(/^files__read_text_file +because/);
    expect(renderTable(wide, rows)).toEqual([
      expect.stringMatching(/^NAME +EMPTY +TIME +SESSION +WHY$/),
      expect.stringContaining("2026-11-17T15:00:00.000Z"),
    ]);
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
