import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  buildArguments,
  missingArguments,
  parseArgumentsObject,
  filesIn,
  parseAssignment,
} from "../../src/cli/tool-arguments.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { ToolcribError } from "../../src/model/errors.ts";

const cwd = mkdtempSync(join(tmpdir(), "toolcrib-arguments-"));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

function build(typed: readonly string[], properties: JsonObject, rest: JsonObject = {}): JsonObject {
  const schema = { type: "object", properties, ...rest };
  return buildArguments(
    typed.map((each) => parseAssignment(each, filesIn(cwd))),
    schema,
    "server__tool",
  ).arguments;
}

function refusal(run: () => unknown): ToolcribError {
  try {
    run();
  } catch (error) {
    if (error instanceof ToolcribError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("[spine-19b] key=value takes its type from the schema", () => {
  const cases: [title: string, schema: JsonObject, typed: string[], value: unknown][] = [
    ["a string stays text, whatever it looks like", { type: "string" }, ["v=123"], "123"],
    ["a string may be empty and hold =", { type: "string" }, ["v=a=b="], "a=b="],
    ["a number", { type: "number" }, ["v=-1.5e2"], -150],
    ["a number with a bare point", { type: "number" }, ["v=.5"], 0.5],
    ["an integer", { type: "integer" }, ["v=42"], 42],
    ["a boolean", { type: "boolean" }, ["v=false"], false],
    ["null", { type: ["string", "null"] }, ["v=null"], null],
    ["nullable of OpenAPI", { type: "integer", nullable: true }, ["v=null"], null],
    ["the more specific of two types", { type: ["string", "number"] }, ["v=7"], 7],
    ["text, where a number has leading zeros", { anyOf: [{ type: "string" }, { type: "number" }] }, ["v=007"], "007"],
    ["an enum of numbers", { enum: [1, 2] }, ["v=2"], 2],
    ["an enum with null", { enum: ["a", null] }, ["v=null"], null],
    ["const", { const: true }, ["v=true"], true],
    ["anyOf of an enum and a boolean", { anyOf: [{ enum: ["auto"] }, { type: "boolean" }] }, ["v=true"], true],
    ["oneOf with an enum member", { oneOf: [{ enum: ["auto"] }, { type: "integer" }] }, ["v=auto"], "auto"],
    ["allOf", { allOf: [{ description: "x" }, { type: "integer" }] }, ["v=3"], 3],
    ["an object as JSON", { type: "object" }, ['v={"a":1}'], { a: 1 }],
    ["an array as JSON", { type: "array", items: { type: "string" } }, ['v=["1","2"]'], ["1", "2"]],
    ["an empty array", { type: "array", items: { type: "string" } }, ["v=[]"], []],
    ["an array of one", { type: "array", items: { type: "string" } }, ["v=1"], ["1"]],
    ["a repeated key", { type: "array", items: { type: "integer" } }, ["v=1", "v=2"], [1, 2]],
    ["an array that may be null", { type: ["array", "null"], items: { type: "integer" } }, ["v=1"], [1]],
    ["string or array, given once", { anyOf: [{ type: "string" }, { type: "array" }] }, ["v=a"], "a"],
    [
      "string or array, given twice",
      { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
      ["v=a", "v=b"],
      ["a", "b"],
    ],
    ["a tuple", { prefixItems: [{ type: "string" }, { type: "integer" }] }, ["v=1", "v=2"], ["1", 2]],
    ["anything: JSON where it is JSON", {}, ["v=[1]"], [1]],
    ["anything: text otherwise", {}, ["v=hello"], "hello"],
    ["anything: repeated", {}, ["v=1", "v=a"], [1, "a"]],
    ["forced JSON", { type: "string" }, ["v:=12"], 12],
    ["an @ that is meant", { type: "string" }, ["v=@@scope/name"], "@scope/name"],
    [
      "nested keys",
      { type: "object", properties: { a: { type: "integer" }, b: { type: "string" } } },
      ["v.a=1", "v.b=2"],
      { a: 1, b: "2" },
    ],
    [
      "nested array by number",
      { type: "array", items: { type: "object", properties: { n: { type: "string" } } } },
      ["v.1.n=5", "v.0.n=4"],
      [{ n: "4" }, { n: "5" }],
    ],
  ];
  it.each(cases)("%s", (_title, schema, typed, value) => {
    expect(build(typed, { v: schema })).toEqual({ v: value });
  });

  it("follows $ref, and one that goes in circles", () => {
    const $defs = {
      size: { type: "integer" },
      node: { type: "object", properties: { next: { $ref: "#/$defs/node" }, size: { $ref: "#/$defs/size" } } },
    };
    expect(build(["node.next.next.size=3"], { node: { $ref: "#/$defs/node" } }, { $defs })).toEqual({
      node: { next: { next: { size: 3 } } },
    });
    const loop = { loop: { $ref: "#/$defs/loop" } };
    expect(build(["v=x"], { v: { $ref: "#/$defs/loop" } }, { $defs: loop })).toEqual({ v: "x" });
  });

  it("takes a dotted key as it stands where the schema has one", () => {
    expect(build(["a.b=1"], { "a.b": { type: "integer" } })).toEqual({ "a.b": 1 });
    expect(() => build(["s.x=1"], { s: { type: "string" } }, { additionalProperties: false })).toThrow(
      /"s\.x" is unknown/,
    );
  });

  it("reads a file, as base64 where the schema says so", () => {
    writeFileSync(join(cwd, "in.txt"), "two\nlines\n");
    expect(build(["v=@in.txt"], { v: { type: "string" } })).toEqual({ v: "two\nlines\n" });
    expect(build(["v=@in.txt"], { v: { type: "string", contentEncoding: "base64" } })).toEqual({
      v: Buffer.from("two\nlines\n").toString("base64"),
    });
    writeFileSync(join(cwd, "in.json"), '{"a": [1]}');
    expect(build(["v:=@in.json"], { v: {} })).toEqual({ v: { a: [1] } });
  });

  it("keeps __proto__ a key like any other", () => {
    const built = build(["__proto__.polluted=1"], {});
    expect(Object.keys(built)).toEqual(["__proto__"]);
    expect(({} as JsonObject)["polluted"]).toBeUndefined();
  });
});

describe("[spine-19b] what does not fit is refused with what is allowed", () => {
  const closed = { additionalProperties: false };
  const cases: [title: string, typed: string[], properties: JsonObject, message: RegExp][] = [
    [
      "a word for a number",
      ["v=ten"],
      { v: { type: "integer", minimum: 1, maximum: 9 } },
      /"v": "ten" is not integer 1\.\.9/,
    ],
    ["a fraction for an integer", ["v=1.5"], { v: { type: "integer" } }, /is not integer/],
    ["an integer that cannot be held", ["v=90071992547409931"], { v: { type: "integer" } }, /too large/],
    ["a boolean in other words", ["v=yes"], { v: { type: "boolean" } }, /write true or false/],
    ["a value outside the enum", ["v=x"], { v: { enum: ["low", "high"] } }, /"x" is not "low" \| "high"/],
    ["text for an object", ["v=x"], { v: { type: "object" } }, /write it as JSON or as nested\.key=value/],
    [
      "an element of the wrong type",
      ["v=1", "v=x"],
      { v: { type: "array", items: { type: "integer" } } },
      /"v": "x" is not integer/,
    ],
    ["a key given twice", ["v=1", "v=2"], { v: { type: "integer" } }, /given 2 times, but takes a single integer/],
    ["whole and in parts", ['v={"a":1}', "v.b=2"], { v: { type: "object" } }, /both as a whole and in parts/],
    [
      "an unknown key, with a near one",
      ["pth=1"],
      { path: { type: "string" } },
      /"pth" is unknown; did you mean "path"/,
    ],
    ["an unknown key, with the known ones", ["zzzzzzz=1"], { path: { type: "string" } }, /known arguments: path/],
  ];
  it.each(cases)("%s", (_title, typed, properties, message) => {
    const error = refusal(() => build(typed, properties, closed));
    expect(error.code).toBe("invalid_arguments");
    expect(error.message).toMatch(message);
  });

  it("tells all problems at once, missing ones too", () => {
    const properties = { a: { type: "integer" }, b: { type: "string" } };
    const error = refusal(() => build(["a=x"], properties, { required: ["a", "b"] }));
    expect(error.details).toEqual({ problems: ['"a": "x" is not integer', '"b" is missing (string)'] });
  });

  it("passes an unknown key on where the schema allows it, and warns if it looks mistyped", () => {
    const schema = { type: "object", properties: { message: { type: "string" } } };
    const built = buildArguments(
      [parseAssignment("messge=7", filesIn(cwd)), parseAssignment("other=1", filesIn(cwd))],
      schema,
      "server__tool",
    );
    expect(built.arguments).toEqual({ messge: 7, other: 1 });
    expect(built.warnings).toEqual([expect.stringMatching(/"messge".*did you mean "message"/)]);
    expect(build(["any=1"], {}, { additionalProperties: { type: "string" } })).toEqual({ any: "1" });
  });

  it("[joy-14a] names the mistyped key where the right one is missing, and the tool to look at", () => {
    const error = refusal(() => build(["mesage=x"], { message: { type: "string" } }, { required: ["message"] }));
    expect(error.details).toEqual({
      problems: ['"message" is missing (string)', '"mesage" is unknown; did you mean "message"'],
    });
    expect(error.hint).toBe("Run toolcrib call server__tool --schema to see its arguments.");
  });

  it.each(["novalue", "=x", ":=1", ""])("%j is no assignment", (typed) => {
    expect(refusal(() => parseAssignment(typed, filesIn(cwd))).code).toBe("invalid_arguments");
  });

  it("says how to write a text that begins with @, and what is no JSON", () => {
    expect(refusal(() => parseAssignment("to=@ada", filesIn(cwd))).hint).toContain("to=@@ada");
    expect(refusal(() => parseAssignment("v:=nope", filesIn(cwd))).message).toContain("not valid JSON");
  });
});

describe("[spine-19b] --args", () => {
  it("is a JSON object and nothing else", () => {
    expect(parseArgumentsObject('{"a": {"b": [1]}}')).toEqual({ a: { b: [1] } });
    for (const text of ["[1]", "1", "null", "{", ""]) {
      expect(refusal(() => parseArgumentsObject(text)).code).toBe("invalid_arguments");
    }
  });

  it("must have what every alternative requires", () => {
    const schema = { properties: { a: {}, b: {} }, anyOf: [{ required: ["a"] }, { required: ["a", "b"] }] };
    expect(missingArguments({}, schema)).toEqual(['"a" is missing (any)']);
    expect(missingArguments({ a: null }, schema)).toEqual([]);
  });
});
