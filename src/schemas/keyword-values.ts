/**
 * What the keywords without schemas in them may hold. A provider checks a tool's schema against the meta-schema and
 * refuses the whole request, with all other tools, for one `required: "name"`.
 */
import { isJsonObject } from "../model/json.ts";
import { stringList } from "./positions.ts";

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isBoolean: Check = (value) => typeof value === "boolean";
const isNumber: Check = (value) => Number.isFinite(value);
const isCount: Check = (value) => Number.isInteger(value) && Number(value) >= 0;

const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ["title", isText],
  ["description", isText],
  ["format", isText],
  ["contentEncoding", isText],
  ["contentMediaType", isText],
  ["deprecated", isBoolean],
  ["readOnly", isBoolean],
  ["writeOnly", isBoolean],
  ["uniqueItems", isBoolean],
  ["examples", Array.isArray],
  ["default", () => true],
  ["const", () => true],
  // An empty enum is no error in JSON Schema, but providers and validators take it for one.
  ["enum", (value) => Array.isArray(value) && value.length > 0],
  ["multipleOf", (value) => isNumber(value) && Number(value) > 0],
  ["minimum", isNumber],
  ["maximum", isNumber],
  ["exclusiveMinimum", isNumber],
  ["exclusiveMaximum", isNumber],
  ["minLength", isCount],
  ["maxLength", isCount],
  ["minItems", isCount],
  ["maxItems", isCount],
  ["minContains", isCount],
  ["maxContains", isCount],
  ["minProperties", isCount],
  ["maxProperties", isCount],
]);

export function isSound(keyword: string, value: unknown): boolean {
  return CHECKS.get(keyword)?.(value) ?? true;
}

/**
 * Whether an unknown keyword holds objects. Validators look for ids and anchors in those as if they were schemas, and
 * stumble over bad ones. Scalars and lists of them (`enumNames`) do no harm and may help a model.
 */
export function isUnknownObject(keyword: string, value: unknown): boolean {
  return !CHECKS.has(keyword) && [value].flat().some((part) => typeof part === "object" && part !== null);
}

export interface Names {
  readonly names: string[];
  /** Whether the value was a list of names and nothing else. */
  readonly whole: boolean;
}

/** The names of `required`, each once. */
export function namesOf(value: unknown): Names {
  const found = stringList(value);
  return { names: [...new Set(found)], whole: Array.isArray(value) && found.length === value.length };
}

/** The lists of `dependentRequired`; `undefined` where it is no map. */
export function namesByName(value: unknown): { lists: { [name: string]: string[] }; whole: boolean } | undefined {
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
export function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
