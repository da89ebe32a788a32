import { describe, expect, it } from "vitest";
import { fieldOf } from "../../../web/src/views/tools/form-field.ts";
import { problemsOf, startValue, withKey } from "../../../web/src/views/tools/form-value.ts";
import { merged, resolved, type Schema } from "../../../web/src/views/tools/schema.ts";
import { schemaRows, typeText } from "../../../web/src/views/tools/schema-rows.ts";

const SELF: Schema = {
  type: "object",
  properties: { child: { $ref: "#" }, name: { type: "string" } },
};

describe("reading a schema", () => {
  it("follows local references and keeps what stands beside them", () => {
    const root = { $defs: { "a/b": { type: "string", description: "old" } } };
    expect(resolved({ $ref: "#/$defs/a~1b", description: "new" }, root)).toEqual({
      type: "string",
      description: "new",
    });
  });

  it("leaves references to other documents, to nothing, and in circles", () => {
    const root: Schema = { $defs: { loop: { $ref: "#/$defs/loop" } } };
    expect(resolved({ $ref: "https://example.com/x.json" }, root)).toEqual({ $ref: "https://example.com/x.json" });
    expect(resolved({ $ref: "#/$defs/none" }, root)).toEqual({ $ref: "#/$defs/none" });
    expect(resolved({ $ref: "#/$defs/loop" }, root)).toEqual({});
    expect(resolved({ $ref: "#/__proto__/x" }, root)).toEqual({ $ref: "#/__proto__/x" });
  });

  it("lays the members of allOf over each other", () => {
    const whole = merged(
      {
        allOf: [
          { properties: { a: { type: "string" } }, required: ["a"] },
          { properties: { b: { type: "number" } }, required: ["b"] },
        ],
      },
      {},
    );
    expect(Object.keys(whole["properties"] ?? {}).toSorted()).toEqual(["a", "b"]);
    expect(whole["required"]).toEqual(expect.arrayContaining(["a", "b"]));
  });
});

describe("a schema as a table", () => {
  it("[oper-09c] names nested parts with type, need, default, values and bounds", () => {
    const rows = schemaRows({
      type: "object",
      required: ["filter"],
      properties: {
        filter: {
          type: "object",
          properties: { tags: { type: "array", items: { type: "string" }, minItems: 1 } },
        },
        mode: { enum: ["a", "b"], default: "a", description: "How." },
      },
    });
    expect(rows.map(({ path, type, depth, required }) => [path, type, depth, required])).toEqual([
      ["filter", "object", 0, true],
      ["filter.tags", "string[]", 1, false],
      ["mode", "one of", 0, false],
    ]);
    expect(rows[1]?.limits).toEqual(["at least 1 entry"]);
    expect(rows[2]).toMatchObject({ defaultText: '"a"', values: ['"a"', '"b"'], description: "How." });
  });

  it("ends for a schema that holds itself", () => {
    expect(schemaRows(SELF).length).toBeLessThan(50);
  });

  it("writes choices and null into the type", () => {
    expect(typeText({ anyOf: [{ type: "string" }, { type: "null" }] }, {})).toBe("string or null");
    expect(typeText({ type: ["integer", "null"] }, {})).toBe("integer or null");
    expect(typeText({ type: "array", items: { oneOf: [{ type: "string" }, { type: "number" }] } }, {})).toBe(
      "(string or number)[]",
    );
  });
});

describe("a schema as a form", () => {
  it("[oper-09c] finds the input for each kind of value", () => {
    const kinds = (schema: Schema): string => fieldOf(schema, schema).kind;
    expect(kinds({ type: "string" })).toBe("text");
    expect(kinds({ type: "integer" })).toBe("number");
    expect(kinds({ type: "boolean" })).toBe("boolean");
    expect(kinds({ enum: [1, 2] })).toBe("one-of");
    expect(kinds({ const: "x" })).toBe("one-of");
    expect(kinds({ type: "array", items: { type: "string" } })).toBe("list");
    expect(kinds({ type: "object", properties: { a: {} } })).toBe("object");
    expect(kinds({ oneOf: [{ type: "string" }, { type: "number" }] })).toBe("choice");
    expect(kinds({ oneOf: [{ const: "a" }, { const: "b" }] })).toBe("one-of");
  });

  it("[oper-09c] falls back to JSON for what no input fits", () => {
    for (const schema of [{}, { type: ["string", "number"] }, { type: "object" }, { type: "array" }] as const)
      expect(fieldOf(schema, schema).kind).toBe("json");
    expect(fieldOf({ type: "string" }, {}, { depth: 6 }).kind).toBe("json");
  });

  it("takes something-or-null as something", () => {
    expect(fieldOf({ anyOf: [{ type: "integer" }, { type: "null" }], description: "d" }, {})).toMatchObject({
      kind: "number",
      integer: true,
      description: "d",
    });
  });

  it("puts what must be there first, and names choices by their title or tag", () => {
    const field = fieldOf({ type: "object", required: ["b"], properties: { a: {}, b: {} } }, {});
    expect(field.kind === "object" && field.properties.map((property) => property.name)).toEqual(["b", "a"]);
    const choice = fieldOf(
      {
        oneOf: [
          { title: "By id", type: "object" },
          { type: "object", properties: { kind: { const: "name" }, x: {} } },
        ],
      },
      {},
    );
    expect(choice.kind === "choice" && choice.options.map((option) => option.label)).toEqual(["By id", "name"]);
  });

  it("begins with defaults and with what must be there", () => {
    const schema: Schema = {
      type: "object",
      required: ["flag", "inner", "list"],
      properties: {
        flag: { type: "boolean" },
        mode: { type: "string", default: "fast" },
        skipped: { type: "object", properties: { x: { type: "string", default: "y" } } },
        inner: { type: "object", properties: { kind: { const: "k" } }, required: ["kind"] },
        list: { type: "array", items: { type: "string" } },
      },
    };
    expect(startValue(schema, schema)).toEqual({ flag: false, mode: "fast", inner: { kind: "k" }, list: [] });
  });

  it("begins and checks a schema that holds itself", () => {
    const endless: Schema = { ...SELF, required: ["child"] };
    expect(() => startValue(endless, endless)).not.toThrow();
    expect(problemsOf(endless, { child: { child: {} } }, endless)).toEqual([
      { path: "child.child.child", message: "This is required." },
    ]);
  });

  it("[oper-09c] says what is wrong and where", () => {
    const schema: Schema = {
      type: "object",
      required: ["path"],
      properties: {
        path: { type: "string", minLength: 2 },
        count: { type: "integer", maximum: 5 },
        tags: { type: "array", items: { type: "string" }, minItems: 1 },
      },
    };
    const wrong = (value: unknown): string[] => problemsOf(schema, value, schema).map((problem) => problem.path);
    expect(wrong({})).toEqual(["path"]);
    expect(wrong({ path: "a" })).toEqual(["path"]);
    expect(wrong({ path: "ab", count: 6, tags: [undefined] })).toEqual(["count", "tags.0"]);
    expect(wrong({ path: "ab", count: 1.5, tags: [] })).toEqual(["count", "tags"]);
    expect(wrong({ path: "ab", count: Number.NaN })).toEqual(["count"]);
    expect(wrong({ path: "ab", count: 5, tags: ["x"] })).toEqual([]);
  });

  it("drops a key whose value is taken away", () => {
    expect(withKey({ a: 1, b: 2 }, "a", undefined)).toEqual({ b: 2 });
    expect(withKey({ a: 1 }, "b", 0)).toEqual({ a: 1, b: 0 });
  });
});
