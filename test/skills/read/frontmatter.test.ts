import { describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { readFrontmatter } from "../../../src/skills/read/frontmatter.ts";

/** One of each way to write a value that frontmatter uses. */
const FORMS: readonly string[] = [
  "name: tides\ndescription: Says when it is high water.",
  "name: tides  \r\ndescription: 'quoted: yes # still'\r\n",
  'name: "tides: and # more"\nurl: https://tides.example/#top',
  "a: true\nb: false\nversion: 1.2.3\nicon: 🌊\n\n\nc: 水位 (m)",
  "description: >\n  Says when\n  it is high water.\nname: tides",
  "description: |-\n    one: two\n    # three\n    - four\n\nname: tides",
  'description: >-\n  Says when\n\nmetadata: {"openclaw": {"emoji": "🌊", "requires": {"bins": ["jq"]}}}',
  'metadata:\n  author: office\n  version: "1.0"\n  tags: ["a", "b"]\nname: tides',
  "tags:\n- one\n- 'two: three'\n- true\nname: tides",
  "a: 1\nb: null\nc: True\nd: ~\ne:\nf: [g, h]",
  "a: b # c\nd: 'it''s'\ne: \"f\\n\"",
  "a: b\n  c\nd: >\n\n  e\n    f",
  "a: &b c\nd: *b",
  "# a\nb:\n  - c: d\n    e: f",
];

const read = (text: string) => readFrontmatter(new TextEncoder().encode(text));

describe("readFrontmatter", () => {
  it.each(FORMS)("reads %j as YAML does", (yaml) => {
    const { value, warnings } = read(`---\n${yaml}\n---\nGo.\n`);
    expect(value).toEqual(parseDocument(yaml, { schema: "core" }).toJS());
    expect(warnings).toEqual([]);
  });

  it("says where keys, nested keys and items stand", () => {
    const front = read(
      "---\n# who\nname: tides\nmetadata:\n  author: office\n  tags:\n    - a\n    - b\nversion: 1.10\n---\nGo.\n",
    );
    expect(front.lineOf(["name"])).toBe(3);
    expect(front.lineOf(["metadata", "author"])).toBe(5);
    expect(front.lineOf(["metadata", "tags", 1])).toBe(8);
    expect(front.sourceOf(["version"])).toBe("1.10");
    expect(front.bodyLine).toBe(11);
    expect(front.warnings).toEqual([]);
  });

  it("falls back to what is around a path that is not there", () => {
    const front = read("---\nname: tides\nmetadata:\n  tags: [a, 1]\n---\nGo.\n");
    expect(front.lineOf(["metadata", "tags", 7])).toBe(4);
    expect(front.lineOf(["metadata", "nothing"])).toBe(3);
    expect(front.lineOf(["nothing"])).toBe(2);
    expect(front.sourceOf(["metadata", "nothing"])).toBeUndefined();
  });

  it("knows the lines of a damaged file too", () => {
    const front = read(
      "\n---\nname: tides\ndescription: a: b\nmetadata:\n  author: office\n  rate: 1.50\n---\n\nGo.\n",
    );
    expect(front.value).toEqual({ name: "tides", description: "a: b", metadata: { author: "office", rate: 1.5 } });
    expect(front.lineOf(["description"])).toBe(4);
    expect(front.lineOf(["metadata", "author"])).toBe(6);
    expect(front.sourceOf(["metadata", "rate"])).toBe("1.50");
    expect([front.body, front.bodyLine]).toEqual(["\nGo.\n", 9]);
  });

  it("counts lines alike for both kinds of line ends", () => {
    const text = "---\nname: tides\ndescription: >\n  a\n  b\nlicense: MIT\n---\nGo.\n";
    for (const one of [read(text), read(text.replaceAll("\n", "\r\n"))]) {
      expect(one.lineOf(["license"])).toBe(6);
      expect(one.bodyLine).toBe(8);
      expect(one.value["description"]).toBe("a b\n");
    }
  });
});
