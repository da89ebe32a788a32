import fc from "fast-check";
import { parse, type ParseError } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { removeProperty, setProperty } from "../../../src/files/edit/json-edit.ts";

const ENTRY = { command: "npx", args: ["-y", "pkg"] };

function valueOf(text: string): unknown {
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, { allowTrailingComma: true });
  expect(errors, text).toEqual([]);
  return value;
}

const LAYOUTS: readonly (readonly [string, string])[] = [
  ["an empty object", '{\n  "mcpServers": {}\n}\n'],
  ["one server on one line", '{\n  "mcpServers": {\n    "a": { "command": "x" }\n  }\n}\n'],
  ["a comment on the last line", '{\n  "mcpServers": {\n    "a": { "command": "x" } // tail\n    // end\n  }\n}\n'],
  ["trailing commas", '{\n  // c\n  "mcpServers": {\n    "a": { "command": "x" }, // tail\n  },\n}\n'],
  ["tabs", '{\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}'],
  ["four spaces", '{\n    "mcpServers": {\n        "a": {\n            "command": "x"\n        }\n    }\n}\n'],
  ["CRLF", '{\r\n  "mcpServers": {\r\n    "a": { "command": "x" } // t\r\n  }\r\n}\r\n'],
  ["no spaces at all", '{"mcpServers":{"a":{"command":"x"}}}'],
  ["all on one line", '{ "mcpServers": { "a": { "command": "x" } } }'],
  ["all on one line with a comma", '{ "mcpServers": { "a": { "command": "x" }, } }'],
  ["a comment and nothing else", '{\n\t"mcpServers": {\n\t\t// none yet\n\t}\n}\n'],
  ["a block comment after the comma", '{\n  "mcpServers": {\n    "a": {}, /* one */ /* two */\n  }\n}\n'],
  [
    "a comment before the comma",
    '{\n  "mcpServers": {\n    "a": {} /* one */,\n    "b": {} // , not a comma\n  }\n}\n',
  ],
  ["braces and commas in texts", '{\n  "mcpServers": {\n    "a": { "command": "},{//" }\n  }\n}\n'],
  ["the closing brace behind", '{\n  "mcpServers": {\n    "a": {} }}\n'],
  ["other keys after it", '{\n  "mcpServers": {\n    "a": {}\n  },\n  /* keep */ "limits": {} // me\n}\n'],
];

describe("[spine-19c] text edits", () => {
  it.each(LAYOUTS)("add and remove a server and leave the bytes as they were: %s", (_, before) => {
    const added = setProperty(before, ["mcpServers", "new"], ENTRY);
    const was = valueOf(before) as { mcpServers: object };
    expect(valueOf(added)).toEqual({ ...was, mcpServers: { ...was.mcpServers, new: ENTRY } });
    for (const [comment] of before.matchAll(/\/\/ ?\w.*|\/\*.*?\*\//g)) expect(added).toContain(comment);
    expect(removeProperty(added, ["mcpServers", "new"])).toBe(before);
  });

  it.each(LAYOUTS)("turn a key off and on again in place: %s", (_, before) => {
    const text = setProperty(before, ["mcpServers", "new"], ENTRY);
    const off = setProperty(text, ["mcpServers", "new", "enabled"], false);
    const on = setProperty(off, ["mcpServers", "new", "enabled"], true);
    expect(valueOf(off)).toMatchObject({ mcpServers: { new: { ...ENTRY, enabled: false } } });
    expect(on).toBe(off.replace("false", "true"));
    expect(removeProperty(on, ["mcpServers", "new", "enabled"])).toBe(text);
  });

  it("write as people do", () => {
    expect(
      setProperty(
        '{\n  "mcpServers": {\n    // mine\n    "a": { "command": "x" } // tail\n  }\n}\n',
        ["mcpServers", "new"],
        { ...ENTRY, env: { A: "1" } },
      ),
    ).toBe(
      '{\n  "mcpServers": {\n    // mine\n    "a": { "command": "x" }, // tail\n    "new": {\n      "command": "npx",\n      "args": ["-y", "pkg"],\n      "env": {\n        "A": "1"\n      }\n    }\n  }\n}\n',
    );
    expect(setProperty("{}", ["mcpServers", "a"], { command: "x" })).toBe(
      '{\n  "mcpServers": {\n    "a": {\n      "command": "x"\n    }\n  }\n}',
    );
    expect(setProperty('{"mcpServers":{"a":{}}}', ["mcpServers", "b"], ENTRY)).toBe(
      '{"mcpServers":{"a":{},"b":{"command":"npx","args":["-y","pkg"]}}}',
    );
  });

  it("remove a property from any place of a list", () => {
    const text = '{\n  "a": 1, // one\n  // about b\n  "b": 2, // two\n  "c": 3 // three\n}';
    expect(removeProperty(text, ["a"])).toBe('{\n  // about b\n  "b": 2, // two\n  "c": 3 // three\n}');
    expect(removeProperty(text, ["b"])).toBe('{\n  "a": 1, // one\n  // about b\n  "c": 3 // three\n}');
    expect(removeProperty(text, ["c"])).toBe('{\n  "a": 1, // one\n  // about b\n  "b": 2 // two\n}');
    expect(removeProperty('{"a":1,"b":2}', ["a"])).toBe('{"b":2}');
    expect(removeProperty('{ "x": 1, // c\n  "a": 2 }', ["a"])).toBe('{ "x": 1 // c\n   }');
    expect(removeProperty('{ // c\n  "a": 2, "b": 3\n}', ["a"])).toBe('{ // c\n  "b": 3\n}');
    expect(removeProperty(text, ["d"])).toBe(text);
    expect(removeProperty(text, ["d", "e"])).toBe(text);
  });

  it("change the one that counts of two with one name", () => {
    expect(setProperty('{"a":1,"a":2}', ["a"], 3)).toBe('{"a":1,"a":3}');
    expect(removeProperty('{"a":1,"a":2}', ["a"])).toBe('{"a":1}');
  });

  it("never break a file: any object, any key, any layout", () => {
    const json = fc.dictionary(fc.string({ minLength: 1, maxLength: 4 }), fc.jsonValue({ maxDepth: 2 }), {
      maxKeys: 4,
    });
    const key = fc.string({ minLength: 1, maxLength: 4 }).filter((one) => one !== "__proto__");
    fc.assert(
      fc.property(
        json,
        key,
        fc.jsonValue({ maxDepth: 2 }),
        fc.constantFrom(0, 2, 4, "\t"),
        (object, name, value, indent) => {
          fc.pre(!Object.hasOwn(object, name) && !JSON.stringify([object, value]).includes("__proto__"));
          const before = JSON.stringify(object, null, indent);
          const after = setProperty(before, [name], value);
          expect(JSON.parse(after)).toEqual(JSON.parse(JSON.stringify({ ...object, [name]: value })));
          expect(removeProperty(after, [name])).toBe(before);
        },
      ),
    );
  });
});
