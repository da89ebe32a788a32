/**
 * Tools as the config shapes them. An override changes the definition that callers see; what callers send is mapped back to the
 * arguments that the server would have got from a caller who filled in the original definition.
 */
import { fingerprint } from "../base/fingerprint.ts";
import type { ShapeLayer, ToolCapability } from "../model/capability.ts";
import { ToolcribError } from "../model/errors.ts";
import { canonicalJson, isJsonObject, type JsonObject, referencedIn } from "../model/json.ts";
import type { Result, ToolAnnotations, ToolDefinition } from "../model/protocol.ts";
import type { Overrides, ToolOverride } from "../model/server-spec.ts";
import { foldKey } from "../policy/argument-values.ts";
import { withHash } from "./naming.ts";

type OverridePlace = Pick<ShapeLayer, "where" | "level">;

/** One override of a tool, and where it is from. */
export type ToolLayer = Omit<ShapeLayer, "misfit">;

/** @param name The public name with the override; `ownName` that at the server, for an override of the server. */
export function shapeTool(
  base: ToolCapability,
  override: ToolOverride,
  place: OverridePlace,
  { name, ownName, plainName = base.name }: { name: string; ownName?: string | undefined; plainName?: string },
): ToolCapability {
  const { shape } = base;
  const original = shape?.original ?? Object.freeze({ ...base, name: plainName });
  const { definition, misfit } = shapeDefinition(base.definition, override);
  const formerNames = new Set([...(shape?.formerNames ?? []), base.name, plainName]);
  formerNames.delete(name);
  return Object.freeze({
    kind: "tool",
    name,
    origin: base.origin,
    definition,
    fingerprint: fingerprint({ base: base.fingerprint, override }),
    shape: Object.freeze({
      original,
      layers: Object.freeze([...(shape?.layers ?? []), Object.freeze({ override, ...place, misfit })]),
      ownName: ownName ?? shape?.ownName ?? base.origin.name,
      isRenamed: shape?.isRenamed === true || (place.level !== "server" && override.name !== undefined),
      formerNames: Object.freeze([...formerNames]),
    }),
  });
}

export interface ShapedTools {
  /** All of them, in the same order. */
  readonly list: readonly ToolCapability[];
  readonly byName: ReadonlyMap<string, ToolCapability>;
}

/**
 * The tools of a catalog with the overrides of a role and of views, by public name. A name that an override gives is that tool's:
 * another tool that has it gets a hash.
 * @param known Tools that were shaped before: those that stay the same keep their identity.
 */
export function shapeTools(
  tools: readonly ToolCapability[],
  overrides: ReadonlyMap<string, readonly ToolLayer[]>,
  known: WeakMap<ToolCapability, ToolCapability> = new WeakMap(),
): ShapedTools {
  const chosenName = (name: string): string | undefined =>
    overrides.get(name)?.findLast(({ override }) => override.name !== undefined)?.override.name;
  const taken = new Map<string, ToolCapability>();
  for (const tool of tools) {
    const chosen = chosenName(tool.name);
    // Of two tools with the same new name, in the config of a role and of a view, the first has it.
    if (chosen !== undefined && !taken.has(chosen)) taken.set(chosen, tool);
  }
  const byName = new Map<string, ToolCapability>();
  const list = tools.map((tool) => {
    const layers = overrides.get(tool.name) ?? [];
    const wanted = chosenName(tool.name) ?? tool.name;
    const owner = taken.get(wanted);
    const isTaken = owner !== undefined && owner !== tool;
    const name = isTaken ? withHash(wanted, tool.origin.source, tool.origin.name) : wanted;
    let shaped = known.get(tool);
    if (shaped?.name !== name) {
      shaped = shapeWithAll(tool, isTaken && layers.length === 0 ? [TAKEN_NAME] : layers, name);
      known.set(tool, shaped);
    }
    byName.set(name, shaped);
    return shaped;
  });
  return { list: Object.freeze(list), byName };
}

const TAKEN_NAME: ToolLayer = { override: {}, level: "session", where: "another tool has its name" };

function shapeWithAll(tool: ToolCapability, layers: readonly ToolLayer[], name: string): ToolCapability {
  const fixed = new Set<string>();
  return layers.reduce((shaped, { override, ...place }) => {
    // What a role fixes, no view can set.
    const left = Object.entries(override.parameters ?? {}).filter(([parameter]) => !fixed.has(parameter));
    for (const [parameter, entry] of left) if (entry.fixed !== undefined) fixed.add(parameter);
    const own = override.parameters === undefined ? override : { ...override, parameters: Object.fromEntries(left) };
    return shapeTool(shaped, own, place, { name });
  }, tool);
}

/** Overrides that name no tool of the server. */
export function strayOverrides(
  overrides: Overrides | undefined,
  names: readonly { readonly name: string }[],
): string[] {
  if (overrides === undefined) return [];
  const known = new Set(names.map(({ name }) => name));
  return Object.keys(overrides).filter((name) => !known.has(name));
}

/** Why a tool is held: its overrides, in their order, do not fit what the server offers now. */
export function misfitOf({ shape }: ToolCapability): ShapeLayer | undefined {
  return shape?.layers.find(({ misfit }) => misfit !== undefined);
}

export function describeMisfit(name: string, { misfit, where }: ShapeLayer): string {
  return `${name} is held, because its override (${where}) does not fit the server's definition: ${misfit}. Change or remove the override.`;
}

export function hidingLayerOf({ shape }: ToolCapability): ShapeLayer | undefined {
  return shape?.layers.find(({ override }) => override.hidden === true);
}

/** The annotations that the config corrects: unlike a server's own they are believed. */
export function correctedAnnotations({ shape }: ToolCapability): ToolAnnotations {
  return Object.assign({}, ...(shape?.layers.map(({ override }) => override.annotations ?? {}) ?? []));
}

/** The definition that callers see; with `misfit` if the override is about something that is not in it. */
export function shapeDefinition(
  definition: ToolDefinition,
  { title, description, annotations, parameters = {}, output }: ToolOverride,
): { readonly definition: ToolDefinition; readonly misfit: string | undefined } {
  let schema = withRootProperties(definition.inputSchema);
  let misfit: string | undefined;
  for (const [name, { fixed, default: preset, description: text }] of Object.entries(parameters)) {
    const found = propertySchemas(schema, name);
    const value = fixed === undefined ? preset : fixed;
    if (found.length === 0) misfit ??= `it has no parameter "${name}"`;
    else if (value !== undefined && !found.some((each) => couldHold(each, value, definition.inputSchema)))
      misfit ??= `its parameter "${name}" does not take the value that is set`;
    if (fixed !== undefined) schema = withoutParameter(schema, name);
    else if (preset !== undefined) schema = withOptional(schema, name, { default: preset });
    if (text !== undefined) schema = withProperty(schema, name, { description: text });
  }
  const { outputSchema, ...rest } = definition;
  const kept = outputSchema && (output === undefined ? outputSchema : withoutFields(outputSchema, output.drop));
  return {
    definition: {
      ...rest,
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      ...(annotations === undefined ? {} : { annotations: { ...definition.annotations, ...annotations } }),
      inputSchema: schema,
      ...(kept === undefined ? {} : { outputSchema: kept }),
    },
    misfit,
  };
}

/** Resolves the references of a text that is written at this level. */
type ResolveText = (text: string, level: ShapeLayer["level"]) => Promise<string>;

/**
 * The arguments that the server gets. A promise only where a fixed value has a reference.
 * @param publicName For the error if the caller sets what is fixed.
 */
export function originalArguments(
  { name: publicName, shape }: ToolCapability,
  given: Readonly<JsonObject>,
  resolve: ResolveText,
): Readonly<JsonObject> | Promise<Readonly<JsonObject>> {
  const args: JsonObject = { ...given };
  let waits: Promise<void>[] | undefined;
  for (const { override, level } of shape?.layers.toReversed() ?? []) {
    for (const [name, { fixed, default: preset }] of Object.entries(override.parameters ?? {})) {
      const isGiven = Object.hasOwn(args, name);
      if (fixed !== undefined) {
        if (isGiven) throw fixedArgument(publicName, name);
        const twin = Object.keys(given).find((key) => isTwin(key, name, shape?.original.definition.inputSchema));
        if (twin !== undefined) throw fixedArgument(publicName, twin);
        if (mayRefer(fixed)) {
          // Its place is taken now, so that nothing of an outer layer gets there meanwhile.
          args[name] = null;
          (waits ??= []).push(
            resolveAll(fixed, (text) => resolve(text, level)).then((value) => void (args[name] = value)),
          );
        } else args[name] = fixed;
      } else if (preset !== undefined && !isGiven) args[name] = preset;
    }
  }
  return waits === undefined ? args : Promise.all(waits).then(() => args);
}

/** Whether a server may take the key for the parameter: it differs in case and the like, and is none of its own. */
function isTwin(key: string, parameter: string, schema: Readonly<JsonObject> | undefined): boolean {
  if (key === parameter || foldKey(key) !== foldKey(parameter)) return false;
  const properties = schema?.["properties"];
  return !isJsonObject(properties) || !Object.hasOwn(properties, key);
}

/** Whether the config sets this argument of the tool. */
export function isFixed({ shape }: ToolCapability, name: string): boolean {
  return shape?.layers.some(({ override }) => override.parameters?.[name]?.fixed !== undefined) === true;
}

function fixedArgument(tool: string, name: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `${tool} has no argument "${name}".`, {
    hint: "The config sets it. Leave it out.",
  });
}

/** With a reference, or with the escape for one. */
function mayRefer(value: unknown): boolean {
  if (typeof value === "string") return /\$\{|secret:\/\//i.test(value);
  if (Array.isArray(value)) return value.some(mayRefer);
  return isJsonObject(value) && Object.values(value).some(mayRefer);
}

async function resolveAll(value: unknown, resolve: (text: string) => Promise<string>): Promise<unknown> {
  if (typeof value === "string") return resolve(value);
  if (Array.isArray(value)) return Promise.all(value.map((each) => resolveAll(each, resolve)));
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).map(async ([key, each]) => [key, await resolveAll(each, resolve)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

/** Whether fixed values of its overrides are, or contain, references. */
export function hasReferences({ shape }: ToolCapability): boolean {
  return (
    shape?.layers.some(({ override }) =>
      Object.values(override.parameters ?? {}).some(({ fixed }) => mayRefer(fixed)),
    ) === true
  );
}

/** The result without the fields that the overrides drop. The same object if there are none. */
export function shapedResult(tool: ToolCapability, result: Result): Result {
  const { shape } = tool;
  if (shape === undefined) return result;
  const paths = shape.layers.flatMap(({ override }) => override.output?.drop ?? []).map(parsePath);
  if (paths.length === 0) return result;
  const { structuredContent, content, result: ofTask } = result;
  const repeated = new RepeatedParts(structuredContent, paths);
  return {
    ...result,
    ...(structuredContent === undefined ? {} : { structuredContent: dropAll(structuredContent, paths) }),
    ...(Array.isArray(content) ? { content: content.map((block: unknown) => shapedBlock(block, repeated)) } : {}),
    // The state of a task has the result in it.
    ...(isJsonObject(ofTask) ? { result: shapedResult(tool, ofTask) } : {}),
  };
}

function shapedBlock(block: unknown, repeated: RepeatedParts): unknown {
  if (!isJsonObject(block)) return block;
  const { text, resource } = block;
  if (typeof text === "string") return { ...block, text: shapedText(text, repeated) };
  if (!isJsonObject(resource) || typeof resource["text"] !== "string") return block;
  return { ...block, resource: { ...resource, text: shapedText(resource["text"], repeated) } };
}

/** A text that is JSON as a whole, without the fields; any other text as it is. */
function shapedText(text: string, repeated: RepeatedParts): string {
  const start = text.trimStart()[0];
  if (start !== "{" && start !== "[") return text;
  try {
    const value: unknown = JSON.parse(text, keepNumber);
    const dropped = dropAll(value, repeated.pathsIn(text));
    // The indentation that programs use, where the text has any.
    return dropped === value ? text : JSON.stringify(dropped, undefined, text.includes("\n") ? 2 : undefined);
  } catch {
    // It is not JSON, or nests deeper than JSON can be written.
    return text;
  }
}

/** Numbers that do not fit a double keep their digits. */
function keepNumber(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== "number" || source === undefined || String(value) === source) return value;
  // In Node 22 and later, not yet in TypeScript's types.
  const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };
  return rawJSON(source);
}

type Step = string | typeof EACH;
type Path = readonly Step[];
const EACH = Symbol("each item");

function parsePath(text: string): Path {
  return [...text.matchAll(/\[\*\]|[^.[\]]+/g)].map(([step]) => (step === "[*]" ? EACH : step));
}

/**
 * Servers send structured content again as text: the whole of it, or one of its parts in each block. A text that is such a part
 * loses what the rest of a path names in it.
 */
class RepeatedParts {
  readonly #paths: readonly Path[];
  readonly #structured: unknown;
  #rests: Map<string, Path[]> | undefined;

  constructor(structured: unknown, paths: readonly Path[]) {
    this.#structured = structured;
    this.#paths = paths;
  }

  pathsIn(text: string): readonly Path[] {
    if (this.#structured === undefined) return this.#paths;
    this.#rests ??= this.#collect();
    if (this.#rests.size === 0) return this.#paths;
    const rests = this.#rests.get(canonicalJson(JSON.parse(text)));
    return rests === undefined ? this.#paths : [...this.#paths, ...rests];
  }

  #collect(): Map<string, Path[]> {
    const rests = new Map<string, Path[]>();
    for (const path of this.#paths) {
      for (let length = 1; length < path.length; length++) {
        for (const part of partsAt(this.#structured, path.slice(0, length))) {
          if (typeof part !== "object" || part === null) continue;
          const key = canonicalJson(part);
          rests.set(key, [...(rests.get(key) ?? []), path.slice(length)]);
        }
      }
    }
    return rests;
  }
}

function partsAt(value: unknown, [step, ...rest]: Path): unknown[] {
  if (step === undefined) return [value];
  if (step === EACH) return Array.isArray(value) ? value.flatMap((item) => partsAt(item, rest)) : [];
  return isJsonObject(value) && Object.hasOwn(value, step) ? partsAt(value[step], rest) : [];
}

function dropAll(value: unknown, paths: readonly Path[]): unknown {
  return paths.reduce((left, path) => drop(left, path), value);
}

/** The same value if there is nothing to drop. */
function drop(value: unknown, [step, ...rest]: Path): unknown {
  if (step === undefined) return value;
  if (step === EACH) {
    if (!Array.isArray(value)) return value;
    if (rest.length === 0) return value.length === 0 ? value : [];
    const items = value.map((item) => drop(item, rest));
    return items.every((item, i) => item === value[i]) ? value : items;
  }
  if (!isJsonObject(value) || !Object.hasOwn(value, step)) return value;
  const { [step]: inner, ...others } = value;
  if (rest.length === 0) return others;
  const left = drop(inner, rest);
  return left === inner ? value : { ...value, [step]: left };
}

/** An output schema without the fields; undefined where it says them in a way that is not followed here. */
function withoutFields(schema: JsonObject, paths: readonly string[]): JsonObject | undefined {
  return paths.map(parsePath).reduce<JsonObject | undefined>((left, path) => left && withoutField(left, path), schema);
}

const FOLLOWED_ELSEWHERE = ["$ref", "$dynamicRef", ...["allOf", "anyOf", "oneOf", "if", "not"], "dependentRequired"];

function withoutField(schema: JsonObject, [step, ...rest]: Path): JsonObject | undefined {
  if (FOLLOWED_ELSEWHERE.some((keyword) => Object.hasOwn(schema, keyword))) return undefined;
  if (step === EACH) {
    const { items, minItems: _minItems, ...others } = schema;
    if (rest.length === 0) return isJsonObject(items) ? { ...others, items } : others;
    if (items === undefined) return schema;
    const inner = isJsonObject(items) ? withoutField(items, rest) : undefined;
    return inner && { ...schema, items: inner };
  }
  const { properties, required } = schema;
  if (step === undefined || !isJsonObject(properties) || !Object.hasOwn(properties, step)) {
    return Array.isArray(required) && required.includes(step) ? undefined : schema;
  }
  const { [step]: inner, ...others } = properties;
  if (rest.length === 0) return withRequired({ ...schema, properties: others }, withoutName(required, step));
  const left = isJsonObject(inner) ? withoutField(inner, rest) : undefined;
  return left && { ...schema, properties: { ...properties, [step]: left } };
}

function withoutName(names: unknown, name: string): unknown[] {
  return Array.isArray(names) ? names.filter((each) => each !== name) : [];
}

function withRequired(schema: JsonObject, required: readonly unknown[]): JsonObject {
  const { required: _required, ...rest } = schema;
  return required.length === 0 ? rest : { ...rest, required };
}

const LISTS = ["allOf", "anyOf", "oneOf"];
const SINGLE = ["if", "then", "else", "not"];
/** Of schemas in schemas, and of references that lead to references. */
const MAX_DEPTH = 20;

/** Some generators put the object itself behind a reference: it is followed, so that its parameters are where they are looked for. */
function withRootProperties(schema: JsonObject): JsonObject {
  let root = schema;
  for (let depth = 0; depth < MAX_DEPTH && typeof root["$ref"] === "string"; depth++) {
    const { $ref, ...rest } = root;
    const found = typeof $ref === "string" ? referencedIn(schema, $ref) : undefined;
    if (!isJsonObject(found)) break;
    root = { ...found, ...rest };
  }
  return root;
}

/** Changes a schema and those inside it that are about the same object. */
function mapObjectSchemas(schema: JsonObject, change: (schema: JsonObject) => JsonObject, depth = 0): JsonObject {
  const changed: JsonObject = change(schema);
  if (depth >= MAX_DEPTH) return changed;
  const map = (each: unknown): unknown => (isJsonObject(each) ? mapObjectSchemas(each, change, depth + 1) : each);
  for (const key of LISTS) if (Array.isArray(changed[key])) changed[key] = changed[key].map(map);
  for (const key of SINGLE) if (isJsonObject(changed[key])) changed[key] = map(changed[key]);
  const dependent = changed["dependentSchemas"];
  if (isJsonObject(dependent)) {
    changed["dependentSchemas"] = Object.fromEntries(Object.entries(dependent).map(([key, each]) => [key, map(each)]));
  }
  return changed;
}

/** The schemas of a parameter, wherever the definition has them. */
function propertySchemas(schema: JsonObject, name: string): unknown[] {
  const found: unknown[] = [];
  mapObjectSchemas(schema, (each) => {
    const { properties } = each;
    if (isJsonObject(properties) && Object.hasOwn(properties, name)) found.push(properties[name]);
    return { ...each };
  });
  return found;
}

function withProperty(schema: JsonObject, name: string, change: JsonObject): JsonObject {
  return mapObjectSchemas(schema, (each) => {
    const { properties } = each;
    if (!isJsonObject(properties) || !Object.hasOwn(properties, name)) return { ...each };
    const before = properties[name];
    return { ...each, properties: { ...properties, [name]: { ...(isJsonObject(before) ? before : {}), ...change } } };
  });
}

function withOptional(schema: JsonObject, name: string, change: JsonObject): JsonObject {
  const optional = mapObjectSchemas(schema, (each) => withRequired({ ...each }, withoutName(each["required"], name)));
  return withProperty(optional, name, change);
}

/** The schema for the other parameters, where this one is given: what is required for it is there, what it requires still is. */
function withoutParameter(schema: JsonObject, name: string): JsonObject {
  return mapObjectSchemas(schema, (each) => {
    const { properties, required, minProperties, maxProperties } = each;
    const left: JsonObject = { ...each };
    if (isJsonObject(properties) && Object.hasOwn(properties, name)) {
      const { [name]: _gone, ...others } = properties;
      left["properties"] = others;
    }
    const needed = withoutName(required, name);
    for (const key of ["dependentRequired", "dependencies"]) {
      const entries = isJsonObject(each[key]) ? each[key] : undefined;
      if (entries === undefined) continue;
      const { [name]: its, ...others } = entries;
      if (Array.isArray(its)) needed.push(...its.filter((one) => one !== name && !needed.includes(one)));
      else if (isJsonObject(its)) left["allOf"] = [...(Array.isArray(left["allOf"]) ? left["allOf"] : []), its];
      left[key] = Object.fromEntries(
        Object.entries(others).map(([of, names]) => [of, Array.isArray(names) ? withoutName(names, name) : names]),
      );
    }
    const schemas = each["dependentSchemas"];
    if (isJsonObject(schemas) && Object.hasOwn(schemas, name)) {
      const { [name]: its, ...others } = schemas;
      left["dependentSchemas"] = others;
      left["allOf"] = [...(Array.isArray(left["allOf"]) ? left["allOf"] : []), its];
    }
    if (typeof minProperties === "number") left["minProperties"] = Math.max(0, minProperties - 1);
    if (typeof maxProperties === "number") left["maxProperties"] = Math.max(0, maxProperties - 1);
    return withRequired(left, needed);
  });
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  array: (value) => Array.isArray(value),
  object: isJsonObject,
  null: (value) => value === null,
};

/** False only where the schema surely refuses the value. Patterns and formats of a server are left to the server. */
function couldHold(schema: unknown, value: unknown, root: JsonObject, depth = 0): boolean {
  if (typeof schema === "boolean") return schema;
  if (!isJsonObject(schema) || depth > MAX_DEPTH) return true;
  const inner = (each: unknown): boolean => couldHold(each, value, root, depth + 1);
  const { type, enum: values, anyOf, oneOf, allOf, minimum, maximum } = schema;
  const types = (Array.isArray(type) ? type : [type]).filter((each) => typeof each === "string");
  if (types.length > 0 && !types.some((each) => TYPES[each]?.(value) ?? true)) return false;
  // What a reference stands for is not known here.
  if (!mayRefer(value)) {
    const isSame = (each: unknown): boolean => canonicalJson(each) === canonicalJson(value);
    if (Array.isArray(values) && !values.some(isSame)) return false;
    if (Object.hasOwn(schema, "const") && !isSame(schema["const"])) return false;
  }
  if (typeof value === "number" && typeof minimum === "number" && value < minimum) return false;
  if (typeof value === "number" && typeof maximum === "number" && value > maximum) return false;
  if (typeof schema["$ref"] === "string") {
    const found = referencedIn(root, schema["$ref"]);
    if (isJsonObject(found) && !inner(found)) return false;
  }
  if (Array.isArray(allOf) && !allOf.every(inner)) return false;
  return [anyOf, oneOf].every((list) => !Array.isArray(list) || list.some(inner));
}
