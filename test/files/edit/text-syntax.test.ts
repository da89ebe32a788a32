import { describe, expect, it } from "vitest";
import { ConfigDocument } from "../../../src/config/config-document.ts";
import { parseConfigText } from "../../../src/config/dialects.ts";
import { MAX_DEPTH, tooDeepAt } from "../../../src/files/edit/text-syntax.ts";
import { editorFor } from "../../../src/files/edit/editors.ts";
import { TextSyntaxError } from "../../../src/files/edit/text-syntax.ts";

const DEEP = 3000;

function nested(open: string, inner: string, close: string, depth: number): string {
  return open.repeat(depth) + inner + close.repeat(depth);
}

const TEXTS = {
  jsonc: [nested('{"a":', "1", "}", DEEP), `{"a": ${nested("[", "", "]", DEEP)}}`, "[".repeat(100_000)],
  json5: [nested("{a:", "1", "}", DEEP), `{a: ${nested("[", "", "]", DEEP)}}`],
  yaml: [
    `a: ${nested("[", "", "]", DEEP)}`,
    Array.from({ length: DEEP }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"),
    `${"- ".repeat(DEEP)}a`,
    `a: ${nested("{b: ", "1", "}", MAX_DEPTH + 5)}`,
  ],
  toml: [
    `a = ${nested("[", "", "]", DEEP)}`,
    `a = ${nested("{b = ", "1", "}", MAX_DEPTH + 5)}`,
    `${Array(MAX_DEPTH + 5)
      .fill("a")
      .join(".")} = 1`,
    `[${Array(MAX_DEPTH + 5)
      .fill("a")
      .join(".")}]`,
  ],
} as const;

describe("[skill-15b] a document that nests without end", () => {
  for (const [format, texts] of Object.entries(TEXTS)) {
    it.each(texts.map((text) => [text.slice(0, 12), text] as const))(`in ${format} is refused: %j`, (_, text) => {
      // The keys are those of TEXTS, which are formats.
      const editor = editorFor(format as keyof typeof TEXTS);
      const refusal = expect.objectContaining({ message: expect.stringContaining("nests deeper") });
      for (const task of [
        () => editor.parse(text),
        () => editor.set(text, ["servers", "x"], { command: "y" }),
        () => editor.remove(text, ["a", "b"]),
      ]) {
        expect(task).toThrow(TextSyntaxError);
        expect(task).toThrow(refusal);
      }
    });
  }

  it("is told of with its place", () => {
    const text = `{\n"a": ${nested("[", "", "]", DEEP)}}`;
    expect(() => editorFor("jsonc").parse(text)).toThrow(`line 2, column ${5 + MAX_DEPTH}: `);
    const { errors, value } = parseConfigText("x.json", text);
    expect(errors).toMatchObject([{ code: "syntax", line: 2, column: 5 + MAX_DEPTH }]);
    expect(value).toBeUndefined();
    expect(ConfigDocument.parseJson5("x.json", text)).toBeUndefined();
  });

  it("is another thing than one that is deep enough for anybody", () => {
    const text = nested('{"a":', "{}", "}", MAX_DEPTH - 1);
    expect(editorFor("jsonc").set(text, ["b"], 1).madeFrom).toBe(0);
    expect(ConfigDocument.parse("x.json", text).errors).toEqual([]);
  });

  it.each([
    ["texts", `{"a": "${"[".repeat(DEEP)}", "b": "\\"${"{".repeat(DEEP)}\\\\"}`],
    ["texts of JSON5", `{a: '${"[".repeat(DEEP)}"'}`],
    ["comments", `// ${"[".repeat(DEEP)}\n/* ${"{".repeat(DEEP)} */ {} // [`],
    ["lists beside each other", `[${"[],".repeat(DEEP)}[]]`],
  ])("brackets in %s do not count", (_, text) => {
    expect(tooDeepAt(text)).toBeUndefined();
  });
});

describe("reading JSON", () => {
  it.each([
    '{"__proto__": {"x": 1}, "a": 1}',
    '{"\\u005f_proto__": {"x": 1}, "a": 1}',
    '{"_\\u005Fproto__": {"x": 1}, "a": 1}',
  ])("keeps a key that names the prototype as one: %s", (text) => {
    const value = editorFor("jsonc").parse(text);
    expect(Object.keys(value as object)).toEqual(["__proto__", "a"]);
    expect(editorFor("jsonc").remove(text, ["a"])).not.toContain('"a"');
  });
});
