/** How two definitions differ, path by path. */
import { canonicalJson } from "../../model/canonical-json.ts";
import { isJsonObject } from "../../model/json.ts";

export type Path = readonly (string | number)[];

export type Change =
  | { readonly path: Path; readonly kind: "added"; readonly after: unknown }
  | { readonly path: Path; readonly kind: "removed"; readonly before: unknown }
  | { readonly path: Path; readonly kind: "changed"; readonly before: unknown; readonly after: unknown };

/** Lists within lists are compared as a whole at each level: this many times the text is written out at most. */
const MAX_LISTS = 8;

/** In the order of keys; the order of keys itself is no difference. Recursive: definitions are bounded in depth. */
export function changesBetween(before: unknown, after: unknown, path: Path = []): Change[] {
  if (isJsonObject(before) && isJsonObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
    return keys.flatMap((key) => member([...path, key], ownValue(before, key), ownValue(after, key)));
  }
  if (canonicalJson(before) === canonicalJson(after)) return [];
  const isDeep = path.filter((step) => typeof step === "number").length >= MAX_LISTS;
  // Lists of plain values, such as `required`, read better whole than by index.
  if (!isDeep && Array.isArray(before) && Array.isArray(after) && [...before, ...after].some(isJsonObject)) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) => member([...path, index], before[index], after[index])).flat();
  }
  return [{ path, kind: "changed", before, after }];
}

function member(path: Path, before: unknown, after: unknown): Change[] {
  if (before === undefined && after === undefined) return [];
  if (before === undefined) return [{ path, kind: "added", after }];
  if (after === undefined) return [{ path, kind: "removed", before }];
  return changesBetween(before, after, path);
}

/** A key that a definition does not have itself, such as `constructor`, is absent. */
function ownValue(object: { readonly [key: string]: unknown }, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
