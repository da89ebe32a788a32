/** The part of a config file that all nodes of a cluster share: comparing and merging two versions of it. */
import { isDeepStrictEqual } from "node:util";
import { ConfigDocument } from "../../config/config-document.ts";
import { adaptOwnEntry } from "../../config/dialects.ts";
import type { PathEdit } from "../../config/edit-config.ts";
import { EntryReader } from "../../config/entry-reader.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isPlainText, isCredentialName, passwordIn } from "../../secrets/credential-names.ts";
import { maskTokens } from "../../secrets/mask.ts";
import { findPlaintextCredentials } from "../../secrets/plaintext-credentials.ts";

export type DocumentPath = readonly string[];

/** Settings that each node has for itself. */
const NODE_LOCAL_PATHS: readonly DocumentPath[] = [
  ["$schema"],
  ["store"],
  ["cluster"],
  // Programs beside the config of the node that names them.
  ["plugins"],
  ["http", "host"],
  ["http", "port"],
  ["http", "publicUrl"],
];

/** Without what is the node's own. */
export function sharedPart(document: JsonObject): JsonObject {
  return NODE_LOCAL_PATHS.reduce(withoutPath, document);
}

/** The edits that turn one document into the other. Nothing at or above a kept or node-local path is removed or replaced. */
export function differences(from: JsonObject, to: JsonObject, kept: readonly DocumentPath[] = []): PathEdit[] {
  return edits([], from, to, [...NODE_LOCAL_PATHS, ...kept]);
}

function edits(path: DocumentPath, from: unknown, to: unknown, kept: readonly DocumentPath[]): PathEdit[] {
  if (isDeepStrictEqual(from, to) || kept.some((each) => pathStartsWith(path, each))) return [];
  const holdsKept = kept.some((each) => pathStartsWith(each, path));
  const target = to === undefined && holdsKept ? {} : to;
  if (!isJsonObject(from) || !isJsonObject(target)) return [{ path, value: to }];
  const keys = new Set([...Object.keys(from), ...Object.keys(target)]);
  return [...keys].flatMap((key) => edits([...path, key], from[key], target[key], kept));
}

/**
 * A three-way merge. Where both sides changed the same value, `mine` wins. Lists of names get what either side added and lose
 * what either side removed. Of a server's entry only the rules are merged.
 */
export function mergeDocuments(base: JsonObject, mine: JsonObject, theirs: JsonObject): JsonObject {
  const result = merge([], base, mine, theirs);
  return isJsonObject(result) ? result : {};
}

function merge(path: DocumentPath, base: unknown, mine: unknown, theirs: unknown): unknown {
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

/** Adds what only the other document has; of a server's entry only its rules. */
export function completeFrom(document: JsonObject, other: JsonObject): JsonObject {
  const result = complete([], document, other);
  return isJsonObject(result) ? result : document;
}

function complete(path: DocumentPath, mine: unknown, other: unknown): unknown {
  if (mine === undefined || other === undefined) return mine ?? other;
  if (isNames(mine) && isNames(other)) return mergeNames([], mine, other);
  if (!isJsonObject(mine) || !isJsonObject(other)) return mine;
  const keys = isServer(path) ? ["tools"] : Object.keys(other);
  const found = keys.map((key) => [key, complete([...path, key], mine[key], other[key])] as const);
  return { ...mine, ...Object.fromEntries(found.filter(([, value]) => value !== undefined)) };
}

function isServer(path: DocumentPath): boolean {
  return path.at(-2) === "mcpServers" && (path.length === 2 || (path.length === 4 && path[0] === "roles"));
}

function isOnlyRules(before: JsonObject, after: JsonObject): boolean {
  return isDeepStrictEqual(withoutPath(before, ["tools"]), withoutPath(after, ["tools"]));
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function mergeNames(base: readonly string[], mine: readonly string[], theirs: readonly string[]): string[] {
  const gone = new Set(base.filter((name) => !mine.includes(name)));
  const kept = theirs.filter((name) => !gone.has(name));
  return [...kept, ...mine.filter((name) => !base.includes(name) && !kept.includes(name))];
}

export function valueAtPath(document: JsonObject, path: DocumentPath): unknown {
  return path.reduce<unknown>((here, key) => (isJsonObject(here) ? here[key] : undefined), document);
}

/** Objects that become empty are removed as well. */
export function withoutPath(document: JsonObject, path: DocumentPath): JsonObject {
  const [key, ...rest] = path;
  if (key === undefined || !Object.hasOwn(document, key)) return document;
  const { [key]: value, ...others } = document;
  if (rest.length === 0) return others;
  if (!isJsonObject(value) || valueAtPath(value, rest) === undefined) return document;
  const left = withoutPath(value, rest);
  return Object.keys(left).length === 0 ? others : { ...document, [key]: left };
}

export function withValueAtPath(document: JsonObject, path: DocumentPath, value: unknown): JsonObject {
  const [key, ...rest] = path;
  if (key === undefined) return document;
  const inner = document[key];
  return {
    ...document,
    [key]: rest.length === 0 ? value : withValueAtPath(isJsonObject(inner) ? inner : {}, rest, value),
  };
}

function pathStartsWith(path: DocumentPath, beginning: DocumentPath): boolean {
  return beginning.length <= path.length && beginning.every((step, index) => path[index] === step);
}

/**
 * Paths of credentials in plain text, which stay on their node: of a server the path of its entry, of anything else the path of
 * the value or of the list that contains it.
 */
export function plainCredentialPaths(document: JsonObject): DocumentPath[] {
  const { mcpServers, servers, roles, ...rest } = document;
  return [
    ...serversWithCredentials(["mcpServers"], mcpServers),
    ...serversWithCredentials(["servers"], servers),
    ...entriesOf(roles).flatMap(([role, entry]) =>
      serversWithCredentials(["roles", role, "mcpServers"], entry["mcpServers"]),
    ),
    ...valuesWithCredentials([], rest),
  ];
}

function serversWithCredentials(path: DocumentPath, servers: unknown): DocumentPath[] {
  if (!isJsonObject(servers)) return [];
  const found = Object.entries(servers).filter(([, entry]) => {
    // In place of an entry may be a command line with a secret in it.
    if (!isJsonObject(entry)) return true;
    // Entries in the form of other programs have their secrets elsewhere.
    const reader = new EntryReader(ConfigDocument.ofValue("entry", entry), "toolcrib", { userHome: "" });
    return [entry, adaptOwnEntry(entry, [], reader)].some((form) => findPlaintextCredentials(form).length > 0);
  });
  return found.map(([id]) => [...path, id]);
}

function valuesWithCredentials(path: DocumentPath, value: JsonObject): DocumentPath[] {
  return Object.entries(value).flatMap(([key, item]): DocumentPath[] => {
    const here = [...path, key];
    if (isJsonObject(item)) return valuesWithCredentials(here, item);
    return hasPlainCredential(key, item) ? [here] : [];
  });
}

function hasPlainCredential(key: string, value: unknown): boolean {
  if (Array.isArray(value)) return value.some((item) => hasPlainCredential(key, item));
  if (isJsonObject(value)) return Object.entries(value).some(([inner, item]) => hasPlainCredential(inner, item));
  if (typeof value !== "string") return false;
  if (isPlainText(passwordIn(value))) return true;
  return (isCredentialName(key) && isPlainText(value)) || maskTokens(value) !== value;
}

function entriesOf(value: unknown): [string, JsonObject][] {
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, entry]) => (isJsonObject(entry) ? [[key, entry]] : []));
}
