/** Schemas as tools really have them, with arguments that fit them: made by zod, made by pydantic, and of well-known MCP servers. */
import { z } from "zod";
import type { JsonObject } from "../../src/model/json.ts";

export interface Sample {
  readonly name: string;
  readonly schema: JsonObject;
  readonly valid: readonly JsonObject[];
}

const Shape = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("circle"), radius: z.number().positive() }),
  z.object({ kind: z.literal("square"), side: z.number().positive(), label: z.string().optional() }),
]);

interface Comment {
  text: string;
  replies: Comment[];
}
const Comment: z.ZodType<Comment> = z
  .lazy(() => z.object({ text: z.string(), replies: z.array(Comment) }))
  .meta({ id: "Comment" });

export const SAMPLES: readonly Sample[] = [
  { name: "no parameters", schema: { type: "object" }, valid: [{}, { a: 1 }] },
  { name: "nothing said at all", schema: {}, valid: [{}, { a: [1] }] },
  {
    name: "zod, plain",
    schema: z.toJSONSchema(
      z.object({
        query: z.string().min(1).max(200).describe("What to look for"),
        limit: z.number().int().positive().max(50).default(10),
        tags: z
          .array(z.enum(["a", "b"]))
          .min(1)
          .optional(),
        since: z.iso.datetime().nullable().optional(),
        site: z.url().optional(),
        extra: z.record(z.string(), z.unknown()).optional(),
      }),
    ),
    valid: [
      { query: "x", limit: 5 },
      { query: "x", limit: 5, tags: ["a"], since: null, site: "https://a.org", extra: { k: [1] } },
      { query: "x", limit: 5, since: "2026-01-01T00:00:00Z" },
    ],
  },
  {
    name: "zod, a discriminated union at the root",
    schema: z.toJSONSchema(Shape),
    valid: [
      { kind: "circle", radius: 1 },
      { kind: "square", side: 2 },
      { kind: "square", side: 2, label: "x" },
    ],
  },
  {
    name: "zod, a union and a tuple inside",
    schema: z.toJSONSchema(
      z.object({ shape: Shape, at: z.tuple([z.number(), z.number()]), id: z.union([z.string(), z.int()]) }),
    ),
    valid: [
      { shape: { kind: "circle", radius: 1 }, at: [1, 2], id: "x" },
      { shape: { kind: "square", side: 1 }, at: [0, 0], id: 7 },
    ],
  },
  {
    name: "zod, an intersection at the root",
    schema: z.toJSONSchema(
      z.intersection(z.looseObject({ a: z.string() }), z.looseObject({ b: z.number().optional() })),
    ),
    valid: [{ a: "x" }, { a: "x", b: 1 }],
  },
  {
    name: "zod, recursive",
    schema: z.toJSONSchema(z.object({ root: Comment })),
    valid: [{ root: { text: "a", replies: [{ text: "b", replies: [{ text: "c", replies: [] }] }] } }],
  },
  {
    name: "zod for draft-07, with definitions and a reference at the root",
    schema: {
      $ref: "#/definitions/Args",
      $schema: "http://json-schema.org/draft-07/schema#",
      definitions: {
        Args: {
          type: "object",
          properties: {
            pair: {
              type: "array",
              items: [{ type: "string" }, { type: "integer", exclusiveMinimum: 0 }],
              minItems: 2,
              maxItems: 2,
            },
            again: { $ref: "#/definitions/Args/properties/pair", description: "Once more" },
          },
          required: ["pair"],
          additionalProperties: false,
          dependencies: { again: ["pair"] },
        },
      },
    },
    valid: [{ pair: ["a", 1] }, { pair: ["a", 1], again: ["b", 2] }],
  },
  {
    name: "pydantic, with $defs, optionals and an enum",
    schema: {
      $defs: {
        Priority: { enum: ["low", "high"], title: "Priority", type: "string" },
        Address: {
          properties: {
            street: { title: "Street", type: "string" },
            zip: { anyOf: [{ type: "string" }, { type: "null" }], default: null, title: "Zip" },
          },
          required: ["street"],
          title: "Address",
          type: "object",
        },
      },
      properties: {
        name: { title: "Name", type: "string" },
        priority: { $ref: "#/$defs/Priority", default: "low" },
        home: { anyOf: [{ $ref: "#/$defs/Address" }, { type: "null" }], default: null },
        others: { items: { $ref: "#/$defs/Address" }, title: "Others", type: "array" },
        scores: { additionalProperties: { type: "number" }, title: "Scores", type: "object" },
      },
      required: ["name"],
      title: "CreateArguments",
      type: "object",
    },
    valid: [
      { name: "x" },
      { name: "x", priority: "high", home: null, others: [{ street: "s", zip: null }], scores: { a: 1 } },
      { name: "x", home: { street: "s", zip: "1" } },
    ],
  },
  {
    name: "pydantic 1, allOf around a reference",
    schema: {
      type: "object",
      properties: { mode: { title: "Mode", description: "How", allOf: [{ $ref: "#/definitions/Mode" }] } },
      definitions: { Mode: { enum: ["r", "w"], type: "string", description: "A mode." } },
    },
    valid: [{}, { mode: "r" }],
  },
  {
    name: "at least one of several (a root anyOf of required)",
    schema: {
      type: "object",
      properties: { project: { type: "string" }, title: { type: "string" }, body: { type: "string" } },
      required: ["project"],
      anyOf: [{ required: ["title"] }, { required: ["body"] }],
    },
    valid: [
      { project: "p", title: "t" },
      { project: "p", body: "b" },
      { project: "p", title: "t", body: "b" },
    ],
  },
  {
    name: "a root oneOf that narrows a property of the root",
    schema: {
      type: "object",
      properties: { action: { type: "string", description: "What to do" }, id: { type: "integer" } },
      required: ["action"],
      oneOf: [
        { properties: { action: { const: "get" } }, required: ["id"] },
        { properties: { action: { const: "list" }, page: { type: "integer" } } },
      ],
    },
    valid: [{ action: "get", id: 1 }, { action: "list" }, { action: "list", page: 2 }],
  },
  {
    name: "property names that are keywords (filesystem and friends)",
    schema: {
      type: "object",
      properties: {
        format: { type: "string" },
        title: { type: "string" },
        default: { type: "boolean" },
        $ref: { type: "string" },
        type: { type: "string", enum: ["object"] },
        properties: { type: "object", properties: { items: { type: "array", items: {} } } },
        "x-trace": { type: "string" },
        $schema: { type: "string" },
        anyOf: { type: "array", items: { type: "string" } },
        required: { type: "boolean" },
        $defs: { type: "object" },
        enum: { type: "string" },
        const: true,
      },
      required: ["format", "$ref", "x-trace"],
    },
    valid: [
      {
        format: "f",
        $ref: "r",
        "x-trace": "t",
        type: "object",
        properties: { items: [1] },
        anyOf: ["x"],
        required: true,
        $defs: {},
        enum: "e",
        const: 1,
      },
    ],
  },
  {
    name: "server-memory create_entities",
    schema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: {
        entities: {
          type: "array",
          items: {
            type: "object",
            properties: {
              name: { type: "string", description: "The name of the entity" },
              entityType: { type: "string" },
              observations: { type: "array", items: { type: "string" } },
            },
            required: ["name", "entityType", "observations"],
            additionalProperties: false,
          },
        },
      },
      required: ["entities"],
      additionalProperties: false,
    },
    valid: [{ entities: [{ name: "n", entityType: "t", observations: ["o"] }] }],
  },
  {
    name: "server-filesystem edit_file",
    schema: {
      type: "object",
      properties: {
        path: { type: "string" },
        edits: {
          type: "array",
          items: {
            type: "object",
            properties: { oldText: { type: "string" }, newText: { type: "string" } },
            required: ["oldText", "newText"],
          },
        },
        dryRun: { type: "boolean", default: false },
      },
      required: ["path", "edits"],
    },
    valid: [{ path: "/x", edits: [{ oldText: "a", newText: "b" }], dryRun: true }],
  },
  {
    name: "numbers in enums, and a mixture (azure-devops, firecrawl)",
    schema: {
      type: "object",
      properties: {
        level: { type: "integer", enum: [0, 1, 2, 4], description: "How much." },
        mixed: { enum: ["auto", 1, true, null] },
        hops: { anyOf: [{ const: 1 }, { const: 2 }] },
        empty: { type: "string", enum: ["", "x"] },
        on: { type: "boolean", const: true },
      },
    },
    valid: [{ level: 4, mixed: "auto", hops: 2, empty: "", on: true }, { mixed: null }, { mixed: true }],
  },
  {
    name: "conditions, exclusions and unevaluated properties",
    schema: {
      type: "object",
      properties: { kind: { enum: ["a", "b"] }, n: { type: "number", not: { const: 13 }, multipleOf: 0.5 } },
      allOf: [{ properties: { x: { type: "string", pattern: "^(?=x)" } } }, { required: ["kind"] }],
      if: { properties: { kind: { const: "a" } } },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: { properties: { y: { type: "integer" } } },
      unevaluatedProperties: false,
    },
    valid: [
      { kind: "a", x: "x1", y: 1 },
      { kind: "b", n: 12.5 },
    ],
  },
  {
    name: "oneOf with a recursive branch",
    schema: {
      type: "object",
      properties: { filter: { $ref: "#/$defs/filter" } },
      $defs: {
        filter: {
          oneOf: [
            { type: "object", properties: { eq: { type: "string" } }, required: ["eq"], additionalProperties: false },
            {
              type: "object",
              properties: { and: { type: "array", items: { $ref: "#/$defs/filter" } } },
              required: ["and"],
              additionalProperties: false,
            },
            {
              type: "object",
              properties: { not: { $ref: "#/$defs/filter" } },
              required: ["not"],
              additionalProperties: false,
            },
          ],
        },
      },
    },
    valid: [{ filter: { and: [{ eq: "a" }, { not: { eq: "b" } }] } }, { filter: { eq: "a" } }],
  },
  {
    name: "anchors and embedded ids",
    schema: {
      $id: "https://example.com/root.json",
      type: "object",
      properties: {
        a: { $ref: "#point" },
        b: { $ref: "other.json" },
        c: { $ref: "https://example.com/other.json#/properties/n" },
      },
      $defs: {
        p: { $anchor: "point", type: "object", properties: { x: { type: "number" } }, required: ["x"] },
        o: { $id: "other.json", type: "object", properties: { n: { type: "integer" }, m: { $ref: "#/properties/n" } } },
      },
    },
    valid: [{ a: { x: 1 }, b: { n: 1, m: 2 }, c: 3 }],
  },
  {
    name: "a reference with constraints beside it",
    schema: {
      type: "object",
      properties: { name: { $ref: "#/$defs/text", maxLength: 3, description: "Short" } },
      $defs: { text: { type: "string", minLength: 1 } },
    },
    valid: [{ name: "abc" }],
  },
];
