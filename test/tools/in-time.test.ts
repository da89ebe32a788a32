import { describe, expect, it } from "vitest";
import { fittingArguments } from "../../src/agent/fitting-arguments.ts";
import { checkedArguments } from "../../src/tools/arguments.ts";
import { inTime } from "../../src/tools/in-time.ts";
import { compileForeignSchema, compileSchema } from "../../src/tools/validator.ts";

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const withPattern = (pattern: string) => ({ type: "object", properties: { a: { type: "string", pattern } } });
const items = (pattern: string) => ({ properties: { a: { type: "array", items: { type: "string", pattern } } } });

describe("[agent-02a] schemas that a client brings", () => {
  it("check as others do", () => {
    const schema = {
      type: "object",
      properties: {
        id: { type: "string", pattern: "^[a-z]+(-[a-z]+)*$" },
        year: { type: "string", pattern: "^\\d{4}$" },
      },
      patternProperties: { "^x-": { type: "number" } },
    };
    const validate = compileForeignSchema(schema);
    expect([validate({ id: "a-b", year: "2026", "x-1": 1 }), validate({ id: "A" })]).toEqual([true, false]);
    expect(validate.errors).toMatchObject([{ instancePath: "/id", keyword: "pattern" }]);
    expect([validate({ year: "26" }), validate({ "x-1": "one" })]).toEqual([false, false]);
    expect([compileSchema(schema), compileForeignSchema(schema)]).toEqual([validate, validate]);
    expect(() => compileForeignSchema({ properties: { a: { pattern: "(" } } })).toThrow(/regular expression/);
  });

  it.each([
    ["^(a+)+$", `${"a".repeat(39)}!`],
    ["^(a|a){40}$", `${"a".repeat(39)}!`],
    ["\\s+$", `${" ".repeat(300_000)}a`],
    ["x*y", "x".repeat(300_000)],
  ])("are given up where %s takes too long", async (pattern, text) => {
    const parameters = withPattern(pattern);
    compileForeignSchema(parameters);
    expect(() => checkedArguments({ name: "t", parameters }, { a: text })).toThrow("takes too long");
    await nextTurn();
    // Time is given anew.
    expect(checkedArguments({ name: "t", parameters }, {})).toEqual({});
  });

  it("have one time for a whole call and for all of a turn, however little each pattern takes", async () => {
    const some = { a: Array.from({ length: 1000 }, () => "x".repeat(20_000)) };
    expect(() => compileForeignSchema(items("x*y"))(some)).toThrow("takes too long");
    expect(() => inTime(() => true)).toThrow("takes too long");
    await nextTurn();
    const many = { a: Array.from({ length: 20_000 }, (_, index) => `ab-${index}`) };
    expect(compileForeignSchema(items("^[a-z]+-[0-9]+$"))(many)).toBe(true);
  });

  it("hold the same for what servers say of their tools, when an agent checks a call", async () => {
    await nextTurn();
    const tool = { name: "t", parameters: withPattern("^(a+)+$") };
    expect(() => fittingArguments(tool, { a: `${"a".repeat(39)}!` })).toThrow("takes too long");
    await nextTurn();
    expect(fittingArguments({ name: "odd", parameters: { type: "nothing" } }, { a: 1 })).toEqual({ a: 1 });
  });
});
