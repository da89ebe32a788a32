import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/model/json.ts";
import type { ToolDefinition } from "../../../src/model/protocol.ts";
import { mirroredParams, paramHeaders } from "../../../src/upstream/http/mcp-headers.ts";

const tool = (inputSchema: JsonObject): ToolDefinition => ({ name: "t", inputSchema });
const props = (properties: JsonObject): JsonObject => ({ type: "object", properties });
const marked = (header: unknown, type: unknown = "string"): JsonObject => ({ type, "x-mcp-header": header });

describe("mirroredParams", () => {
  it("finds parameters at any depth of properties", () => {
    const schema = props({ a: marked("A"), deep: props({ b: marked("B-1", "integer") }), plain: { type: "string" } });
    expect(mirroredParams(tool(schema))).toEqual({
      ok: true,
      params: [
        { header: "A", path: ["a"] },
        { header: "B-1", path: ["deep", "b"] },
      ],
    });
  });

  it.each([
    ["an empty name", props({ a: marked("") })],
    ["a name with a space", props({ a: marked("A B") })],
    ["a line break", props({ a: marked("A\r\nX: 1") })],
    ["a name that is no text", props({ a: marked(7) })],
    ["a number", props({ a: marked("A", "number") })],
    ["an object", props({ a: marked("A", "object") })],
    ["a list of types", props({ a: marked("A", ["string", "null"]) })],
    ["the same name in other letters", props({ a: marked("Region"), b: marked("REGION") })],
    ["items", props({ a: { type: "array", items: marked("A") } })],
    ["a union", { type: "object", anyOf: [props({ a: marked("A") })] }],
    ["a definition", { ...props({}), $defs: { a: marked("A") } }],
    ["the root itself", { ...props({}), "x-mcp-header": "A" }],
  ])("refuses %s", (_name, schema) => {
    expect(mirroredParams(tool(schema))).toMatchObject({ ok: false, reason: expect.stringContaining("x-mcp-header") });
  });

  it("takes data for data", () => {
    expect(mirroredParams(tool(props({ a: { type: "object", default: { "x-mcp-header": "A" } } })))).toEqual({
      ok: true,
      params: [],
    });
  });

  it("lets a property be called like the annotation", () => {
    expect(mirroredParams(tool(props({ "x-mcp-header": { type: "string" } })))).toEqual({ ok: true, params: [] });
  });
});

describe("paramHeaders", () => {
  const schema = props({
    s: marked("S"),
    n: marked("N", "integer"),
    b: marked("B", "boolean"),
    deep: props({ d: marked("D") }),
  });

  it("converts values and leaves out what is absent or null", () => {
    expect(paramHeaders(tool(schema), { s: "us-west1", n: -7, b: false, deep: { d: "x" } })).toEqual({
      "Mcp-Param-S": "us-west1",
      "Mcp-Param-N": "-7",
      "Mcp-Param-B": "false",
      "Mcp-Param-D": "x",
    });
    expect(paramHeaders(tool(schema), { s: null, deep: "no object" })).toEqual({});
  });

  it.each([
    ["Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="],
    [" padded ", "=?base64?IHBhZGRlZCA=?="],
    ["line1\nline2", "=?base64?bGluZTEKbGluZTI=?="],
    ["=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
  ])("encodes %j", (value, expected) => {
    expect(paramHeaders(tool(schema), { s: value })).toEqual({ "Mcp-Param-S": expected });
  });
});
