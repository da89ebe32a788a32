/** The part of a config file that all nodes of a cluster have in common, how two of them differ, and what becomes of both. */
import { isDeepStrictEqual } from "node:util";
import type { PathEdit } from "../../config/edit-config.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";

export type Path = readonly string[];

/** What each node has for itself. */
const LOCAL: readonly Path[] = [
  ["$schema"],
  ["store"],
  ["cluster"],
  // Programs that stand beside the config of the node that names them.
  ["plugins"],
  ["http", "host"],
  ["http", "port"],
  ["http", "publicUrl"],
];

/** Without what is the node's own. */
export function sharedPart(document: JsonObject): JsonObject {
  return LOCAL.reduce(without, document);
}

/** What turns one document into the other; nothing at or above a kept or node-local path is taken out or replaced. */
export function differences(from: JsonObject, to: JsonObject, kept: readonly Path[] = []): PathEdit[] {
  return edits([], from, to, [...LOCAL, ...kept]);
}

function edits(path: Path, from: unknown, to: unknown, kept: readonly Path[]): PathEdit[] {
  if (isDeepStrictEqual(from, to) || kept.some((each) => startsWith(path, each))) return [];
  const holdsKept = kept.some((each) => startsWith(each, path));
  const target = to === undefined && holdsKept ? {} : to;
  if (!isJsonObject(from) || !isJsonObject(target)) return [{ path, value: to }];
  const keys = new Set([...Object.keys(from), ...Object.keys(target)]);
  return [...keys].flatMap((key) => edits([...path, key], from[key], target[key], kept));
}

/**
 * What two sides made of one document. Where both changed the same value, `mine` counts; lists of names get what either
 * added and lose what either took out; of a server's entry only the rules are put together of both.
 */
export function merged(base: JsonObject, mine: JsonObject, theirs: JsonObject): JsonObject {
  const result = merge([], base, mine, theirs);
  return isJsonObject(result) ? result : {};
}

function merge(path: Path, base: unknown, mine: unknown, theirs: unknown): unknown {
  if (isDeepStrictEqual(mine, base) || isDeepStrictEqual(mine, theirs)) return theirs;
  if (isDeepStrictEqual(theirs, base)) return mine;
  if (isNames(mine) && isNames(theirs)) return mergeNames(isNames(base) ? base : [], mine, theirs);
  if (!isJsonObject(mine) || !isJsonObject(theirs)) return mine;
  const before = isJsonObject(base) ? base : {};
  if (isServer(path) && !isOnlyRules(before, mine) && !isOnlyRules(before, theirs)) return mine;
  const keys = new Set([...Object.keys(theirs), ...Object.keys(mine)]);
  const members = [...keys].map((key) => [key, merge([...path, key], before[key], mine[key], theirs[key])] as const);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

/** With what only the other one has; of a server's entry that is its rules alone. */
export function completed(document: JsonObject, other: JsonObject): JsonObject {
  const result = complete([], document, other);
  return isJsonObject(result) ? result : document;
}

function complete(path: Path, mine: unknown, other: unknown): unknown {
  if (mine === undefined || other === undefined) return mine ?? other;
  if (isNames(mine) && isNames(other)) return mergeNames([], mine, other);
  if (!isJsonObject(mine) || !isJsonObject(other)) return mine;
  const keys = isServer(path) ? ["tools"] : Object.keys(other);
  const found = keys.map((key) => [key, complete([...path, key], mine[key], other[key])] as const);
  return { ...mine, ...Object.fromEntries(found.filter(([, value]) => value !== undefined)) };
}

function isServer(path: Path): boolean {
  return path.at(-2) === "mcpServers" && (path.length === 2 || (path.length === 4 && path[0] === "roles"));
}

function isOnlyRules(before: JsonObject, after: JsonObject): boolean {
  return isDeepStrictEqual(without(before, ["tools"]), without(after, ["tools"]));
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function mergeNames(base: readonly string[], mine: readonly string[], theirs: readonly string[]): string[] {
  const gone = new Set(base.filter((name) => !mine.includes(name)));
  const kept = theirs.filter((name) => !gone.has(name));
  return [...kept, ...mine.filter((name) => !base.includes(name) && !kept.includes(name))];
}

export function at(document: JsonObject, path: Path): unknown {
  return path.reduce<unknown>((here, key) => (isJsonObject(here) ? here[key] : undefined), document);
}

/** Objects that are empty for it go as well. */
export function without(document: JsonObject, path: Path): JsonObject {
  const [key, ...rest] = path;
  if (key === undefined || !Object.hasOwn(document, key)) return document;
  const { [key]: value, ...others } = document;
  if (rest.length === 0) return others;
  if (!isJsonObject(value) || at(value, rest) === undefined) return document;
  const left = without(value, rest);
  return Object.keys(left).length === 0 ? others : { ...document, [key]: left };
}

export function withValue(document: JsonObject, path: Path, value: unknown): JsonObject {
  const [key, ...rest] = path;
  if (key === undefined) return document;
  const inner = document[key];
  return { ...document, [key]: rest.length === 0 ? value : withValue(isJsonObject(inner) ? inner : {}, rest, value) };
}

function startsWith(path: Path, beginning: Path): boolean {
  return beginning.length <= path.length && beginning.every((step, index) => path[index] === step);
}
