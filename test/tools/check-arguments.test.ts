import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { JsonObject } from "../../src/model/json.ts";
import { checkArguments } from "../../src/tools/check-arguments.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { tool, use, useContext } from "./support.ts";

function problemsOf(parameters: JsonObject, args: JsonObject): string {
  try {
    checkArguments(tool("t", { parameters }), args);
    return "";
  } catch (error) {
    expect(error).toMatchObject({ code: "invalid_arguments", details: { tool: "t" } });
    return error instanceof Error ? error.message : "";
  }
}

const FORM: JsonObject = {
  type: "object",
  properties: {
    path: { type: "string", minLength: 2 },
    mode: { enum: ["read", "write"] },
    kind: { const: "file" },
    when: { type: "string", format: "date-time" },
    entries: {
      type: "array",
      items: { type: "object", properties: { size: { type: ["integer", "null"] } }, required: ["size"] },
    },
  },
  required: ["path"],
  additionalProperties: false,
};

describe("messages", () => {
  it.each<[string, JsonObject, string]>([
    ["a missing argument", {}, "path is missing"],
    ["an unknown one", { path: "/x", pth: 1 }, "pth is not an argument (known: path, mode, kind, when, entries)"],
    ["a wrong type", { path: 5 }, "path must be string, found the number 5"],
    ["a value off the list", { path: "/x", mode: "append" }, 'mode must be one of "read", "write", found "append"'],
    ["a value off the constant", { path: "/x", kind: "dir" }, 'kind must be "file", found "dir"'],
    [
      "a nested type",
      { path: "/x", entries: [{ size: 1 }, { size: "big" }] },
      "entries[1].size must be integer or null, found a string of 3 characters",
    ],
    ["a nested missing one", { path: "/x", entries: [{}] }, "entries[0].size is missing"],
    ["a format", { path: "/x", when: "today" }, 'when must match format "date-time", found a string of 5 characters'],
    ["a length", { path: "x" }, "path must NOT have fewer than 2 characters, found a string of 1 characters"],
  ])("[spine-15b] names %s, what was found and what is allowed", (_case, args, expected) => {
    const message = problemsOf(FORM, args);
    expect(message).toContain('the tool "t"');
    expect(message).toContain(expected);
  });

  it("[spine-15b] names every bad argument at once, and does not drown the reader", () => {
    expect(problemsOf(FORM, { path: 1, mode: 2, kind: 3 })).toMatch(/path must.*mode must.*kind must/);
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`p${index}`, 0]));
    expect(problemsOf({ type: "object", additionalProperties: false }, many)).toMatch(
      /p7 is not an argument; 22 more\.$/,
    );
  });

  it("[spine-15b] shows no long text, which may be a secret", () => {
    const secret = "sk-live-0123456789abcdef";
    expect(problemsOf({ type: "object", properties: { n: { type: "number" } } }, { n: secret })).not.toContain(secret);
    const long = "x".repeat(100);
    expect(problemsOf({ type: "object", properties: { n: { enum: ["a"] } } }, { n: long })).toContain(
      "found a string of 100 characters",
    );
  });
});

describe("dialects", () => {
  it("[spine-15b] checks JSON Schema 2020-12", () => {
    const schema = {
      type: "object",
      properties: { pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false } },
    };
    expect(problemsOf(schema, { pair: ["a", 1] })).toBe("");
    expect(problemsOf(schema, { pair: ["a", 1, 2] })).toContain("pair");
    expect(problemsOf({ type: "object", dependentRequired: { a: ["b"] } }, { a: 1 })).toContain("b");
  });

  it("checks draft-07 and 2019-09 where the schema says so", () => {
    const tuple = { type: "object", properties: { pair: { items: [{ type: "string" }], additionalItems: false } } };
    expect(problemsOf({ $schema: "http://json-schema.org/draft-07/schema#", ...tuple }, { pair: ["a", 1] })).toContain(
      "pair",
    );
    expect(
      problemsOf({ $schema: "https://json-schema.org/draft/2019-09/schema", ...tuple }, { pair: ["a", 1] }),
    ).toContain("pair");
    expect(problemsOf({ $schema: "https://example.com/unknown", type: "object", required: ["a"] }, {})).toContain(
      "a is missing",
    );
  });

  it("checks schemas made by zod", () => {
    const schema = z.toJSONSchema(z.object({ email: z.email(), tags: z.array(z.string()).max(2).optional() }));
    expect(problemsOf(schema, { email: "a@b.org", tags: ["x"] })).toBe("");
    expect(problemsOf(schema, { email: "nobody", tags: ["x", "y", "z"] })).toMatch(/email must.*tags must/);
  });

  it("takes two tools whose schemas use the same ids", () => {
    const schema = (type: string): JsonObject => ({
      $id: "https://example.com/same",
      type: "object",
      properties: { a: { $id: "https://example.com/inner", type } },
    });
    expect(problemsOf(schema("string"), { a: 1 })).toContain("a must be string");
    expect(problemsOf(schema("number"), { a: "x" })).toContain("a must be number");
  });
});

it("survives a schema that refers only to itself", () => {
  const endless = {
    type: "object",
    properties: { a: { $ref: "#/$defs/A" } },
    $defs: { A: { anyOf: [{ $ref: "#/$defs/A" }] } },
  };
  expect(problemsOf(endless, {})).toBe("");
  expect(() => checkArguments(tool("t", { parameters: endless }), { a: 1 })).toThrow(/"t" cannot be checked/);
});

it("[spine-15b] checks before execute, which then does not run", async () => {
  let runs = 0;
  const registry = new ToolRegistry();
  registry.register(tool("t", { parameters: FORM, execute: async () => ({ content: [], details: (runs += 1) }) }));
  const source = registry.source();
  await expect(source.run(use("t", { path: 1 }), useContext())).rejects.toMatchObject({ code: "invalid_arguments" });
  expect(runs).toBe(0);
  await source.run(use("t", { path: "/x" }), useContext());
  expect(runs).toBe(1);
});
