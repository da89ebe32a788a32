/** Several schemas of which one holds (`anyOf`, `oneOf`) as one. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { distinct } from "./copy.ts";
import { mergeSchemas } from "./merge.ts";
import type { Notes } from "./notes.ts";
import { schemaList, schemaMap, stringList, type SchemaMap } from "./positions.ts";

const UNIONS = ["anyOf", "oneOf"] as const;

/** `anyOf` of the branches, or something shorter that says the same. */
export function eitherOf(branches: readonly JsonObject[]): JsonObject {
  const choices = distinct(branches);
  const [only] = choices;
  if (only === undefined || choices.some((choice) => Object.keys(choice).length === 0)) return {};
  if (choices.length === 1) return only;
  return literals(choices) ?? { anyOf: choices };
}

/** Branches that are bare values become one `enum`, which models read better than a union. */
function literals(branches: readonly JsonObject[]): JsonObject | undefined {
  const values: unknown[] = [];
  for (const { type: _, const: value, enum: list, ...rest } of branches) {
    if (Object.keys(rest).length > 0) return undefined;
    if (Array.isArray(list) && value === undefined) values.push(...(list as unknown[]));
    else if (value !== undefined && list === undefined) values.push(value);
    else return undefined;
  }
  const types = new Set(branches.flatMap(({ type }) => stringList([type].flat())));
  const typed = branches.every(({ type }) => type !== undefined);
  const type = types.size === 1 ? [...types][0] : [...types];
  return { ...(typed ? { type } : {}), enum: distinct(values) };
}

/**
 * One object schema without unions at its own level that allows whatever the given one allows; `undefined` if no object
 * can satisfy it. A property that only some branches know is described as those describe it, although a branch that
 * says nothing of it would allow anything there: a model needs the description more than that freedom.
 */
export function flattenObject(schema: JsonObject, notes: Notes, path: string): JsonObject | undefined {
  const { allOf, anyOf: _anyOf, oneOf: _oneOf, ...own } = schema;
  const types = stringList([own["type"]].flat());
  if (own["type"] !== undefined && !types.includes("object")) return undefined;
  const parts: JsonObject[] = [{ ...own, type: "object" }];
  const folded: JsonObject[] = [];
  for (const [index, member] of schemaList(allOf).entries()) {
    const flat = flattenObject(member, notes, `${path}/allOf/${index}`);
    if (flat === undefined) return undefined;
    parts.push(flat);
    folded.push(flat);
  }
  for (const keyword of UNIONS) {
    if (schema[keyword] === undefined) continue;
    const branches = schemaList(schema[keyword])
      .map((branch, index) => flattenObject(branch, notes, `${path}/${keyword}/${index}`))
      .filter((branch) => branch !== undefined);
    if (branches.length === 0) return undefined;
    notes.add(`${keyword} is flattened into one object; which properties go together is no longer said`, path);
    folded.push(...branches);
    parts.push(unionOfObjects(branches, schemaMap(mergeSchemas(parts, notes, path)["properties"])));
  }
  if (parts.length === 1) return parts[0];
  const merged = mergeSchemas(parts, notes, path);
  // With parts folded into one, what counts as evaluated is no longer the same.
  if (!folded.every(isClosedOrPlain)) delete merged["unevaluatedProperties"];
  return merged;
}

function isClosedOrPlain({
  additionalProperties,
  patternProperties,
  if: condition,
  dependentSchemas,
  not,
}: JsonObject): boolean {
  const plain = [patternProperties, condition, dependentSchemas, not].every((keyword) => keyword === undefined);
  return plain && (additionalProperties === undefined || additionalProperties === false);
}

function unionOfObjects(branches: readonly JsonObject[], outer: SchemaMap): JsonObject {
  const additional = commonAdditional(branches);
  const patterns = unionOfMaps(
    branches.map((branch) => schemaMap(branch["patternProperties"])),
    {},
  );
  const properties = unionOfMaps(
    branches.map((branch) => schemaMap(branch["properties"])),
    outer,
  );
  const required = branches
    .map((branch) => stringList(branch["required"]))
    .reduce((common, names) => {
      const known = new Set(names);
      return common.filter((name) => known.has(name));
    });
  return {
    type: "object",
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
    ...(required.length === 0 ? {} : { required }),
    ...(additional === undefined ? {} : { additionalProperties: additional }),
    ...(additional === undefined || Object.keys(patterns).length === 0 ? {} : { patternProperties: patterns }),
  };
}

/** A name that stands in `outer` too is left out unless every branch has it: a branch without it would allow what `outer` allows. */
function unionOfMaps(maps: readonly SchemaMap[], outer: SchemaMap): SchemaMap {
  const byName = new Map<string, JsonObject[]>();
  for (const [name, schema] of maps.flatMap((map) => Object.entries(map))) {
    const known = byName.get(name);
    if (known === undefined) byName.set(name, [schema]);
    else known.push(schema);
  }
  return Object.fromEntries(
    Array.from(byName).flatMap(([name, schemas]) => {
      if (Object.hasOwn(outer, name) && schemas.length < maps.length) return [];
      return [[name, eitherOf(schemas)] as const];
    }),
  );
}

function commonAdditional(branches: readonly JsonObject[]): unknown {
  const all = branches.map(({ additionalProperties }) => additionalProperties);
  if (all.some((value) => value === undefined || value === true)) return undefined;
  const schemas = all.filter(isJsonObject);
  return schemas.length === 0 ? false : eitherOf(schemas);
}
