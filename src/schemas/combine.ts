/**
 * Combines schemas into one: several that all apply (`allOf`), and several of which one applies (`anyOf`, `oneOf`). What
 * cannot be expressed in one schema is dropped, so the result never allows less.
 */
import { canonicalJson, isJsonObject, type JsonObject } from "../model/json.ts";
import {
  ANNOTATIONS,
  distinct,
  schemaList,
  schemaMap,
  type SchemaMap,
  type SchemaNotes,
  stringList,
} from "./schema-keywords.ts";

/** Keywords that mean something only together: of two such groups the first is kept. */
const GROUPS: readonly (readonly [head: string, ...rest: string[]])[] = [
  ["if", "then", "else"],
  ["contains", "minContains", "maxContains"],
  ["prefixItems", "items"],
];

/** Annotations of earlier members win. Linear in the members together: a schema from outside may have thousands. */
function mergeSchemas(members: readonly JsonObject[], notes: SchemaNotes, path: string): JsonObject {
  const merge = new SchemaMerge(notes, path);
  for (const member of members) merge.add(member);
  return merge.result();
}

/** The values of one keyword. Made for the second of them, so that a single one stays as it is. */
interface KeywordMerge {
  add(value: unknown): void;
  result(): unknown;
}

type Slot = { readonly only: unknown } | KeywordMerge;

class SchemaMerge {
  readonly #notes: SchemaNotes;
  readonly #path: string;
  readonly #slots = new Map<string, Slot>();
  /** `canonicalJson` of the head of each group. */
  readonly #heads = new Map<string, string>();

  constructor(notes: SchemaNotes, path: string) {
    this.#notes = notes;
    this.#path = path;
  }

  add(member: JsonObject): void {
    const dropped = this.#droppedOf(member);
    for (const [keyword, value] of Object.entries(member)) {
      if (dropped.has(keyword)) continue;
      let slot = this.#slots.get(keyword);
      if (slot === undefined) {
        this.#slots.set(keyword, { only: value });
        continue;
      }
      if ("only" in slot) {
        slot = mergeOf(keyword, slot.only, this.#notes, this.#path);
        this.#slots.set(keyword, slot);
      }
      slot.add(value);
    }
  }

  result(): JsonObject {
    return Object.fromEntries(
      Array.from(this.#slots, ([keyword, slot]) => [keyword, "only" in slot ? slot.only : slot.result()] as const),
    );
  }

  #droppedOf(member: JsonObject): ReadonlySet<string> {
    const dropped = new Set<string>();
    for (const group of GROUPS) {
      const [head] = group;
      if (!(head in member)) continue;
      const text = canonicalJson(member[head]);
      const known = this.#heads.get(head);
      if (known === undefined) this.#heads.set(head, text);
      if (known === undefined || known === text) continue;
      for (const keyword of group) dropped.add(keyword);
      this.#notes.add(`two different ${head} cannot be merged; the second is dropped`, this.#path);
    }
    return dropped;
  }
}

function mergeOf(keyword: string, first: unknown, notes: SchemaNotes, path: string): KeywordMerge {
  switch (keyword) {
    case "type":
      return folding(first, (merged, value) => commonTypes(merged, value, notes, path));
    case "properties":
    case "patternProperties":
    case "dependentSchemas":
      return mergeOfMaps(first, notes, `${path}/${keyword}`);
    case "required": {
      const names = new Set(stringList(first));
      return { add: (value) => stringList(value).forEach((name) => names.add(name)), result: () => [...names] };
    }
    case "allOf": {
      const all = [first].flat();
      return { add: (value) => void all.push(...[value].flat()), result: () => all };
    }
    case "not": {
      const refused = new Map([[canonicalJson(first), first]]);
      return {
        add: (value) => void refused.set(canonicalJson(value), value),
        result: () => ({ anyOf: [...refused.values()] }),
      };
    }
    case "uniqueItems":
      return folding(first, (merged, value) => merged === true || value === true);
    case "additionalProperties":
    case "unevaluatedProperties":
    case "items":
    case "unevaluatedItems":
    case "propertyNames":
      return mergeOfSchemasOrBooleans(first, notes, `${path}/${keyword}`);
    case "enum":
      return mergeOfEnums(first, notes, path);
    default:
      return mergeOfValues(keyword, first, notes, path);
  }
}

function folding(first: unknown, merge: (merged: unknown, value: unknown) => unknown): KeywordMerge {
  let merged = first;
  return { add: (value) => void (merged = merge(merged, value)), result: () => merged };
}

function mergeOfValues(keyword: string, first: unknown, notes: SchemaNotes, path: string): KeywordMerge {
  let text: string | undefined;
  return folding(first, (merged, value) => {
    if (typeof merged === "number" && typeof value === "number") {
      if (/^(min|exclusiveMin)/.test(keyword)) return Math.max(merged, value);
      if (/^(max|exclusiveMax)/.test(keyword)) return Math.min(merged, value);
    }
    if (!ANNOTATIONS.has(keyword) && (text ??= canonicalJson(first)) !== canonicalJson(value)) {
      notes.add(`two different ${keyword} cannot be merged; the second is dropped`, path);
    }
    return merged;
  });
}

function mergeOfMaps(first: unknown, notes: SchemaNotes, path: string): KeywordMerge {
  const map = new Map<string, JsonObject | SchemaMerge>(Object.entries(schemaMap(first)));
  return {
    add: (value) => {
      for (const [name, schema] of Object.entries(schemaMap(value))) {
        const known = map.get(name);
        map.set(name, known === undefined ? schema : withSchema(known, schema, notes, `${path}/${name}`));
      }
    },
    result: () => Object.fromEntries(Array.from(map, ([name, known]) => [name, mergedSchema(known)] as const)),
  };
}

function mergeOfSchemasOrBooleans(first: unknown, notes: SchemaNotes, path: string): KeywordMerge {
  const { add, result } = folding(first, (merged, value) => {
    if (merged === false || value === false) return false;
    if (!(merged instanceof SchemaMerge) && !isJsonObject(merged)) return value;
    return isJsonObject(value) ? withSchema(merged, value, notes, path) : merged;
  });
  return { add, result: () => mergedSchema(result()) };
}

type Known = JsonObject | SchemaMerge;

function withSchema(known: Known, schema: JsonObject, notes: SchemaNotes, path: string): SchemaMerge {
  const merge = known instanceof SchemaMerge ? known : new SchemaMerge(notes, path);
  if (!(known instanceof SchemaMerge)) merge.add(known);
  merge.add(schema);
  return merge;
}

function mergedSchema<T>(known: T | SchemaMerge): T | JsonObject {
  return known instanceof SchemaMerge ? known.result() : known;
}

function commonTypes(first: unknown, second: unknown, notes: SchemaNotes, path: string): unknown {
  const others = stringList([second].flat());
  const common = stringList([first].flat()).flatMap((type) => {
    if (others.includes(type)) return [type];
    if (type === "number" && others.includes("integer")) return ["integer"];
    return type === "integer" && others.includes("number") ? [type] : [];
  });
  if (common.length === 0) {
    const types = `${canonicalJson(first)} and ${canonicalJson(second)}`;
    notes.add(`the types ${types} have nothing in common; the first is kept`, path);
    return first;
  }
  return common.length === 1 ? common[0] : common;
}

function mergeOfEnums(first: unknown, notes: SchemaNotes, path: string): KeywordMerge {
  if (!Array.isArray(first)) return folding(first, () => first);
  let common = first.map((value: unknown) => ({ value, text: canonicalJson(value) }));
  let texts = new Set(common.map(({ text }) => text));
  return {
    add: (value) => {
      if (!Array.isArray(value)) return;
      // Only what is in the new list is looked up, so that a long first list is not read again for each member.
      const both = new Set(value.map(canonicalJson).filter((text) => texts.has(text)));
      if (both.size === 0) return notes.add("two enums have no value in common; the first is kept", path);
      if (both.size === texts.size) return;
      common = common.filter(({ text }) => both.has(text));
      texts = both;
    },
    result: () => common.map(({ value }) => value),
  };
}

const UNIONS = ["anyOf", "oneOf"] as const;

/** `anyOf` of the branches, or something shorter that means the same. */
export function unionOf(branches: readonly JsonObject[]): JsonObject {
  const choices = distinct(branches);
  const [only] = choices;
  if (only === undefined || choices.some((choice) => Object.keys(choice).length === 0)) return {};
  if (choices.length === 1) return only;
  return literalUnion(choices) ?? { anyOf: choices };
}

/** Branches that are bare values become one `enum`, which models read better than a union. */
function literalUnion(branches: readonly JsonObject[]): JsonObject | undefined {
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
export function flattenObject(schema: JsonObject, notes: SchemaNotes, path: string): JsonObject | undefined {
  const { allOf, anyOf: _anyOf, oneOf: _oneOf, ...own } = schema;
  const types = stringList([own["type"]].flat());
  if (own["type"] !== undefined && !types.includes("object")) return undefined;
  const members = schemaList(allOf);
  // Of several conditions one is kept, and what the others describe must not go with them.
  const keeps = [own, ...members].filter((member) => member["if"] !== undefined).length < 2;
  const described = (part: JsonObject): JsonObject => (keeps ? part : withConditionalProperties(part, notes, path));
  const parts: JsonObject[] = [{ ...described(own), type: "object" }];
  const folded: JsonObject[] = [];
  for (const [index, member] of members.entries()) {
    const flat = flattenObject(member, notes, `${path}/allOf/${index}`);
    if (flat === undefined) return undefined;
    parts.push(described(flat));
    folded.push(flat);
  }
  for (const keyword of UNIONS) {
    if (schema[keyword] === undefined) continue;
    const branches = schemaList(schema[keyword])
      .map((branch, index) => flattenObject(branch, notes, `${path}/${keyword}/${index}`))
      .filter((branch) => branch !== undefined)
      // Conditions of a branch do not apply to the others, so none is kept.
      .map((branch) => withConditionalProperties(branch, notes, path));
    if (branches.length === 0) return undefined;
    notes.add(`${keyword} is flattened into one object; which properties go together is no longer expressed`, path);
    folded.push(...branches);
    parts.push(unionOfObjects(branches, schemaMap(mergeSchemas(parts, notes, path)["properties"])));
  }
  if (parts.length === 1) return parts[0];
  const merged = mergeSchemas(parts, notes, path);
  // With parts folded into one, what counts as evaluated is no longer the same.
  if (!folded.every(isClosedOrPlain)) delete merged["unevaluatedProperties"];
  return merged;
}

/**
 * The schema with the properties that only `then`, `else` or `dependentSchemas` describe as optional ones of its own, for
 * places where the conditions themselves are lost. Where no further properties are allowed, those are not either.
 */
function withConditionalProperties(schema: JsonObject, notes: SchemaNotes, path: string): JsonObject {
  if (schema["if"] === undefined && schema["dependentSchemas"] === undefined) return schema;
  if (schema["additionalProperties"] === false) return schema;
  const { then, else: otherwise } = schema["if"] === undefined ? {} : schema;
  const described = [then, otherwise, ...Object.values(schemaMap(schema["dependentSchemas"]))]
    .filter(isJsonObject)
    .map((part) => flattenObject(withConditionalProperties(part, notes, path), notes, path))
    .filter((part) => part !== undefined)
    .map((part) => schemaMap(part["properties"]));
  const own = schemaMap(schema["properties"]);
  const added = Object.entries(unionOfMaps(described, {})).filter(([name]) => !Object.hasOwn(own, name));
  if (added.length === 0) return schema;
  return { ...schema, properties: { ...own, ...Object.fromEntries(added) } };
}

function isClosedOrPlain(schema: JsonObject): boolean {
  const { additionalProperties = false } = schema;
  const plain = ["patternProperties", "if", "dependentSchemas", "not"].every((key) => schema[key] === undefined);
  return plain && additionalProperties === false;
}

function unionOfObjects(branches: readonly JsonObject[], outer: SchemaMap): JsonObject {
  const additional = commonAdditional(branches);
  const mapsOf = (keyword: string): SchemaMap[] => branches.map((branch) => schemaMap(branch[keyword]));
  const patterns = unionOfMaps(mapsOf("patternProperties"), {});
  const properties = unionOfMaps(mapsOf("properties"), outer);
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

/** A name that is also in `outer` is left out unless every branch has it: a branch without it would allow what `outer` allows. */
function unionOfMaps(maps: readonly SchemaMap[], outer: SchemaMap): SchemaMap {
  const all = maps.flatMap((map) => Object.entries(map));
  const byName = Map.groupBy(all, ([name]) => name);
  return Object.fromEntries(
    Array.from(byName).flatMap(([name, entries]) => {
      if (Object.hasOwn(outer, name) && entries.length < maps.length) return [];
      return [[name, unionOf(entries.map(([, schema]) => schema))] as const];
    }),
  );
}

function commonAdditional(branches: readonly JsonObject[]): unknown {
  const all = branches.map(({ additionalProperties }) => additionalProperties);
  if (all.some((value) => value === undefined || value === true)) return undefined;
  const schemas = all.filter(isJsonObject);
  return schemas.length === 0 ? false : unionOf(schemas);
}

/**
 * A schema node without `allOf`, `oneOf` and tuples, for providers that know only plain shapes and `anyOf`. In the result
 * only title and description are beside `anyOf`. Nested schemas are left as they are.
 */
export function simplify(schema: JsonObject, notes: SchemaNotes, path: string): JsonObject {
  let node = withConditionalProperties(schema, notes, path);
  while (node["allOf"] !== undefined) {
    const { allOf, ...rest } = node;
    const members = schemaList(allOf).map((member) => withConditionalProperties(member, notes, path));
    node = mergeSchemas([rest, ...members], notes, path);
  }
  return withoutTuple(flattenOuterUnion(node, notes, path), notes, path);
}

function flattenOuterUnion(node: JsonObject, notes: SchemaNotes, path: string): JsonObject {
  const { anyOf, oneOf, ...own } = node;
  if (anyOf === undefined && oneOf === undefined) return node;
  if (own["properties"] !== undefined || own["additionalProperties"] !== undefined) {
    // Flattening speaks of objects only; null or another type beside them stays allowed.
    return {
      ...(flattenObject(node, notes, path) ?? own),
      ...(own["type"] === undefined ? {} : { type: own["type"] }),
    };
  }
  if (anyOf !== undefined && oneOf !== undefined) notes.add("oneOf beside anyOf is dropped", path);
  if (own["items"] !== undefined || own["prefixItems"] !== undefined) {
    notes.add("a union beside items is dropped", path);
    return own;
  }
  // What is left beside the union is small (types, bounds), so it can be repeated in each branch.
  const { title, description, ...shared } = own;
  const branches = schemaList(anyOf ?? oneOf).map((branch) => mergeSchemas([branch, shared], notes, path));
  const about = { ...(title === undefined ? {} : { title }), ...(description === undefined ? {} : { description }) };
  const either: JsonObject = { ...unionOf(branches), ...about };
  return branches.length === 1 || either["anyOf"] === undefined ? simplify(either, notes, path) : either;
}

function withoutTuple(node: JsonObject, notes: SchemaNotes, path: string): JsonObject {
  const { prefixItems, items, ...rest } = node;
  if (prefixItems === undefined) return node;
  notes.add("a tuple becomes a list of any of its items", path);
  const schemas = [...schemaList(prefixItems), ...(isJsonObject(items) ? [items] : [])];
  const closed = items === false && rest["maxItems"] === undefined ? { maxItems: schemaList(prefixItems).length } : {};
  return { ...rest, ...closed, items: unionOf(schemas) };
}

/** The types that a node allows, inferred from its values or keywords if `type` is absent; empty for any. */
export function typesOf(node: JsonObject): string[] {
  const said = stringList([node["type"]].flat());
  if (said.length > 0) return said;
  const values = valuesOf(node);
  if (values !== undefined) return [...new Set(values.map(typeOfValue))];
  if (node["properties"] !== undefined || isJsonObject(node["additionalProperties"])) return ["object"];
  if (node["items"] !== undefined) return ["array"];
  if (["pattern", "minLength", "maxLength", "format"].some((keyword) => node[keyword] !== undefined)) return ["string"];
  if (["minimum", "maximum", "multipleOf"].some((keyword) => node[keyword] !== undefined)) return ["number"];
  return [];
}

/** The values of `const` or `enum`. */
export function valuesOf(node: JsonObject): unknown[] | undefined {
  if (node["const"] !== undefined) return [node["const"]];
  return Array.isArray(node["enum"]) ? node["enum"] : undefined;
}

export function typeOfValue(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}
