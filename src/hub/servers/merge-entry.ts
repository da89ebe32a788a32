/** Partial changes of a server's entry. */
import { meaninglessKeys, renameKeys } from "../../config/dialects/aliases.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";

/**
 * The entry with the updates: null takes a key out, objects such as `env` are changed key by key, everything else is
 * replaced. The updates may be in the words of any dialect.
 */
export function mergeEntry(entry: JsonObject, updates: JsonObject): JsonObject {
  const { kept, removed } = split(updates);
  // Its keys are replaced only where the dialect's word means the same as ours: both are in our words then.
  const renamed = renameKeys(kept, () => {});
  // Whoever reads the entry tells of these.
  for (const key of meaninglessKeys(kept)) renamed[key] = kept[key];
  const merged = mergeObjects(entry, renamed);
  for (const path of removed) without(merged, path);
  return merged;
}

type Path = readonly [key: string, inner?: string];

/** Nulls, which dialects take for absent, apart from the rest. */
function split(updates: JsonObject): { kept: JsonObject; removed: Path[] } {
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

function without(entry: JsonObject, [key, inner]: Path): void {
  const here = entry[key];
  if (inner === undefined) delete entry[key];
  else if (isJsonObject(here)) {
    const { [inner]: _removed, ...rest } = here;
    if (Object.keys(rest).length > 0) entry[key] = rest;
    else delete entry[key];
  }
}
