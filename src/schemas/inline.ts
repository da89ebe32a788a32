/**
 * First step for every provider: a copy in which each reference is replaced by what it points at, each schema is an
 * object, and the keywords that only serve the document (`$id`, `$defs`, `x-…`) are gone.
 *
 * Where something cannot be said, the copy allows more than the original, never less. That is why a constraint which
 * would turn "more" into "less" (`not`, `oneOf`, `if`, `unevaluated…`) gives way when something inside it was widened.
 */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { copyJson, MAX_DEPTH, tooDeep } from "./copy.ts";
import { modernize } from "./modernize.ts";
import type { Notes } from "./notes.ts";
import {
  ANNOTATIONS,
  BOOLEAN_KEYWORDS,
  escapePointer,
  SCHEMA_KEYWORDS,
  SCHEMA_LIST_KEYWORDS,
  SCHEMA_MAP_KEYWORDS,
  schemaList,
  stringList,
} from "./positions.ts";
import { References } from "./references.ts";

/** Shared definitions that use each other can double with each step; above this, references are cut instead. */
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
  "__proto__",
]);

const TYPES: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

export function inlineReferences(root: JsonObject, notes: Notes): JsonObject {
  return new Inliner(root, notes).schema(root, { path: "", depth: 0, base: root });
}

interface Place {
  readonly path: string;
  readonly depth: number;
  /** The schema that `#` stands for. */
  readonly base: JsonObject;
}

class Inliner {
  readonly #notes: Notes;
  readonly #references: References;
  /** Up to draft-07 whatever stands beside a `$ref` counts for nothing. */
  readonly #legacy: boolean;
  readonly #ancestors = new Set<unknown>();
  #nodes = 0;
  #widenings = 0;

  constructor(root: JsonObject, notes: Notes) {
    this.#notes = notes;
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
    const own = this.#keywords(modernize(value, this.#legacy), inside);
    const reference = value["$ref"] ?? value["$dynamicRef"] ?? value["$recursiveRef"];
    const schema = typeof reference === "string" ? this.#combine(this.#follow(reference, inside), own) : own;
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
    return this.#widen({ ...(type === undefined ? {} : { type }), description }, `${reference} ${why}`, place);
  }

  #combine(target: JsonObject, own: JsonObject): JsonObject {
    const annotations = Object.fromEntries(Object.entries(own).filter(([keyword]) => ANNOTATIONS.has(keyword)));
    const onlyAnnotations = Object.keys(annotations).length === Object.keys(own).length;
    if (onlyAnnotations || this.#legacy) return { ...target, ...annotations };
    return { ...own, allOf: [...schemaList(own["allOf"]), target] };
  }

  #keywords(node: JsonObject, place: Place): JsonObject {
    const before = this.#widenings;
    const copy: JsonObject = {};
    for (const [keyword, value] of Object.entries(node)) {
      if (DOCUMENT_KEYWORDS.has(keyword) || keyword.startsWith("x-")) continue;
      if (keyword === "id" && typeof value === "string") continue;
      const path = `${place.path}/${escapePointer(keyword)}`;
      this.#keyword(copy, node, keyword, value, { ...place, path });
    }
    if (!("if" in copy)) {
      delete copy["then"];
      delete copy["else"];
    }
    if (this.#widenings > before) {
      delete copy["unevaluatedProperties"];
      delete copy["unevaluatedItems"];
    }
    return copy;
  }

  /** Copies one keyword of `node` into `copy`. */
  #keyword(copy: JsonObject, node: JsonObject, keyword: string, value: unknown, place: Place): void {
    const { path } = place;
    const before = this.#widenings;
    const inner = (schema: unknown, step = ""): JsonObject =>
      this.schema(schema, { ...place, path: path + step, depth: place.depth + 1 });
    if (SCHEMA_KEYWORDS.has(keyword)) {
      const schema = typeof value === "boolean" && BOOLEAN_KEYWORDS.has(keyword) ? value : inner(value);
      const giveWay = keyword === "not" || keyword === "if" || keyword === "contains";
      if (giveWay && this.#widenings > before) {
        this.#widen({}, `${keyword} is dropped, because something in it could not be kept`, place);
      } else copy[keyword] = schema;
    } else if (SCHEMA_LIST_KEYWORDS.has(keyword)) {
      const schemas = Array.isArray(value) ? value.map((schema, index) => inner(schema, `/${index}`)) : [];
      if (schemas.length === 0) this.#widen({}, `${keyword} is not a list of schemas and is dropped`, place);
      else if (keyword === "oneOf" && this.#widenings > before) {
        // One of the branches may now allow what another does.
        if (node["anyOf"] === undefined) copy["anyOf"] = schemas;
        else copy["allOf"] = [...schemaList(copy["allOf"]), { anyOf: schemas }];
      } else copy[keyword] = keyword === "allOf" ? [...schemaList(copy["allOf"]), ...schemas] : schemas;
    } else if (SCHEMA_MAP_KEYWORDS.has(keyword)) {
      if (!isJsonObject(value)) return void this.#widen({}, `${keyword} is not an object and is dropped`, place);
      const entries = Object.entries(value);
      copy[keyword] = Object.fromEntries(
        entries.map(([name, schema]) => [name, inner(schema, `/${escapePointer(name)}`)]),
      );
    } else if (keyword === "type") {
      const type = knownTypes(value);
      if (type === undefined) this.#widen({}, `the type ${JSON.stringify(value)} is unknown and is dropped`, place);
      else copy["type"] = type;
    } else if (keyword === "required") {
      const names = [...new Set(stringList(value))];
      if (names.length > 0) copy["required"] = names;
    } else if (value !== undefined) {
      copy[keyword] = copyJson(value, path, place.depth);
    }
  }

  #widen(schema: JsonObject, note: string, place: Place): JsonObject {
    this.#widenings += 1;
    this.#notes.add(note, place.path);
    return schema;
  }
}

function knownTypes(value: unknown): unknown {
  if (!Array.isArray(value)) return TYPES.has(value) ? value : undefined;
  const types = [...new Set(value.filter((type) => TYPES.has(type)))];
  if (types.length < new Set(value).size) return undefined;
  return types.length === 1 ? types[0] : types.length === 0 ? undefined : types;
}
