/** Compiles JSON Schemas to validators with ajv, once per schema object, in the dialect that the schema declares. */
import { createRequire } from "node:module";
import type { Ajv, ErrorObject, ErrorObject as AjvError, Options } from "ajv";
import type { Ajv2019 } from "ajv/dist/2019.js";
import type { Ajv2020 } from "ajv/dist/2020.js";
import { type JsonObject, pointerSteps } from "../model/json.ts";

/** A compiled schema. */
export interface Validate {
  (data: unknown): boolean;
  /** Of the last time that it was called. */
  errors?: ErrorObject[] | null;
}

type AnyAjv = Ajv | Ajv2019 | Ajv2020;
type Dialect = "draft-07" | "2019-09" | "2020-12";

const OPTIONS: Options = {
  // Unknown keywords and formats are the author's business, not a reason to refuse a tool.
  strict: false,
  logger: false,
  // One message should name every bad argument, with what was found.
  allErrors: true,
  verbose: true,
  // Without a bound the code of a definition is written out again for each of its uses, which squares the size of a schema.
  inlineRefs: 16,
  code: { regExp: Object.assign(createRegExp, { code: "new RegExp" }) },
};

/**
 * To speed up a search, V8 examines all ways in which eight characters can match. With characters beyond 16 bits that takes up
 * to 40 s for a pattern of a few bytes, and nothing interrupts it. It does so only for its own search, so this one is
 * written out.
 */
function createRegExp(source: string, flags: string): RegExp {
  const plain = new RegExp(source, flags);
  return /\\[pPu]|[^\0-\x7F]/.test(source) ? new RegExp(`^[^]*?(?:${source})`, flags) : plain;
}

/**
 * Most hubs have no tools of their own to check arguments for, and ajv takes 3 MB and 40 ms: it is loaded for the first one.
 * By `require`, because registering a tool is synchronous.
 */
const load = createRequire(import.meta.url);

/**
 * An instance keeps the code of everything that it compiled, even after removeSchema, and every validator keeps its instance.
 * One for each schema would cost more than compiling does.
 */
const MAX_COMPILED_PER_INSTANCE = 100;

const instances = new Map<Dialect, { readonly ajv: AnyAjv; compiled: number }>();
const compiled = new WeakMap<JsonObject, Validate>();
/** Throws what ajv throws for a schema that is not one. No `loadSchema` is set, so a remote `$ref` is never fetched. */
export function compileSchema(schema: JsonObject): Validate {
  let known = compiled.get(schema);
  if (known === undefined) compiled.set(schema, (known = compile(schema)));
  return known;
}

/** Loads ajv and lets it compile the schema of schemas, which takes longer than most schemas do. */
export function prepareCompiler(schema: JsonObject = {}): void {
  sharedAjv(dialectOf(schema), 0);
}

/** After a compilation that was stopped half-way, which leaves an instance in an unknown state. */
export function dropCompilers(): void {
  instances.clear();
}

function compile(schema: JsonObject): Validate {
  const dialect = dialectOf(schema);
  // The dialect is chosen already; leaving `$schema` in would make ajv refuse addresses that it does not know.
  const { $schema: _, ...body } = schema;
  const ajv = usesIds(body) ? createAjv(dialect) : sharedAjv(dialect);
  const validate = ajv.compile(body);
  // ajv keeps every schema it has seen; factories make new ones for each session.
  ajv.removeSchema(body);
  return validate;
}

function dialectOf({ $schema }: JsonObject): Dialect {
  if (typeof $schema !== "string") return "2020-12";
  if (/draft-0[3-7]/.test($schema)) return "draft-07";
  return $schema.includes("2019-09") ? "2019-09" : "2020-12";
}

/** Ids are global in an ajv instance: two schemas that use the same one would clash in a shared instance. */
function usesIds(schema: JsonObject): boolean {
  return JSON.stringify(schema).includes('"$id"');
}

function sharedAjv(dialect: Dialect, uses = 1): AnyAjv {
  let instance = instances.get(dialect);
  if (instance === undefined || instance.compiled >= MAX_COMPILED_PER_INSTANCE) {
    instances.set(dialect, (instance = { ajv: createAjv(dialect), compiled: 0 }));
    instance.ajv.compile({});
  }
  instance.compiled += uses;
  return instance.ajv;
}

/** `require` is untyped; the casts name the types of the same modules. Each is loaded when it is needed. */
function createAjv(dialect: Dialect): AnyAjv {
  const { default: addFormats } = load("ajv-formats") as typeof import("ajv-formats").default;
  const ajv = plainAjv(dialect);
  addFormats(ajv);
  return ajv;
}

function plainAjv(dialect: Dialect): AnyAjv {
  switch (dialect) {
    case "2020-12": {
      const { Ajv2020 } = load("ajv/dist/2020.js") as typeof import("ajv/dist/2020.js");
      return new Ajv2020(OPTIONS);
    }
    case "2019-09": {
      const { Ajv2019 } = load("ajv/dist/2019.js") as typeof import("ajv/dist/2019.js");
      return new Ajv2019(OPTIONS);
    }
    case "draft-07": {
      const { Ajv } = load("ajv") as typeof import("ajv");
      return new Ajv(OPTIONS);
    }
  }
}

/** A union can fail in dozens of ways at once; the first few help a reader. */
const MAX_PROBLEMS = 8;
/** A long list can fail at each of its items. */
const MAX_ERRORS_READ = 1000;
const MAX_SHOWN_LENGTH = 40;

/** The problems of a value that does not fit a schema, in words. */
export interface Problems {
  /** The first few; none if the value fits. */
  readonly problems: string[];
  /** How many others there are. */
  readonly more: number;
  /** A reference leads only to itself. */
  readonly isEndless: boolean;
}

export function problemsOf(validate: Validate, value: unknown): Problems {
  try {
    if (validate(value)) return { problems: [], more: 0, isEndless: false };
  } catch (error) {
    // Such a reference makes ajv recurse until the stack is full.
    if (error instanceof RangeError) return { problems: [], more: 0, isEndless: true };
    throw error;
  }
  const errors = (validate.errors ?? []).slice(0, MAX_ERRORS_READ);
  const all = [...new Set(errors.map(describeProblem))];
  const problems = all.slice(0, MAX_PROBLEMS);
  return { problems, more: all.length - problems.length, isEndless: false };
}

function describeProblem(error: AjvError): string {
  const where = argumentPath(error.instancePath);
  // Each keyword has its own params; the names come from ajv's documentation of errors.
  const params: JsonObject = error.params;
  switch (error.keyword) {
    case "required":
      return `${join(where, String(params["missingProperty"]))} is missing`;
    case "additionalProperties":
    case "unevaluatedProperties": {
      const name = params["additionalProperty"] ?? params["unevaluatedProperty"];
      return `${join(where, String(name))} is not an argument${knownNames(error.parentSchema)}`;
    }
    case "type":
      return `${subject(where)} must be ${[params["type"]].flat().join(" or ")}, found ${kindOf(error.data)}`;
    case "enum":
      return `${subject(where)} must be one of ${list(params["allowedValues"])}, found ${shownValue(error.data)}`;
    case "const":
      return `${subject(where)} must be ${shownValue(params["allowedValue"])}, found ${shownValue(error.data)}`;
    default:
      return `${subject(where)} ${error.message ?? `fails "${error.keyword}"`}, found ${kindOf(error.data)}`;
  }
}

/** `/files/0/name` as `files[0].name`. */
function argumentPath(pointer: string): string {
  let path = "";
  for (const name of pointerSteps(pointer)) path = /^\d+$/.test(name) ? `${path}[${name}]` : join(path, name);
  return path;
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function subject(path: string): string {
  return path === "" ? "the arguments" : path;
}

function knownNames(schema: unknown): string {
  const properties = (schema as { properties?: object } | undefined)?.properties;
  const names = Object.keys(properties ?? {});
  if (names.length === 0) return "";
  return ` (known: ${names.slice(0, 20).join(", ")}${names.length > 20 ? ", …" : ""})`;
}

function list(values: unknown): string {
  const items = Array.isArray(values) ? values : [values];
  return items.slice(0, 20).map(shownValue).join(", ") + (items.length > 20 ? ", …" : "");
}

/** Short values only, and only where a fixed set of values is expected: anything else may be a secret. */
function shownValue(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= MAX_SHOWN_LENGTH ? text : kindOf(value);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === "string") return `a string of ${value.length} characters`;
  if (typeof value === "object") return "an object";
  return `the ${typeof value} ${JSON.stringify(value)}`;
}
