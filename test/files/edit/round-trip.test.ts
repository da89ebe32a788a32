import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { editorFor } from "../../../src/files/edit/editors.ts";
import type { PathStep, TextEditor } from "../../../src/files/edit/text-editor.ts";
import { TextSyntaxError } from "../../../src/files/edit/text-syntax.ts";
import { withValue } from "../../../src/files/edit/text-editor.ts";
import { DOCUMENTS } from "./documents.ts";

const RUNS = Number(process.env["FUZZ_RUNS"] ?? 150);

const texts = fc
  .oneof(
    fc.string(),
    fc.string({ unit: "grapheme" }),
    fc.constantFrom("yes", "1", "# no", "a: b", "-y", "\n", "~", "\\", "\u2028", "\u007F\u0085\0"),
  )
  .filter((text) => !text.includes("§"));
const names = fc
  .oneof(fc.constantFrom("new", "toolcrib", "x.y", "with space", "a'b\"c", "é"), texts)
  .filter((name) => name !== "__proto__");
const entries = fc.record(
  {
    command: texts,
    args: fc.array(texts, { maxLength: 3 }),
    env: fc.dictionary(names, texts, { maxKeys: 2 }),
    n: fc.integer(),
    on: fc.boolean(),
  },
  { requiredKeys: ["command"] },
);

function parses(editor: TextEditor, text: string): boolean {
  try {
    return editor.parse(text) !== undefined;
  } catch (error) {
    if (error instanceof TextSyntaxError) return false;
    throw error;
  }
}

/** A value that the editor must refuse to look for entries in. */
function isInTheWay(editor: TextEditor, text: string): boolean {
  const document = editor.parse(text) as Record<string, unknown>;
  const servers = document["mcpServers"];
  if (servers === undefined) return false;
  const isEmptyKey = servers === null && editor.format === "yaml";
  return !isEmptyKey && (typeof servers !== "object" || servers === null || Array.isArray(servers));
}

const marks = (text: string): number => text.split("§").length;

describe.each(["jsonc", "json5", "yaml", "toml"] as const)("[skill-15a] [skill-15c] any %s file", (format) => {
  const editor = editorFor(format);
  const documents = DOCUMENTS[format].filter((text) => parses(editor, text) && !isInTheWay(editor, text));

  it("keeps every other value and every comment, and gives back the same bytes", () => {
    let count = 0;
    const check = (text: string, path: readonly PathStep[], value: unknown): void => {
      const before = editor.parse(text);
      fc.pre(!hasPath(before, path));
      const { text: after, madeFrom } = editor.set(text, path, value);
      expect(editor.parse(after)).toEqual(withValue(before, path, value));
      expect(marks(after)).toBe(marks(text));
      expect(editor.remove(after, path, { alsoFrom: madeFrom })).toBe(text);
      count += 1;
    };
    fc.assert(
      fc.property(documents, names, entries, (text, name, value) => check(text, ["mcpServers", name], value)),
      { numRuns: RUNS },
    );
    fc.assert(
      fc.property(documents, names, fc.oneof(texts, fc.integer(), entries), (text, name, value) =>
        check(text, [name], value),
      ),
      { numRuns: RUNS / 2 },
    );
    expect(count).toBeGreaterThan(RUNS);
  });

  it("takes two entries out in the order in which they came", () => {
    fc.assert(
      fc.property(documents, entries, entries, (text, one, two) => {
        const before = editor.parse(text);
        fc.pre(!hasPath(before, ["mcpServers", "first"]));
        const first = editor.set(text, ["mcpServers", "first"], one);
        const second = editor.set(first.text, ["mcpServers", "second"], two);
        const without = editor.remove(second.text, ["mcpServers", "first"], { alsoFrom: first.madeFrom });
        expect(editor.remove(without, ["mcpServers", "second"], { alsoFrom: first.madeFrom })).toBe(text);
      }),
      { numRuns: RUNS / 2 },
    );
  });

  it("replaces a value in place, and leaves the others", () => {
    fc.assert(
      fc.property(documents, entries, entries, (text, one, two) => {
        const path = ["mcpServers", "new"];
        const before = editor.parse(text);
        const first = editor.set(text, path, one);
        const replaced = editor.set(first.text, path, two);
        expect(replaced.madeFrom).toBe(2);
        expect(editor.parse(replaced.text)).toEqual(withValue(before, path, two));
        expect(editor.set(replaced.text, path, two).text).toBe(replaced.text);
        expect(editor.remove(replaced.text, path, { alsoFrom: first.madeFrom })).toBe(text);
      }),
      { numRuns: RUNS / 2 },
    );
  });
});

function hasPath(document: unknown, path: readonly PathStep[]): boolean {
  let at: unknown = document;
  for (const step of path)
    at = typeof at === "object" && at !== null && typeof step === "string" ? Reflect.get(at, step) : undefined;
  return at !== undefined;
}
