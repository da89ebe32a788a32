import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import type { JsonObject } from "../../src/model/json.ts";
import type { Tool } from "../../src/model/tool.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { ToolRegistry } from "../../src/tools/tool-registry.ts";
import { use, useContext } from "./support.ts";

const SUM_SCHEMA = {
  type: "object",
  properties: { a: { type: "number" }, b: { type: "number" } },
  required: ["a", "b"],
};

const sum = ({ a, b }: { readonly a: number; readonly b: number }): string => String(a + b);
const about = { name: "sum", description: "Adds two numbers." };

/** One tool from each library. Valibot has no conversion to JSON Schema of its own. */
const TOOLS: readonly (readonly [library: string, tool: Tool])[] = [
  ["zod", defineTool({ ...about, input: z.object({ a: z.number(), b: z.number() }), execute: sum })],
  ["arktype", defineTool({ ...about, input: type({ a: "number", b: "number" }), execute: sum })],
  [
    "valibot",
    defineTool({ ...about, input: v.object({ a: v.number(), b: v.number() }), inputSchema: SUM_SCHEMA, execute: sum }),
  ],
];

function run(tool: Tool, args: JsonObject): Promise<JsonObject> {
  const registry = new ToolRegistry();
  registry.register(tool);
  return registry.source().run(use(tool.name, args), useContext());
}

describe("a tool with a Standard Schema", () => {
  it.each(TOOLS)("of %s offers it as JSON Schema and runs with checked arguments", async (_library, tool) => {
    expect(tool.parameters).toMatchObject(SUM_SCHEMA);
    expect(tool.parameters).not.toHaveProperty("$schema");
    expect(await run(tool, { a: 1, b: 2 })).toEqual({ content: [{ type: "text", text: "3" }] });
    await expect(run(tool, { a: 1, b: "2" })).rejects.toMatchObject({
      code: "invalid_arguments",
      message: 'Arguments of the tool "sum" do not fit: b must be number, found a string of 1 characters.',
    });
  });

  it.each([
    ["zod", z.object({ even: z.number().refine((n) => n % 2 === 0, "must be even") }), "even: must be even"],
    ["valibot", v.object({ even: v.pipe(v.number(), v.multipleOf(2, "must be even")) }), "even: must be even"],
    ["arktype", type({ even: "number % 2" }), "even must be even (was 3)"],
  ] as const)("of %s reports what only the library can check", async (_library, input, problem) => {
    const inputSchema = { type: "object", properties: { even: { type: "number" } } };
    const tool = defineTool({ name: "half", description: "", input, inputSchema, execute: () => "" });
    await expect(run(tool, { even: 3 })).rejects.toMatchObject({
      code: "invalid_arguments",
      message: `Arguments of the tool "half" do not fit: ${problem}.`,
    });
  });

  it("gets what the schema made of the arguments, and the context of the call", async () => {
    const seen: unknown[] = [];
    const tool = defineTool({
      name: "due",
      label: "Due",
      description: "",
      annotations: { readOnlyHint: true },
      input: z.object({ day: z.iso.date().transform((day) => new Date(day)), urgent: z.boolean().default(false) }),
      async execute(args, context) {
        expectTypeOf(args).toEqualTypeOf<{ day: Date; urgent: boolean }>();
        seen.push(args, context.toolCallId, context.signal?.aborted);
        return { content: [{ type: "text", text: "noted" }], details: { year: args.day.getUTCFullYear() } };
      },
    });
    expectTypeOf(tool).toEqualTypeOf<Tool<JsonObject, { year: number }>>();
    expect(tool).toMatchObject({ label: "Due", annotations: { readOnlyHint: true } });
    expect(tool.parameters["required"]).toEqual(["day"]);
    expect(await run(tool, { day: "2026-11-17" })).toMatchObject({ details: { year: 2026 } });
    expect(seen).toEqual([{ day: new Date("2026-11-17"), urgent: false }, "call-1", false]);
  });

  it("infers the arguments from every library", () => {
    const inputSchema = { type: "object" };
    defineTool({
      ...about,
      input: v.object({ name: v.optional(v.string(), "x") }),
      inputSchema,
      execute: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ name: string }>();
        return args.name;
      },
    });
    defineTool({
      ...about,
      input: type({ "count?": "number" }),
      execute: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ count?: number }>();
        return String(args.count);
      },
    });
  });

  it("is refused without inputSchema where there is no JSON Schema for it", () => {
    const define = (input: StandardSchemaV1) => () => defineTool({ ...about, input, execute: () => "" });
    const hint = "Set inputSchema to the JSON Schema of the arguments.";
    expect(define(v.object({ a: v.number() }))).toThrow(
      expect.objectContaining({
        code: "invalid_arguments",
        message:
          'The input of the tool "sum", a schema of valibot, cannot be converted to JSON Schema. valibot does not offer it.',
        hint,
      }),
    );
    expect(define(z.object({ when: z.date() }))).toThrow(
      expect.objectContaining({
        message:
          'The input of the tool "sum", a schema of zod, cannot be converted to JSON Schema. Date cannot be represented in JSON Schema.',
        hint,
      }),
    );
  });

  it("converts schemas of zod 4 that do not have the extension yet", () => {
    const schema = z.object({ a: z.number() });
    const { jsonSchema: _, ...standard } = schema["~standard"];
    const older = Object.create(schema, { "~standard": { value: standard } });
    const tool = defineTool({ ...about, input: older, execute: () => "" });
    expect(tool.parameters).toEqual({
      type: "object",
      properties: { a: { type: "number" } },
      required: ["a"],
    });
  });

  it("is refused if it is none", () => {
    // Programs without types call it too.
    const input = { type: "object" } as unknown as StandardSchemaV1;
    expect(() => defineTool({ ...about, input, execute: () => "" })).toThrow(
      expect.objectContaining({ message: 'The input of the tool "sum" is not a Standard Schema.' }),
    );
  });
});
