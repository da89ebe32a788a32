import { describe, expect, it } from "vitest";
import { ConfigDocument, formatPath, renderDiagnostic } from "../../src/config/config-document.ts";

const at = (document: ConfigDocument, path: (string | number)[], atKey = false): string =>
  renderDiagnostic(document.report(path, { severity: "warning", code: "c", message: "m", atKey }));

describe("a document", () => {
  const document = ConfigDocument.parse("f.json", '{\n  "a": [1,\n    { "b": true }],\r\n  "c": {}\n}');

  it("knows the line and column of every value and key", () => {
    expect(at(document, ["a"])).toBe("f.json:2:8: a: m");
    expect(at(document, ["a"], true)).toBe("f.json:2:3: a: m");
    expect(at(document, ["a", 1, "b"])).toBe("f.json:3:12: a[1].b: m");
    expect(at(document, ["c"])).toBe("f.json:4:8: c: m");
    expect(at(document, [])).toBe("f.json:1:1: m");
  });

  it("points at the nearest thing around what is not there", () => {
    expect(at(document, ["c", "missing", "deep"])).toBe("f.json:4:8: c.missing.deep: m");
    expect(at(document, ["a", 7])).toBe("f.json:2:8: a[7]: m");
  });

  it("without text has no line", () => {
    expect(at(ConfigDocument.ofValue("library", {}), ["a"])).toBe("library: a: m");
  });

  it("does not let a key change an object's prototype", () => {
    const { value } = ConfigDocument.parse("f", '{"__proto__": {"polluted": true}, "a": {"constructor": 1}}');
    expect(value).toEqual({ a: { constructor: 1 } });
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  it.each([
    ['{"a": 1 "b": 2}', 'syntax error: a comma is expected, found "\\""'],
    ["{'a': 1}", 'syntax error: this is not a JSON value, found "\'"'],
    ['{"a": "x', "syntax error: the text is not closed"],
    ["{} x", 'syntax error: this is not a JSON value, found "x"'],
    ["/* open", "syntax error: the comment is not closed"],
  ])("says what is wrong with %j", (text, message) => {
    expect(ConfigDocument.parse("f", text).errors[0]?.message).toContain(message);
  });
});

it("writes paths as people do, and quotes odd keys", () => {
  expect(formatPath(["mcpServers", "my server", "args", 0])).toBe('mcpServers["my server"].args[0]');
  expect(formatPath([0, "$a", "b-c", "x.y"])).toBe('[0].$a.b-c["x.y"]');
  expect(formatPath([])).toBe("");
});

it("puts the hint in brackets behind the message", () => {
  const diagnostic = {
    severity: "error",
    code: "c",
    file: "f",
    line: 1,
    column: 2,
    path: "p",
    message: "m",
    hint: "h",
  } as const;
  expect(renderDiagnostic(diagnostic)).toBe("f:1:2: p: m (h)");
});
