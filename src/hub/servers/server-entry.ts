/** Partial changes of a server's entry. */
import { createHash } from "node:crypto";
import { findIgnoredKeys, renameKeys, withOwnNames } from "../../config/entry-reader.ts";
import { ToolcribError } from "../../model/errors.ts";
import { canonicalJson, isJsonObject, type JsonObject } from "../../model/json.ts";
import { MASK } from "../../secrets/mask.ts";
import { findPlaintextCredentials, replaceCredentials } from "../../secrets/plaintext-credentials.ts";
import type { Redactor } from "../../secrets/redactor.ts";

/**
 * The entry with the updates: null takes a key out, objects such as `env` are changed key by key, everything else is
 * replaced. The updates may be in the words of any dialect.
 */
export function mergeEntry(entry: JsonObject, updates: JsonObject): JsonObject {
  const { kept, removed } = splitUpdates(updates);
  // Its keys are replaced only where the dialect's word means the same as ours: both are in our words then.
  const renamed = renameKeys(kept, () => {});
  // Reading the entry reports these.
  for (const key of findIgnoredKeys(kept)) renamed[key] = kept[key];
  // A list of allowed tools, as another program has it, would be replaced with all that it allows.
  const isList = Array.isArray(entry["tools"]) && isJsonObject(renamed["tools"]);
  const ours = isList ? { ...entry, ...renameKeys({ tools: entry["tools"] }, () => {}) } : entry;
  const changed = [...Object.keys(renamed), ...removed.map(([key]) => key)];
  const merged = mergeObjects(withOwnNames(ours, changed), renamed);
  for (const path of removed) removePath(merged, path);
  return merged;
}

type Path = readonly [key: string, inner?: string];

/** Nulls, which dialects take for absent, apart from the rest. */
function splitUpdates(updates: JsonObject): { kept: JsonObject; removed: Path[] } {
  const kept: JsonObject = {};
  const removed: Path[] = [];
  for (const [key, value] of Object.entries(updates)) {
    if (value === null) removed.push([key]);
    else if (isJsonObject(value)) {
      const inner = Object.entries(value);
      removed.push(...inner.filter(([, each]) => each === null).map(([name]): Path => [key, name]));
      kept[key] = Object.fromEntries(inner.filter(([, each]) => each !== null));
    } else kept[key] = value;
  }
  return { kept, removed };
}

function mergeObjects(entry: JsonObject, updates: JsonObject): JsonObject {
  const merged: JsonObject = { ...entry };
  for (const [key, value] of Object.entries(updates)) {
    const before = entry[key];
    const isSameKind = isJsonObject(value) && isJsonObject(before) && isSameAuth(key, before, value);
    merged[key] = isSameKind ? { ...before, ...value } : value;
  }
  return merged;
}

/** Another kind of login has nothing in common with the one before. */
function isSameAuth(key: string, before: JsonObject, after: JsonObject): boolean {
  return key !== "auth" || after["type"] === undefined || after["type"] === before["type"];
}

function removePath(entry: JsonObject, [key, inner]: Path): void {
  const here = entry[key];
  if (inner === undefined) delete entry[key];
  else if (isJsonObject(here)) {
    const { [inner]: _removed, ...rest } = here;
    if (Object.keys(rest).length > 0) entry[key] = rest;
    else delete entry[key];
  }
}

/** The mask that an entry shows in place of a secret is not a secret: a caller that sends it back has read it here. */
export function refuseMask(given: JsonObject): void {
  const waiting: { value: unknown; path: readonly string[] }[] = [{ value: given, path: [] }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, path } = next;
    if (typeof value === "string" && value.includes(MASK)) {
      const where = path.join(".");
      throw new ToolcribError("invalid_arguments", `${where} contains ${MASK}, which stands for a hidden secret.`, {
        hint: "Leave the key out to keep it, or write the secret or a reference again.",
        details: { where: [where] },
      });
    }
    if (typeof value !== "object" || value === null) continue;
    // Entries are shallow; what is deeper is refused by others, and a path as long as that would cost.
    for (const [key, inner] of Object.entries(value)) waiting.push({ value: inner, path: [...path.slice(0, 3), key] });
  }
}

export function refuseOtherId(id: string, { id: given = id }: JsonObject): void {
  if (given === id) return;
  throw new ToolcribError("invalid_arguments", "The id of a server cannot be changed.", {
    hint: "Add it under the other id, and remove this one.",
  });
}

/** An entry as people see it: references as they are written, plain secrets masked. */
export function maskedEntry(entry: JsonObject, redactor: Redactor): JsonObject {
  return redactor.maskAll(replaceCredentials(entry, findPlaintextCredentials(entry), () => MASK));
}

/** A strong tag that changes with a server's entry, as HTTP writes it. */
export function etagOf(entry: JsonObject, revision = 0): string {
  const digest = createHash("sha256").update(canonicalJson(entry)).digest("hex").slice(0, 16);
  return `"${revision}-${digest}"`;
}

/** `*`, one tag or several, with or without quotes. A weak tag never matches: an entry is the same or it is not. */
export function matchesEtag(given: string, etag: string): boolean {
  const bare = (tag: string): string => tag.replace(/^"(.*)"$/, "$1");
  return given.split(",").some((tag) => tag.trim() === "*" || bare(tag.trim()) === bare(etag));
}
