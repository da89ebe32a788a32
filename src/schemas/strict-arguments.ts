/** The way back from OpenAI's strict mode: a model says null for what it leaves out, and tools do not expect that. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { schemaList, schemaMap, stringList } from "./positions.ts";
import { valuesOf } from "./simplify.ts";

const UNIONS = ["allOf", "anyOf", "oneOf"] as const;

/** The arguments without the nulls that only strict mode allowed. `schema` is the tool's own, with references inlined. */
export function withoutStrictNulls(args: JsonObject, schema: JsonObject): JsonObject {
  return cleanObject(args, [schema]);
}

function clean(value: unknown, schemas: readonly JsonObject[]): unknown {
  if (Array.isArray(value)) {
    const items = schemas.flatMap(alternatives).flatMap(({ items: schema }) => (isJsonObject(schema) ? [schema] : []));
    return value.map((item: unknown) => clean(item, items));
  }
  return isJsonObject(value) ? cleanObject(value, schemas) : value;
}

function cleanObject(value: JsonObject, schemas: readonly JsonObject[]): JsonObject {
  const nodes = schemas.flatMap(alternatives);
  const required = new Set(nodes.flatMap((node) => stringList(node["required"])));
  const entries = Object.entries(value).flatMap(([name, inner]) => {
    const declared = nodes.flatMap((node) => {
      const properties = schemaMap(node["properties"]);
      return Object.hasOwn(properties, name) ? [properties[name] ?? {}] : [];
    });
    const added = inner === null && declared.length > 0 && !required.has(name) && !declared.some(acceptsNull);
    return added ? [] : [[name, clean(inner, declared)] as const];
  });
  return Object.fromEntries(entries);
}

/** The schema and whatever stands beside it in unions. */
function alternatives(schema: JsonObject): JsonObject[] {
  return [schema, ...UNIONS.flatMap((keyword) => schemaList(schema[keyword]).flatMap(alternatives))];
}

function acceptsNull(schema: JsonObject): boolean {
  if (!schemaList(schema["allOf"]).every(acceptsNull)) return false;
  for (const keyword of ["anyOf", "oneOf"]) {
    if (schema[keyword] !== undefined && !schemaList(schema[keyword]).some(acceptsNull)) return false;
  }
  const values = valuesOf(schema);
  if (values !== undefined) return values.includes(null);
  const types = stringList([schema["type"]].flat());
  return types.length === 0 || types.includes("null");
}
