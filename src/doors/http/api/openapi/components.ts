/** JSON Schemas of the contract's zod schemas. Those with an id are written once and referred to. */
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { isJsonObject, type JsonObject } from "../../../../model/json.ts";

const PLACE = "#/components/schemas/";

export class Components {
  readonly schemas: Record<string, JsonObject> = {};

  /** What a caller may send. */
  input(schema: z.ZodType): JsonObject {
    return this.#convert(schema, "input");
  }

  /** What an answer is: closed, unless the schema says otherwise. */
  output(schema: z.ZodType): JsonObject {
    return this.#convert(schema, "output");
  }

  #convert(schema: z.ZodType, io: "input" | "output"): JsonObject {
    // A JSON Schema is a JSON object.
    const whole = z.toJSONSchema(schema, { io, target: "draft-2020-12" }) as JsonObject;
    const { $schema: _dialect, $defs: definitions, ...own } = whole;
    for (const [id, definition] of Object.entries(isJsonObject(definitions) ? definitions : {})) {
      this.#add(id, withReferences(definition));
    }
    return asObject(withReferences(own));
  }

  #add(id: string, definition: unknown): void {
    const { id: _id, ...schema } = asObject(definition);
    const known = this.schemas[id];
    // Sent and answered in different forms it would need two names.
    if (known !== undefined && !isDeepStrictEqual(known, schema)) throw new Error(`Two schemas have the id ${id}.`);
    this.schemas[id] = schema;
  }
}

export function reference(id: string): JsonObject {
  return { $ref: PLACE + id };
}

/** Properties of the contract are never called `$ref`. That an integer is a safe one goes without saying. */
function withReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withReferences);
  if (!isJsonObject(value)) return value;
  const isImplied = (member: unknown): boolean =>
    member === Number.MAX_SAFE_INTEGER || member === Number.MIN_SAFE_INTEGER;
  const members = Object.entries(value).filter(([, member]) => !isImplied(member));
  return Object.fromEntries(
    members.map(([key, member]) => [
      key,
      key === "$ref" && typeof member === "string" ? member.replace(/^#\/\$defs\//, PLACE) : withReferences(member),
    ]),
  );
}

function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
