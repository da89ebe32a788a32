/** Several schemas that all hold (`allOf`) as one. What cannot be said in one schema is dropped, so the result never allows less. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { canonical } from "./copy.ts";
import type { Notes } from "./notes.ts";
import { ANNOTATIONS, schemaMap, stringList } from "./positions.ts";

/** Keywords that mean something only together: of two such groups the first stands. */
const GROUPS: readonly (readonly [head: string, ...rest: string[]])[] = [
  ["if", "then", "else"],
  ["contains", "minContains", "maxContains"],
  ["prefixItems", "items"],
];

/** Annotations of earlier members win. Linear in the members together: a schema from outside may have thousands. */
export function mergeSchemas(members: readonly JsonObject[], notes: Notes, path: string): JsonObject {
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
  readonly #notes: Notes;
  readonly #path: string;
  readonly #slots = new Map<string, Slot>();
  /** `canonical` of the head of each group. */
  readonly #heads = new Map<string, string>();

  constructor(notes: Notes, path: string) {
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
      const text = canonical(member[head]);
      const known = this.#heads.get(head);
      if (known === undefined) this.#heads.set(head, text);
      if (known === undefined || known === text) continue;
      for (const keyword of group) dropped.add(keyword);
      this.#notes.add(`two different ${head} cannot be merged; the second is dropped`, this.#path);
    }
    return dropped;
  }
}

function mergeOf(keyword: string, first: unknown, notes: Notes, path: string): KeywordMerge {
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
      const refused = new Map([[canonical(first), first]]);
      return {
        add: (value) => void refused.set(canonical(value), value),
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

function mergeOfValues(keyword: string, first: unknown, notes: Notes, path: string): KeywordMerge {
  let text: string | undefined;
  return folding(first, (merged, value) => {
    if (typeof merged === "number" && typeof value === "number") {
      if (/^(min|exclusiveMin)/.test(keyword)) return Math.max(merged, value);
      if (/^(max|exclusiveMax)/.test(keyword)) return Math.min(merged, value);
    }
    if (!ANNOTATIONS.has(keyword) && (text ??= canonical(first)) !== canonical(value)) {
      notes.add(`two different ${keyword} cannot be merged; the second is dropped`, path);
    }
    return merged;
  });
}

function mergeOfMaps(first: unknown, notes: Notes, path: string): KeywordMerge {
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

function mergeOfSchemasOrBooleans(first: unknown, notes: Notes, path: string): KeywordMerge {
  const { add, result } = folding(first, (merged, value) => {
    if (merged === false || value === false) return false;
    if (!(merged instanceof SchemaMerge) && !isJsonObject(merged)) return value;
    return isJsonObject(value) ? withSchema(merged, value, notes, path) : merged;
  });
  return { add, result: () => mergedSchema(result()) };
}

function withSchema(known: JsonObject | SchemaMerge, schema: JsonObject, notes: Notes, path: string): SchemaMerge {
  if (known instanceof SchemaMerge) {
    known.add(schema);
    return known;
  }
  const merge = new SchemaMerge(notes, path);
  merge.add(known);
  merge.add(schema);
  return merge;
}

function mergedSchema<T>(known: T | SchemaMerge): T | JsonObject {
  return known instanceof SchemaMerge ? known.result() : known;
}

function commonTypes(first: unknown, second: unknown, notes: Notes, path: string): unknown {
  const others = stringList([second].flat());
  const common = stringList([first].flat()).flatMap((type) => {
    if (others.includes(type)) return [type];
    if (type === "number" && others.includes("integer")) return ["integer"];
    return type === "integer" && others.includes("number") ? [type] : [];
  });
  if (common.length === 0) {
    notes.add(`the types ${canonical(first)} and ${canonical(second)} have nothing in common; the first stands`, path);
    return first;
  }
  return common.length === 1 ? common[0] : common;
}

function mergeOfEnums(first: unknown, notes: Notes, path: string): KeywordMerge {
  if (!Array.isArray(first)) return folding(first, () => first);
  let common = first.map((value: unknown) => ({ value, text: canonical(value) }));
  let texts = new Set(common.map(({ text }) => text));
  return {
    add: (value) => {
      if (!Array.isArray(value)) return;
      // Only what is in the new list is looked up, so that a long first list is not read again for each member.
      const both = new Set(value.map(canonical).filter((text) => texts.has(text)));
      if (both.size === 0) return notes.add("two enums have no value in common; the first stands", path);
      if (both.size === texts.size) return;
      common = common.filter(({ text }) => both.has(text));
      texts = both;
    },
    result: () => common.map(({ value }) => value),
  };
}
