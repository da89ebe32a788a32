/** Compiles JSON Schemas to validators with ajv, once per schema object, in the dialect that the schema declares. */
import { createRequire } from "node:module";
import type { Ajv, ErrorObject, Options } from "ajv";
import type { Ajv2019 } from "ajv/dist/2019.js";
import type { Ajv2020 } from "ajv/dist/2020.js";
import type { JsonObject } from "../model/json.ts";

/** What ajv makes of a schema. */
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
 * To search faster, V8 looks at all ways in which eight characters can match. With characters beyond 16 bits that takes up
 * to 40 s for a pattern of a few bytes, and nothing interrupts it. It does so only for a search of its own, so this one is
 * written out.
 */
function createRegExp(source: string, flags: string): RegExp {
  const plain = new RegExp(source, flags);
  return /\\[pPu]|[^\0-\x7F]/.test(source) ? new RegExp(`^[^]*?(?:${source})`, flags) : plain;
}

/**
 * Most hubs have no tools of their own to check arguments for, and ajv takes 3 MB and 40 ms: it is loaded for the first one.
 * By require, as registering a tool is no asynchronous thing.
 */
const require = createRequire(import.meta.url);

/**
 * An instance keeps the code of all that it compiled, whatever it is told to forget, and every validator keeps its instance.
 * One for each schema would cost more than compiling does.
 */
const MOST_COMPILED = 100;

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
  if (instance === undefined || instance.compiled >= MOST_COMPILED) {
    instances.set(dialect, (instance = { ajv: createAjv(dialect), compiled: 0 }));
    instance.ajv.compile({});
  }
  instance.compiled += uses;
  return instance.ajv;
}

function createAjv(dialect: Dialect): AnyAjv {
  const { Ajv, Ajv2019, Ajv2020, addFormats } = loadAjv();
  const ajv =
    dialect === "2020-12" ? new Ajv2020(OPTIONS) : dialect === "2019-09" ? new Ajv2019(OPTIONS) : new Ajv(OPTIONS);
  addFormats(ajv);
  return ajv;
}

/** What `require` gives is untyped; the casts name the types of the very same modules. */
function loadAjv() {
  const { Ajv } = require("ajv") as typeof import("ajv");
  const { Ajv2019 } = require("ajv/dist/2019.js") as typeof import("ajv/dist/2019.js");
  const { Ajv2020 } = require("ajv/dist/2020.js") as typeof import("ajv/dist/2020.js");
  const { default: addFormats } = require("ajv-formats") as typeof import("ajv-formats").default;
  return { Ajv, Ajv2019, Ajv2020, addFormats };
}
