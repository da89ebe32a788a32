/**
 * First step for every provider: a copy in which each reference is replaced by what it points at, each schema is an
 * object, and the keywords that only serve the document (`$id`, `$defs`, `x-…`) are gone.
 *
 * Where something cannot be said, the copy allows more than the original, never less. That is why a constraint which
 * would turn "more" into "less" (`not`, `oneOf`, `if`, `unevaluated…`) gives way when something inside it was widened.
 */
import { isJsonObject, type JsonObject, pointerSteps } from "../model/json.ts";
import {
  ANNOTATIONS,
  BOOLEAN_KEYWORDS,
  copyJson,
  distinct,
  escapePointer,
  MAX_DEPTH,
  SCHEMA_KEYWORDS,
  SCHEMA_LIST_KEYWORDS,
  SCHEMA_MAP_KEYWORDS,
  schemaList,
  schemaMap,
  type SchemaNotes,
  stringList,
  tooDeep,
} from "./schema-keywords.ts";
import { MAX_PATTERN_LENGTH } from "./schema-size.ts";

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

/** Those that were found to exist, such as `L` and `Script=Greek`; there are some thousand. */
const knownProperties = new Set<string>();
export const PLAIN_DIALECT: Dialect = { takesPattern: isRegex, unknown: new Set() };

export function inlineReferences(root: JsonObject, notes: SchemaNotes, dialect: Dialect = PLAIN_DIALECT): JsonObject {
  return new Inliner(root, notes, dialect).schema(root, { path: "", depth: 0, base: root });
}

interface SchemaPosition {
  readonly path: string;
  readonly depth: number;
  /** The schema that `#` refers to. */
  readonly base: JsonObject;
}

class Inliner {
  readonly #notes: SchemaNotes;
  readonly #dialect: Dialect;
  readonly #references: SchemaReferences;
  /** Up to draft-07 everything beside a `$ref` is ignored. */
  readonly #legacy: boolean;
  readonly #ancestors = new Set<unknown>();
  #nodes = 0;
  #widenings = 0;

  constructor(root: JsonObject, notes: SchemaNotes, dialect: Dialect) {
    this.#notes = notes;
    this.#dialect = dialect;
    this.#references = new SchemaReferences(root);
    this.#legacy = typeof root["$schema"] === "string" && /draft-0[3-7]/.test(root["$schema"]);
  }

  schema(value: unknown, place: SchemaPosition): JsonObject {
    if (place.depth > MAX_DEPTH) throw tooDeep(place.path);
    this.#nodes += 1;
    if (value === true) return {};
    if (value === false) return { not: {} };
    if (!isJsonObject(value)) return this.#widen({}, "this is not a schema", place);
    const inside =
      typeof value["$id"] === "string" && !value["$id"].startsWith("#") ? { ...place, base: value } : place;
    this.#ancestors.add(value);
    const before = this.#widenings;
    const node = modernize(value, this.#legacy);
    const own = this.#keywords(node, inside);
    const reference = REFERENCES.map((keyword) => value[keyword]).find((target) => target !== undefined);
    const target = typeof reference === "string" ? this.#follow(reference, inside) : undefined;
    if (reference !== undefined && target === undefined) this.#widen({}, "a malformed reference is dropped", inside);
    if (this.#widenings > before) dropDependents(own, node);
    const schema = target === undefined ? own : this.#combine(target, own);
    this.#ancestors.delete(value);
    return schema;
  }

  #follow(reference: string, place: SchemaPosition): JsonObject {
    const target = this.#references.resolve(reference, place.base);
    if (target === undefined) {
      return this.#widen({}, `the reference ${reference} has no target in this schema`, place);
    }
    if (this.#ancestors.has(target.schema)) {
      return this.#cut(reference, target.schema, "refers to itself; the cycle is cut", place);
    }
    if (this.#nodes > MAX_NODES) {
      return this.#cut(reference, target.schema, "makes the schema too large; it is left open", place);
    }
    return this.schema(target.schema, { ...place, depth: place.depth + 1, base: target.base });
  }

  #cut(reference: string, target: unknown, why: string, place: SchemaPosition): JsonObject {
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

  #keywords(node: JsonObject, place: SchemaPosition): JsonObject {
    const copy: JsonObject = {};
    for (const [keyword, value] of Object.entries(node)) {
      if (DOCUMENT_KEYWORDS.has(keyword) || keyword.startsWith("x-") || value === undefined) continue;
      const at = { ...place, path: `${place.path}/${escapePointer(keyword)}` };
      if (this.#dialect.unknown.has(keyword)) this.#widen({}, `${keyword} is not supported there and is dropped`, at);
      else if (SCHEMA_KEYWORDS.has(keyword)) this.#one(copy, keyword, value, at);
      else if (SCHEMA_LIST_KEYWORDS.has(keyword)) this.#list(copy, node, keyword, value, at);
      else if (SCHEMA_MAP_KEYWORDS.has(keyword)) this.#map(copy, keyword, value, at);
      else this.#value(copy, keyword, value, at);
    }
    if (!("if" in copy)) {
      const { then, else: otherwise } = copy;
      delete copy["then"];
      delete copy["else"];
      // One of the two applies, whichever: what they describe must not go with a condition that could not be kept.
      if (node["if"] !== undefined && [then, otherwise].some(canDescribeProperties))
        copy["allOf"] = [...schemaList(copy["allOf"]), { anyOf: [then ?? {}, otherwise ?? {}] }];
    }
    return copy;
  }

  #inner(schema: unknown, place: SchemaPosition, step = ""): JsonObject {
    return this.schema(schema, { ...place, path: place.path + step, depth: place.depth + 1 });
  }

  #one(copy: JsonObject, keyword: string, value: unknown, place: SchemaPosition): void {
    const before = this.#widenings;
    const schema = typeof value === "boolean" && BOOLEAN_KEYWORDS.has(keyword) ? value : this.#inner(value, place);
    const giveWay = keyword === "not" || keyword === "if" || keyword === "contains";
    if (giveWay && this.#widenings > before) {
      this.#widen({}, `${keyword} is dropped, because something in it could not be kept`, place);
    } else copy[keyword] = schema;
  }

  #list(copy: JsonObject, node: JsonObject, keyword: string, value: unknown, place: SchemaPosition): void {
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

  #map(copy: JsonObject, keyword: string, value: unknown, place: SchemaPosition): void {
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

  #value(copy: JsonObject, keyword: string, value: unknown, place: SchemaPosition): void {
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
      this.#notes.add(`${keyword} is not a keyword of JSON Schema and is dropped`, place.path);
    } else if (isValidKeywordValue(keyword, value)) {
      const copied = copyJson(value, place.path, place.depth);
      this.#nodes += countNodes(copied);
      if (copied !== undefined) copy[keyword] = keyword === "enum" && Array.isArray(copied) ? distinct(copied) : copied;
    } else if (ANNOTATIONS.has(keyword)) this.#notes.add(`a malformed ${keyword} is dropped`, place.path);
    else malformed();
  }

  #takesPattern(source: unknown, place: SchemaPosition): boolean {
    if (typeof source === "string" && this.#dialect.takesPattern(source)) return true;
    this.#widen({}, "a regular expression that cannot be read there is dropped", place);
    return false;
  }

  #widen(schema: JsonObject, note: string, place: SchemaPosition): JsonObject {
    this.#widenings += 1;
    this.#notes.add(note, place.path);
    return schema;
  }
}

function canDescribeProperties(schema: unknown): boolean {
  return (
    isJsonObject(schema) && ["properties", "if", "allOf", "anyOf", "oneOf"].some((key) => schema[key] !== undefined)
  );
}

/** Takes from the copy of a node in which something was widened what would now allow less than it did. */
function dropDependents(copy: JsonObject, node: JsonObject): void {
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
function countNodes(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, member) => sum + countNodes(member), 1);
}

function knownTypes(value: unknown): unknown {
  if (!Array.isArray(value)) return TYPES.has(value) ? value : undefined;
  const types = [...new Set(value.filter((type) => TYPES.has(type)))];
  if (types.length < new Set(value).size) return undefined;
  return types.length === 1 ? types[0] : types.length === 0 ? undefined : types;
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isBoolean: Check = (value) => typeof value === "boolean";
const isNumber: Check = (value) => Number.isFinite(value);
const isCount: Check = (value) => Number.isInteger(value) && Number(value) >= 0;

const all = (check: Check, ...keywords: readonly string[]): [keyword: string, check: Check][] =>
  keywords.map((keyword) => [keyword, check]);

const CHECKS: ReadonlyMap<string, Check> = new Map([
  ...all(isText, "title", "description", "format", "contentEncoding", "contentMediaType"),
  ...all(isBoolean, "deprecated", "readOnly", "writeOnly", "uniqueItems"),
  ...all(isNumber, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
  ...all(isCount, "minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"),
  ...all(isCount, "minProperties", "maxProperties"),
  ...all((value) => isNumber(value) && Number(value) > 0, "multipleOf"),
  ...all(Array.isArray, "examples"),
  ...all(() => true, "default", "const"),
  // An empty enum is valid in JSON Schema, but providers and validators refuse it.
  ...all((value) => Array.isArray(value) && value.length > 0, "enum"),
]);

/**
 * Whether a keyword without schemas in it has a valid value. A provider checks a tool's schema against the meta-schema and
 * refuses the whole request, with all other tools, for one `required: "name"`.
 */
function isValidKeywordValue(keyword: string, value: unknown): boolean {
  return CHECKS.get(keyword)?.(value) ?? true;
}

/**
 * Whether an unknown keyword contains objects. Validators look for ids and anchors in those as if they were schemas, and
 * stumble over bad ones. Scalars and lists of them (`enumNames`) do no harm and may help a model.
 */
function isUnknownObject(keyword: string, value: unknown): boolean {
  return !CHECKS.has(keyword) && [value].flat().some((part) => typeof part === "object" && part !== null);
}

interface Names {
  readonly names: string[];
  /** Whether the value was a list of names and nothing else. */
  readonly whole: boolean;
}

/** The names of `required`, each once. */
function namesOf(value: unknown): Names {
  const found = stringList(value);
  return { names: [...new Set(found)], whole: Array.isArray(value) && found.length === value.length };
}

/** The lists of `dependentRequired`; `undefined` if it is not a map. */
function namesByName(value: unknown): { lists: { [name: string]: string[] }; whole: boolean } | undefined {
  if (!isJsonObject(value)) return undefined;
  const entries = Object.entries(value).map(([name, list]) => [name, namesOf(list)] as const);
  return {
    lists: Object.fromEntries(
      entries.filter(([, { names }]) => names.length > 0).map(([name, { names }]) => [name, names]),
    ),
    whole: entries.every(([, { whole }]) => whole),
  };
}

/** PHP writes an empty map as an empty list. */
function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/**
 * Older spellings (draft-04 to draft-07, OpenAPI) of one schema node as JSON Schema 2020-12. Nested schemas are left as
 * they are.
 */
function modernize(schema: JsonObject, legacy: boolean): JsonObject {
  const node = { ...schema };
  modernizeTuple(node);
  modernizeExclusiveBound(node, "exclusiveMinimum", "minimum");
  modernizeExclusiveBound(node, "exclusiveMaximum", "maximum");
  modernizeNullable(node);
  modernizeExample(node);
  if (legacy) modernizeDependencies(node);
  // Means nothing in 2020-12.
  delete node["dependencies"];
  return node;
}

function modernizeTuple(node: JsonObject): void {
  if (Array.isArray(node["items"])) {
    node["prefixItems"] = node["items"];
    delete node["items"];
    if (node["additionalItems"] !== undefined) node["items"] = node["additionalItems"];
  }
  delete node["additionalItems"];
}

function modernizeExclusiveBound(node: JsonObject, exclusive: string, inclusive: string): void {
  if (typeof node[exclusive] !== "boolean") return;
  const strict = node[exclusive] && typeof node[inclusive] === "number";
  delete node[exclusive];
  if (!strict) return;
  node[exclusive] = node[inclusive];
  delete node[inclusive];
}

function modernizeNullable(node: JsonObject): void {
  const { type } = node;
  if (node["nullable"] === true && type !== undefined) {
    node["type"] = [...new Set([type, "null"].flat())];
    if (Array.isArray(node["enum"]) && !node["enum"].includes(null)) node["enum"] = [...node["enum"], null];
  }
  delete node["nullable"];
}

function modernizeExample(node: JsonObject): void {
  if (node["example"] !== undefined) node["examples"] ??= [node["example"]];
  delete node["example"];
}

function modernizeDependencies(node: JsonObject): void {
  const { dependencies: all } = node;
  if (!isJsonObject(all)) return;
  const entries = Object.entries(all);
  const names = entries.filter(([, value]) => Array.isArray(value));
  const schemas = entries.filter(([, value]) => !Array.isArray(value));
  if (names.length > 0) node["dependentRequired"] = Object.fromEntries(names);
  if (schemas.length > 0) node["dependentSchemas"] = Object.fromEntries(schemas);
}

interface Target {
  /** An object or a boolean, as found. */
  readonly schema: unknown;
  /** The schema that `#` refers to inside the target. */
  readonly base: JsonObject;
}

/** Finds the target of a `$ref` inside one schema document. Nothing outside of it is ever fetched. */
class SchemaReferences {
  readonly #root: JsonObject;
  #index: { readonly ids: Map<string, JsonObject>; readonly anchors: Map<string, JsonObject> } | undefined;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  resolve(reference: string, base: JsonObject): Target | undefined {
    const hash = reference.indexOf("#");
    const uri = hash < 0 ? reference : reference.slice(0, hash);
    const fragment = hash < 0 ? "" : decodeFragment(reference.slice(hash + 1));
    const document = uri === "" ? base : this.#byId(uri);
    if (document === undefined || fragment === undefined) return undefined;
    if (fragment === "") return { schema: document, base: document };
    if (fragment.startsWith("/")) return followPointer(fragment, document);
    const schema = this.#indexed().anchors.get(fragment);
    return schema && { schema, base: document };
  }

  #byId(uri: string): JsonObject | undefined {
    const { ids } = this.#indexed();
    const rootId = this.#root["$id"];
    const absolute = typeof rootId === "string" && URL.canParse(uri, rootId) ? new URL(uri, rootId).href : uri;
    return ids.get(uri) ?? ids.get(absolute);
  }

  /** Built when first asked for, since few schemas use ids or anchors. */
  #indexed(): { readonly ids: Map<string, JsonObject>; readonly anchors: Map<string, JsonObject> } {
    if (this.#index !== undefined) return this.#index;
    const index = { ids: new Map<string, JsonObject>(), anchors: new Map<string, JsonObject>() };
    const rootId = this.#root["$id"];
    const visit = (value: unknown, depth: number): void => {
      if (depth > MAX_DEPTH) return;
      if (Array.isArray(value)) for (const item of value) visit(item, depth + 1);
      if (!isJsonObject(value)) return;
      const { $id, $anchor, $dynamicAnchor } = value;
      for (const anchor of [$anchor, $dynamicAnchor]) {
        if (typeof anchor === "string" && !index.anchors.has(anchor)) index.anchors.set(anchor, value);
      }
      if (typeof $id === "string") {
        if ($id.startsWith("#")) index.anchors.set($id.slice(1), value);
        else index.ids.set($id, value);
        if (typeof rootId === "string" && URL.canParse($id, rootId)) index.ids.set(new URL($id, rootId).href, value);
      }
      for (const inner of Object.values(value)) visit(inner, depth + 1);
    };
    visit(this.#root, 0);
    this.#index = index;
    return index;
  }
}

function followPointer(pointer: string, document: JsonObject): Target | undefined {
  let here: unknown = document;
  let base = document;
  for (const name of pointerSteps(pointer)) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, name)) return undefined;
    // Own keys only, of objects and arrays alike.
    here = (here as JsonObject)[name];
    if (isJsonObject(here) && typeof here["$id"] === "string") base = here;
  }
  return isJsonObject(here) || typeof here === "boolean" ? { schema: here, base } : undefined;
}

function decodeFragment(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return undefined;
  }
}

/**
 * As JSON Schema wants it: ECMA-262 with the `u` flag. Each `\p{…}` takes a tenth of a millisecond to read, so it is looked
 * at once and `\d`, which may stand wherever it may, is read in its place.
 */
export function isRegex(source: string): boolean {
  if (source.length > MAX_PATTERN_LENGTH) return false;
  let isKnown = true;
  const cheap = source.replaceAll(/\\(?:[pP]\{([^{}]*)\}|.)/gsu, (escaped, property: string | undefined) => {
    if (property === undefined) return escaped;
    isKnown &&= isUnicodeProperty(property);
    return "\\d";
  });
  return isKnown && canCompile(cheap);
}

function isUnicodeProperty(name: string): boolean {
  if (knownProperties.has(name)) return true;
  const isOne = canCompile(`\\p{${name}}`);
  if (isOne) knownProperties.add(name);
  return isOne;
}

function canCompile(source: string): boolean {
  try {
    return new RegExp(source, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

/**
 * OpenAI compiles patterns with Python's `re`, and some models also refuse lookaround. A pattern that is left out here and
 * would have been fine (such as most back references) costs the model a hint and nothing else.
 */
export function isRegexForOpenAi(source: string): boolean {
  if (!isRegex(source)) return false;
  // Unicode properties, control letters, back references, code points in braces: read otherwise or not at all.
  for (const [, escaped = ""] of source.matchAll(/\\(u\{|.)/gsu)) if (/^(?:[pPck1-9]|u\{)$/.test(escaped)) return false;
  const bare = source.replaceAll(/\\./gsu, "_");
  // Lookaround and named groups, empty classes, counts that overflow.
  return !/\(\?[=!<]|\[\^?\]|\{(?:\d*,)?\d{10}/.test(bare);
}
