import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { readSimpleYaml } from "../../../src/skills/read/simple-yaml.ts";

/** What the parser says; an error if it finds one, or doubled keys. */
function byParser(text: string): unknown {
  const document = parseDocument(text, { schema: "core", prettyErrors: false });
  if (document.errors.length > 0 || document.warnings.length > 0) return new Error(String(document.errors[0]?.message));
  return document.toJS();
}

const TAKEN: readonly string[] = [
  "name: tides\ndescription: Says when it is high water.",
  "name: tides  \r\ndescription: 'quoted: yes # still'\r\n",
  'name: "tides: and # more"\nurl: https://tides.example/#top',
  "a: true\nb: false\nversion: 1.2.3\nicon: 🌊\n\n\nc: 水位 (m)",
  "description: >\n  Says when\n  it is high water.\nname: tides",
  "description: |-\n    one: two\n    # three\n    - four\n\nname: tides",
  'description: >-\n  Says when\n\nmetadata: {"openclaw": {"emoji": "🌊", "requires": {"bins": ["jq"]}}}',
  'metadata:\n  author: office\n  version: "1.0"\n  tags: ["a", "b"]\nname: tides',
  "tags:\n  - one\n  - 'two: three'\n  - true\nname: tides",
  "tags:\n- one\n- two\nname: tides",
];

const LEFT: readonly string[] = [
  "",
  "a: 1",
  "a: null",
  "a: True",
  "a: ~",
  "a:",
  "a: b: c",
  "a: b # c",
  "a: [b, c]",
  'a: {"b": 1}',
  'a: {"b": "1", "b": "2"}',
  'a: {"__proto__": "x"}',
  'a: "b\\n"',
  "a: 'it''s'",
  "a: b\na: c",
  "a: b\n  c",
  "a: >\n\n  b",
  "a: >\n  b\n    c",
  "a: |\n  b\n\n  c",
  "a: |\n  b \n  c",
  "a:\n  b: c\n   d: e",
  "a:\n  b:\n    c: d",
  "a:\n  - b\n   - c",
  "a:\n  - b: c",
  "a:\tb",
  "a: b\t",
  "# a\nb: c",
  "- a",
  "&a b: c",
  "a: *b",
  "a: !b c",
  "a: b\u0085c: d",
  "a: b\u2028c",
];

describe("simple YAML", () => {
  it.each(TAKEN)("reads %j as the parser does", (text) => {
    const read = readSimpleYaml(text);
    expect(read?.value).toEqual(byParser(text));
    expect(read).toBeDefined();
  });

  it.each(LEFT)("leaves %j to the parser", (text) => {
    expect(readSimpleYaml(text)).toBeUndefined();
  });

  it("knows the lines of keys", () => {
    const read = readSimpleYaml("a: b\n\nc:\n  d: e\n  f: g\nh: >\n  i\n  j\nk: l");
    expect(
      [["a"], ["c"], ["c", "d"], ["c", "f"], ["h"], ["k"], ["c", "f", 0, "x"], ["none"]].map((path) =>
        read?.lineOf(path),
      ),
    ).toEqual([0, 2, 3, 4, 5, 8, 4, 0]);
  });

  it("never says anything else than the parser", () => {
    const piece = fc.constantFrom(
      ..."a b name: description: - > | >- |- \" ' : # \\ , [ ] { } ? & * ! % @ ` ~ true null 1.2.3 1.0 0x1 .5 .inf é 水 🌊 -- --- ...".split(
        " ",
      ),
      ...[
        "\n",
        "\n  ",
        "\n    ",
        "\n- ",
        "\r\n",
        "\t",
        " ",
        "  ",
        ": ",
        " #",
        "\u00a0",
        "\u3000",
        "\ufeff",
        "\u0085",
        "\u2028",
        "\u0001",
        "\\n",
      ],
      ...['"a": ', '{"a": "b"}', '["a", "b"]', "'it''s'", "\nkey: ", "\n  sub: "],
    );
    const text = fc.array(piece, { maxLength: 14 }).map((parts) => parts.join(""));
    let taken = 0;
    fc.assert(
      fc.property(fc.constantFrom("", "key: ", "key:\n  sub: ", "key: >\n  ", "key:\n  - "), text, (begin, end) => {
        const read = readSimpleYaml(begin + end);
        if (read === undefined) return;
        taken += 1;
        expect(read.value).toEqual(byParser(begin + end));
      }),
      { numRuns: 20_000, seed: 7 },
    );
    expect(taken).toBeGreaterThan(500);
  });
});
