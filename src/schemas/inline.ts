/**
 * First step for every provider: a copy in which each reference is replaced by what it points at, each schema is an
 * object, and the keywords that only serve the document (`$id`, `$defs`, `x-…`) are gone.
 *
 * Where something cannot be said, the copy allows more than the original, never less. That is why a constraint which
 * would turn "more" into "less" (`not`, `oneOf`, `if`, `unevaluated…`) gives way when something inside it was widened.
 */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { copyJson, distinct, MAX_DEPTH, tooDeep } from "./copy.ts";
import { isEmptyList, isSound, isUnknownObject, namesByName, namesOf } from "./keyword-values.ts";
import { modernize } from "./modernize.ts";
import type { Notes } from "./notes.ts";
import { isRegex } from "./patterns.ts";
import {
  ANNOTATIONS,
  BOOLEAN_KEYWORDS,
  escapePointer,
  SCHEMA_KEYWORDS,
  SCHEMA_LIST_KEYWORDS,
  SCHEMA_MAP_KEYWORDS,
  schemaList,
  schemaMap,
} from "./positions.ts";
import { References } from "./references.ts";

/**
 * Shared definitions that use each other can double with each step, and a long `enum` is copied for each use; above this,
 * references are cut instead.
 */
const MAX_NODES = 10_000;

const DOCUMENT_KEYWORDS: ReadonlySet<string> = new Set([
  "$schema",
  "$id",
  "$comment",
  "$anchor",
  "$dynamicAnchor",
  "$recursiveAnchor",
  "$vocabulary",
  "$defs",
  "definitions",
  "$ref",
  "$dynamicRef",
  "$recursiveRef",
  "id",
  "__proto__",
]);

const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"] as const;

const TYPES: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

/** How providers differ before anything else is done for them. */
export interface Dialect {
  readonly takesPattern: (source: string) => boolean;
  /** Keywords that cannot be sent. */
  readonly unknown: ReadonlySet<string>;
}

export const PLAIN: Dialect = { takesPattern: isRegex, unknown: new Set() };

export function inlineReferences(root: JsonObject, notes: Notes, dialect: Dialect = PLAIN): JsonObject {
  return new Inliner(root, notes, dialect).schema(root, { path: "", depth: 0, base: root });
}

interface Place {
  readonly path: string;
  readonly depth: number;
  /** The schema that `#` stands for. */
  readonly base: JsonObject;
}

class Inliner {
  readonly #notes: Notes;
  readonly #dialect: Dialect;
  readonly #references: References;
  /** Up to draft-07 whatever stands beside a `$ref` counts for nothing. */
  readonly #legacy: boolean;
  readonly #ancestors = new Set<unknown>();
  #nodes = 0;
  #widenings = 0;

  constructor(root: JsonObject, notes: Notes, dialect: Dialect) {
    this.#notes = notes;
    this.#dialect = dialect;
    this.#references = new References(root);
    this.#legacy = typeof root["$schema"] === "string" && /draft-0[3-7]/.test(root["$schema"]);
  }

  schema(value: unknown, place: Place): JsonObject {
    if (place.depth > MAX_DEPTH) throw tooDeep(place.path);
    this.#nodes += 1;
    if (value === true) return {};
    if (value === false) return { not: {} };
    if (!isJsonObject(value)) return this.#widen({}, "what stands in place of a schema is not one", place);
    const inside =
      typeof value["$id"] === "string" && !value["$id"].startsWith("#") ? { ...place, base: value } : place;
    this.#ancestors.add(value);
    const before = this.#widenings;
    const node = modernize(value, this.#legacy);
    const own = this.#keywords(node, inside);
    const reference = REFERENCES.map((keyword) => value[keyword]).find((target) => target !== undefined);
    const target = typeof reference === "string" ? this.#follow(reference, inside) : undefined;
    if (reference !== undefined && target === undefined) this.#widen({}, "a malformed reference is dropped", inside);
    if (this.#widenings > before) withoutDependents(own, node);
    const schema = target === undefined ? own : this.#combine(target, own);
    this.#ancestors.delete(value);
    return schema;
  }

  #follow(reference: string, place: Place): JsonObject {
    const target = this.#references.resolve(reference, place.base);
    if (target === undefined) {
      return this.#widen({}, `the reference ${reference} leads nowhere in this schema`, place);
    }
    if (this.#ancestors.has(target.schema)) {
      return this.#cut(reference, target.schema, "refers to itself; the cycle is cut", place);
    }
    if (this.#nodes > MAX_NODES) {
      return this.#cut(reference, target.schema, "makes the schema too large; it is left open", place);
    }
    return this.schema(target.schema, { ...place, depth: place.depth + 1, base: target.base });
  }

  #cut(reference: string, target: unknown, why: string, place: Place): JsonObject {
    const name = reference.slice(reference.lastIndexOf("/") + 1);
    const type = isJsonObject(target) ? knownTypes(target["type"]) : undefined;
    const description = name.startsWith("#") ? "The same shape again." : `The shape ${name} again.`;
    return this.#widen({ type, description }, `${reference} ${why}`, place);
  }

  #combine(target: JsonObject, own: JsonObject): JsonObject {
    const annotations = Object.fromEntries(Object.entries(own).filter(([keyword]) => ANNOTATIONS.has(keyword)));
    const onlyAnnotations = Object.keys(annotations).length === Object.keys(own).length;
    if (onlyAnnotations || this.#legacy) return { ...target, ...annotations };
    return { ...own, allOf: [...schemaList(own["allOf"]), target] };
  }

  #keywords(node: JsonObject, place: Place): JsonObject {
    const copy: JsonObject = {};
    for (const [keyword, value] of Object.entries(node)) {
      if (DOCUMENT_KEYWORDS.has(keyword) || keyword.startsWith("x-") || value === undefined) continue;
      const at = { ...place, path: `${place.path}/${escapePointer(keyword)}` };
      if (this.#dialect.unknown.has(keyword)) this.#widen({}, `${keyword} is not known there and is dropped`, at);
      else if (SCHEMA_KEYWORDS.has(keyword)) this.#one(copy, keyword, value, at);
      else if (SCHEMA_LIST_KEYWORDS.has(keyword)) this.#list(copy, node, keyword, value, at);
      else if (SCHEMA_MAP_KEYWORDS.has(keyword)) this.#map(copy, keyword, value, at);
      else this.#value(copy, keyword, value, at);
    }
    if (!("if" in copy)) {
      delete copy["then"];
      delete copy["else"];
    }
    return copy;
  }

  #inner(schema: unknown, place: Place, step = ""): JsonObject {
    return this.schema(schema, { ...place, path: place.path + step, depth: place.depth + 1 });
  }

  #one(copy: JsonObject, keyword: string, value: unknown, place: Place): void {
    const before = this.#widenings;
    const schema = typeof value === "boolean" && BOOLEAN_KEYWORDS.has(keyword) ? value : this.#inner(value, place);
    const giveWay = keyword === "not" || keyword === "if" || keyword === "contains";
    if (giveWay && this.#widenings > before) {
      this.#widen({}, `${keyword} is dropped, because something in it could not be kept`, place);
    } else copy[keyword] = schema;
  }

  #list(copy: JsonObject, node: JsonObject, keyword: string, value: unknown, place: Place): void {
    const before = this.#widenings;
    if (keyword === "prefixItems" && isEmptyList(value)) return;
    const schemas = Array.isArray(value) ? value.map((schema, index) => this.#inner(schema, place, `/${index}`)) : [];
    if (schemas.length === 0) this.#widen({}, `${keyword} is not a list of schemas and is dropped`, place);
    else if (keyword === "oneOf" && this.#widenings > before) {
      // One of the branches may now allow what another does.
      if (node["anyOf"] === undefined) copy["anyOf"] = schemas;
      else copy["allOf"] = [...schemaList(copy["allOf"]), { anyOf: schemas }];
    } else copy[keyword] = keyword === "allOf" ? [...schemaList(copy["allOf"]), ...schemas] : schemas;
  }

  #map(copy: JsonObject, keyword: string, value: unknown, place: Place): void {
    if (isEmptyList(value)) return;
    if (!isJsonObject(value)) return void this.#widen({}, `${keyword} is not an object and is dropped`, place);
    const entries = Object.entries(value).filter(
      ([name]) => keyword !== "patternProperties" || this.#takesPattern(name, place),
    );
    if (entries.length === 0 && Object.keys(value).length > 0) return;
    copy[keyword] = Object.fromEntries(
      entries.map(([name, schema]) => [name, this.#inner(schema, place, `/${escapePointer(name)}`)]),
    );
  }

  #value(copy: JsonObject, keyword: string, value: unknown, place: Place): void {
    const malformed = (): JsonObject => this.#widen({}, `a malformed ${keyword} is dropped`, place);
    if (keyword === "type") {
      const type = knownTypes(value);
      if (type !== undefined) copy["type"] = type;
      else if (typeof value === "string") this.#widen({}, `the type ${value} is unknown and is dropped`, place);
      else malformed();
    } else if (keyword === "required") {
      const { names, whole } = namesOf(value);
      if (names.length > 0) copy["required"] = names;
      if (!whole) malformed();
    } else if (keyword === "dependentRequired") {
      const found = namesByName(value);
      if (found !== undefined) copy["dependentRequired"] = found.lists;
      if (found?.whole !== true && !isEmptyList(value)) malformed();
    } else if (keyword === "pattern") {
      if (this.#takesPattern(value, place)) copy["pattern"] = value;
    } else if (isUnknownObject(keyword, value)) {
      this.#notes.add(`${keyword} is no keyword of JSON Schema and is dropped`, place.path);
    } else if (isSound(keyword, value)) {
      const copied = copyJson(value, place.path, place.depth);
      this.#nodes += nodesOf(copied);
      if (copied !== undefined) copy[keyword] = keyword === "enum" && Array.isArray(copied) ? distinct(copied) : copied;
    } else if (ANNOTATIONS.has(keyword)) this.#notes.add(`a malformed ${keyword} is dropped`, place.path);
    else malformed();
  }

  #takesPattern(source: unknown, place: Place): boolean {
    if (typeof source === "string" && this.#dialect.takesPattern(source)) return true;
    this.#widen({}, "a regular expression that cannot be read there is dropped", place);
    return false;
  }

  #widen(schema: JsonObject, note: string, place: Place): JsonObject {
    this.#widenings += 1;
    this.#notes.add(note, place.path);
    return schema;
  }
}

/** Takes from the copy of a node in which something was widened what would now allow less than it did. */
function withoutDependents(copy: JsonObject, node: JsonObject): void {
  const lost = (keyword: string): boolean =>
    node[keyword] !== undefined && copy[keyword] === undefined && !isEmptyList(node[keyword]);
  const names = (value: unknown): number => Object.keys(schemaMap(value)).length;
  const fewerPatterns = names(copy["patternProperties"]) < Object.keys(Object(node["patternProperties"])).length;
  delete copy["unevaluatedProperties"];
  delete copy["unevaluatedItems"];
  if (lost("properties") || lost("patternProperties") || fewerPatterns) delete copy["additionalProperties"];
  if (lost("prefixItems")) delete copy["items"];
  if (lost("minContains")) delete copy["contains"];
}

/** Recursive: what is copied is bounded in depth. */
function nodesOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, member) => sum + nodesOf(member), 1);
}

function knownTypes(value: unknown): unknown {
  if (!Array.isArray(value)) return TYPES.has(value) ? value : undefined;
  const types = [...new Set(value.filter((type) => TYPES.has(type)))];
  if (types.length < new Set(value).size) return undefined;
  return types.length === 1 ? types[0] : types.length === 0 ? undefined : types;
}
