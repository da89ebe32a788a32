import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { editorFor } from "../../../src/files/edit/editors.ts";
import type { PathStep, TextEditor } from "../../../src/files/edit/text-editor.ts";
import { TextSyntaxError } from "../../../src/files/edit/text-syntax.ts";

const ENTRY = { command: "npx", args: ["-y", "@scope/pkg"], env: { A: "1" } };

type Format = TextEditor["format"];

/** Sets the entry, checks that it can be taken out without a trace, and gives the text with it. */
function added(format: Format, text: string, path: readonly PathStep[], value: unknown = ENTRY): string {
  const editor = editorFor(format);
  const result = editor.set(text, path, value);
  expect(editor.remove(result.text, path, { alsoFrom: result.madeFrom })).toBe(text);
  return result.text;
}

function lines(...all: string[]): string {
  return `${all.join("\n")}\n`;
}

describe("[skill-15a] a new entry is written as the file is", () => {
  it("in JSON5, with bare keys, single quotes and a trailing comma", () => {
    const before = lines(
      "// mine",
      "{",
      "  mcp: {",
      "    servers: {",
      "      a: { command: 'x' }, // one",
      "    },",
      "  },",
      "}",
    );
    const after = lines(
      ...["// mine", "{", "  mcp: {", "    servers: {", "      a: { command: 'x' }, // one", "      'it\\'s': {"],
      ...["        command: 'npx',", "        args: ['-y', '@scope/pkg'],", "        env: {", "          A: '1'"],
      ...["        }", "      },", "    },", "  },", "}"],
    );
    expect(added("json5", before, ["mcp", "servers", "it's"])).toBe(after);
  });

  it("in YAML, behind comments that belong to the entry above", () => {
    const before = lines(
      "extensions:",
      "    dev:",
      "        on: true # yes",
      "        # timeout: 3",
      "    # end",
      "other: 1",
    );
    expect(added("yaml", before, ["extensions", "new"])).toBe(
      lines(
        ...[
          "extensions:",
          "    dev:",
          "        on: true # yes",
          "        # timeout: 3",
          "    new:",
          "        command: npx",
        ],
        ...["        args:", '            - "-y"', '            - "@scope/pkg"', "        env:", '            A: "1"'],
        ...["    # end", "other: 1"],
      ),
    );
  });

  it("in a YAML list, by its name, which is put in if the value has none", () => {
    const path = ["mcpServers", { key: "name", is: "new" }];
    const item = [
      "- name: new",
      "  command: npx",
      "  args:",
      '    - "-y"',
      '    - "@scope/pkg"',
      "  env:",
      '    A: "1"',
    ];
    const before = lines("mcpServers:", "- name: a", "  command: x", "other: 1");
    expect(added("yaml", before, path)).toBe(lines("mcpServers:", "- name: a", "  command: x", ...item, "other: 1"));
    expect(added("yaml", "", path)).toBe(lines("mcpServers:", ...item.map((line) => `  ${line}`)));
    expect(added("yaml", "mcpServers: [] # none\n", path, { command: "x" })).toBe(
      "mcpServers: [ { name: new, command: x } ] # none\n",
    );
  });

  it("in TOML, as tables beside tables, before what belongs to the next one", () => {
    const before = lines("[mcp_servers.a]", 'command = "x"', "# args = []", "", "# about z", "[z]", "b = 1");
    expect(added("toml", before, ["mcp_servers", "x.y"])).toBe(
      lines(
        ...["[mcp_servers.a]", 'command = "x"', "# args = []", "", '[mcp_servers."x.y"]', 'command = "npx"'],
        ...['args = ["-y", "@scope/pkg"]', "", '[mcp_servers."x.y".env]', 'A = "1"', "", "# about z", "[z]", "b = 1"],
      ),
    );
  });

  it("in TOML, in one line where the neighbours are", () => {
    const path = ["mcp_servers", "new"];
    const inline = '{ command = "npx", args = ["-y", "@scope/pkg"], env = { A = "1" } }';
    expect(added("toml", lines("[mcp_servers]", "a = { }", "", "[b]"), path)).toBe(
      lines("[mcp_servers]", "a = { }", `new = ${inline}`, "", "[b]"),
    );
    expect(added("toml", lines("mcp_servers.a.x = 1 # c", "m = 2"), path)).toBe(
      lines("mcp_servers.a.x = 1 # c", `mcp_servers.new = ${inline}`, "m = 2"),
    );
    expect(added("toml", "mcp_servers = {}", path)).toBe(`mcp_servers = { new = ${inline} }`);
  });

  it.each<[Format, string, string]>([
    ["jsonc", "{}", '{\n  "a": {\n    "b": 1\n  }\n}'],
    ["jsonc", "", '{\n  "a": {\n    "b": 1\n  }\n}\n'],
    ["jsonc", "// c\r\n", '// c\r\n{\r\n  "a": {\r\n    "b": 1\r\n  }\r\n}\r\n'],
    ["jsonc", '{"x":1}', '{"x":1,"a":{"b":1}}'],
    ["jsonc", '{ "a": {} }', '{ "a": { "b": 1 } }'],
    ["jsonc", '{\n\t"a": {\n\t}\n}\n', '{\n\t"a": {\n\t\t"b": 1 \n\t}\n}\n'],
    ["yaml", "", "a:\n  b: 1\n"],
    ["yaml", "\uFEFF# c", "\uFEFF# c\na:\n  b: 1"],
    ["yaml", "a:\r\nc: 2\r\n", "a:\r\n  b: 1\r\nc: 2\r\n"],
    ["yaml", "---\n...\n", "---\na:\n  b: 1\n...\n"],
    ["toml", "", "[a]\nb = 1\n"],
    ["toml", "# c", "# c\n\n[a]\nb = 1"],
    ["toml", "[a]\n\n[c]\n", "[a]\nb = 1\n\n[c]\n"],
  ])("%s %j", (format, before, after) => {
    expect(added(format, before, ["a", "b"], 1)).toBe(after);
  });
});

describe("[skill-15c] what is there already", () => {
  it.each<[Format, string, string]>([
    [
      "jsonc",
      '{\n  "s": {\n    "a": { "b": 1 }, // c\n    "z": 1\n  }\n}',
      '{\n  "s": {\n    "a": { "c": "2" }, // c\n    "z": 1\n  }\n}',
    ],
    ["json5", "{s: {a: 0xF, z: 1}}", '{s: {a: { c: "2" }, z: 1}}'],
    [
      "yaml",
      "s:\n  a:\n    b: 1\n    # gone\n    d: 3\n  # stays\n  z: 1\n",
      's:\n  a:\n    c: "2"\n  # stays\n  z: 1\n',
    ],
    ["yaml", "s:\n  a: # c\n  z: 1\n", 's:\n  a:\n    c: "2" # c\n  z: 1\n'],
    ["yaml", "s: {a: 1, z: 1} # c\n", 's: {a: { c: "2" }, z: 1} # c\n'],
    ["toml", "[s.a]\nb = 1\n\n[s.z]\n\n[s.a.d]\ne = 1\n\n[t]\n", '[s.a]\nc = "2"\n\n[s.z]\n\n[t]\n'],
    ["toml", "[s]\na.b = 1 # c\nz = 1\na.d = 2\n", '[s]\na = { c = "2" } # c\nz = 1\n'],
    ["toml", "s = { a = 1, z = 1 }\n", 's = { a = { c = "2" }, z = 1 }\n'],
  ])("is replaced where it stands: %s %j", (format, before, after) => {
    const result = editorFor(format).set(before, ["s", "a"], { c: "2" });
    expect(result).toEqual({ text: after, madeFrom: 2 });
  });

  it.each<[Format, string, string]>([
    ["jsonc", '{ "s": { "a": 1, "z": 2 } }', '{ "s": { "z": 2 } }'],
    ["yaml", "s:\n  a: |\n    x\n\n    y\n  z: 1\n", "s:\n  z: 1\n"],
    ["yaml", "s:\n- a: 1\n  b: 2\n", "s:\n- a: 1\n  b: 2\n"],
    ["toml", '[s]\na.x = 1\n"a".y = 2\n\n[s.a.b]\n\n[[s.a.c]]\nd = 1\n\n[s.z]\n', "[s]\n\n[s.z]\n"],
    ["toml", "[s.a]\nx = 1\n\n[s.z]\n", "[s.z]\n"],
  ])("is removed in whatever way it is written: %s %j", (format, before, after) => {
    expect(editorFor(format).remove(before, ["s", "a"])).toBe(after);
  });

  it("keeps containers that were not made, and those that hold a comment", () => {
    const jsonc = editorFor("jsonc");
    expect(jsonc.remove('{"s":{"a":1}}', ["s", "a"])).toBe('{"s":{}}');
    expect(jsonc.remove('{"s":{"a":1}}', ["s", "a"], { alsoFrom: 0 })).toBe("{}");
    expect(jsonc.remove('{"s":{"a":1 /* c */}}', ["s", "a"], { alsoFrom: 0 })).toBe('{"s":{ /* c */}}');
    expect(editorFor("yaml").remove("s: # c\n  a: 1\n", ["s", "a"], { alsoFrom: 0 })).toBe("s: # c\n");
    expect(editorFor("toml").remove("[s]\na = 1\n", ["s", "a"])).toBe("[s]\n");
  });

  it("is found as the file writes it: quoted, escaped, last of two", () => {
    expect(editorFor("json5").remove("{'\\u0061': 1, \"b\": 2}", ["a"])).toBe('{"b": 2}');
    expect(editorFor("jsonc").set('{"a":1,"a":2}', ["a"], 3).text).toBe('{"a":1,"a":3}');
    expect(editorFor("yaml").remove("'a': 1\n\"b\": 2\n", ["a"])).toBe('"b": 2\n');
    expect(editorFor("toml").remove("'a' = 1\n\"b\" = 2\n", ["a"])).toBe('"b" = 2\n');
  });

  it("of a list goes in and out by its name, in any of its files", () => {
    const names = fc.uniqueArray(fc.constantFrom("a", "b", "c d", "1"), { maxLength: 4 });
    for (const format of ["jsonc", "yaml"] as const) {
      fc.assert(
        fc.property(names, fc.integer({ min: 0, max: 3 }), (all, gone) => {
          const empty = format === "yaml" ? "x: 1 # c\n" : '{ // c\n  "x": 1\n}\n';
          const editor = editorFor(format);
          const text = all.reduce((left, is) => editor.set(left, ["l", { key: "name", is }], { n: 1 }).text, empty);
          const present = all.map((name) => ({ name, n: 1 }));
          expect(editor.parse(text)).toEqual({ x: 1, ...(all.length > 0 ? { l: present } : {}) });
          const order = [...all.slice(gone), ...all.slice(0, gone)];
          expect(
            order.reduce((left, is) => editor.remove(left, ["l", { key: "name", is }], { alsoFrom: 0 }), text),
          ).toBe(empty);
        }),
        { numRuns: 50 },
      );
    }
  });
});

describe("[skill-15b] what cannot be edited", () => {
  it.each<[Format, string, number, number]>([
    ["jsonc", '{\n  "token": "sk-secret\n}', 2, 12],
    ["jsonc", '{"a": sk-secret}', 1, 7],
    ["json5", "{\n  token: 'sk-secret' x: 1 }", 2, 22],
    ["json5", "{ token: 'sk-secret'", 1, 21],
    ["yaml", "a: 1\ntoken: sk-secret: x\n", 2, 8],
    ["yaml", "a: *sk-secret\n", 1, 1],
    ["yaml", "a: 1\n--- sk-secret\n", 2, 1],
    ["toml", 'a = 1\ntoken = "sk-secret\n', 2, 19],
    ["toml", 'a = "sk-secret"\na = 2\n', 2, 1],
  ])("is told with its place and without its text: %s %j", (format, text, line, column) => {
    const editor = editorFor(format);
    for (const attempt of [
      () => editor.parse(text),
      () => editor.set(text, ["x"], 1),
      () => editor.remove(text, ["x"]),
    ]) {
      const error = thrownBy(attempt);
      expect(error).toBeInstanceOf(TextSyntaxError);
      expect(error).toMatchObject({ code: "invalid_config", line, column });
      expect(String(error)).not.toMatch(/sk|secret/);
    }
  });

  it.each<[Format, string, RegExp]>([
    ["jsonc", "[]", /the document is not an object/],
    ["jsonc", '{"s": null}', /s is not an object/],
    ["json5", "{s: 'text'}", /s is not an object/],
    ["yaml", "s: [1]\n", /s is not an object/],
    ["yaml", "b: &b {}\ns: *b\n", /s is not an object/],
    ["toml", "s = 1\n", /s is not an object/],
    ["toml", "[[s]]\n", /s is not an object/],
  ])("because something else is in the way: %s %j", (format, text, message) => {
    const error = thrownBy(() => editorFor(format).set(text, ["s", "a"], 1));
    expect(error).toMatchObject({ code: "invalid_config", message: expect.stringMatching(message) });
  });

  it("because it would change something else too", () => {
    const error = thrownBy(() => editorFor("yaml").set("b: &b\n  c: 1\nd: *b\n", ["b", "new"], 1));
    expect(error).toMatchObject({ code: "internal", hint: expect.stringContaining("was not changed") });
  });

  it("because the format, or JavaScript, cannot hold it", () => {
    expect(thrownBy(() => editorFor("toml").set("", ["a"], { b: null }))).toMatchObject({ code: "invalid_arguments" });
    expect(thrownBy(() => editorFor("toml").set("", [{ key: "a", is: "b" }], {}))).toMatchObject({
      code: "invalid_arguments",
    });
    for (const format of ["jsonc", "json5", "yaml", "toml"] as const) {
      const editor = editorFor(format);
      expect(thrownBy(() => editor.set("", ["a", "__proto__"], 1))).toMatchObject({ code: "invalid_arguments" });
      expect(thrownBy(() => editor.set("", [], {}))).toMatchObject({ code: "invalid_arguments" });
      expect(thrownBy(() => editor.set("", ["a"], undefined))).toMatchObject({ code: "invalid_arguments" });
    }
  });

  it("a key named __proto__ in the file is a key like any other", () => {
    const text = '{"__proto__": {"x": 1}, "a": 1}';
    const value = editorFor("jsonc").parse(text);
    expect(Object.keys(value as object)).toEqual(["__proto__", "a"]);
    expect(editorFor("jsonc").set(text, ["b"], 2).text).toBe('{"__proto__": {"x": 1}, "a": 1, "b": 2}');
  });

  it("YAML that multiplies without end", () => {
    const rows = ["a: &a [x,x,x,x,x,x,x,x,x]"];
    for (const [one, other] of ["ab", "bc", "cd", "de", "ef"])
      rows.push(`${other}: &${other} [${Array(9).fill(`*${one}`).join(",")}]`);
    expect(thrownBy(() => editorFor("yaml").parse(rows.join("\n")))).toBeInstanceOf(TextSyntaxError);
  });
});

function thrownBy(task: () => unknown): unknown {
  try {
    task();
  } catch (error) {
    return error;
  }
  return undefined;
}
