/**
 * Claude refuses the whole request for one root property whose name it does not take, such as `filter[id]` or `$top`.
 * Such properties get another name, and the way back is kept for the arguments that the model sends.
 */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Notes } from "./notes.ts";
import { schemaMap, stringList } from "./positions.ts";

const MAX_LENGTH = 64;
const CLAUDE_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;

/** From the tool's own name to the one that the model sees; only names that differ. */
export type Renamed = ReadonlyMap<string, string>;

export function renamesForClaude(schema: JsonObject): Renamed {
  const names = Object.keys(schemaMap(schema["properties"]));
  const taken = new Set(names.filter((name) => CLAUDE_NAME.test(name)));
  const renamed = new Map<string, string>();
  const next = new Map<string, number>();
  for (const name of names) {
    if (taken.has(name)) continue;
    const plain = name.replaceAll(/[^a-zA-Z0-9_.-]/g, "_").slice(0, MAX_LENGTH) || "_";
    const candidate = taken.has(plain) ? numbered(plain, taken, next) : plain;
    taken.add(candidate);
    renamed.set(name, candidate);
  }
  return renamed;
}

/** Thousands of names may become the same one, so the first number that may be free is kept in `next`. */
function numbered(plain: string, taken: ReadonlySet<string>, next: Map<string, number>): string {
  for (let digits = 1; ; digits += 1) {
    const start = `${plain.slice(0, MAX_LENGTH - 1 - digits)}_`;
    const key = `${digits} ${start}`;
    let count = next.get(key) ?? Math.max(2, 10 ** (digits - 1));
    while (count < 10 ** digits && taken.has(`${start}${count}`)) count += 1;
    next.set(key, count);
    if (count < 10 ** digits) return `${start}${count}`;
  }
}

/** Nested properties may be called anything, so only the root is touched. */
export function renameProperties(schema: JsonObject, renamed: Renamed, notes: Notes): JsonObject {
  if (renamed.size === 0) return schema;
  const newName = (name: string): string => renamed.get(name) ?? name;
  const newKeys = (map: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(map).map(([name, value]) => [newName(name), value]));
  for (const [name, other] of renamed)
    notes.add(`the property ${JSON.stringify(name)} is shown as ${other}`, "/properties");
  const copy: JsonObject = { ...schema, properties: newKeys(schemaMap(schema["properties"])) };
  if (schema["required"] !== undefined) copy["required"] = stringList(schema["required"]).map(newName);
  if (isJsonObject(schema["dependentSchemas"])) copy["dependentSchemas"] = newKeys(schema["dependentSchemas"]);
  if (isJsonObject(schema["dependentRequired"])) {
    const lists = Object.entries(newKeys(schema["dependentRequired"]));
    copy["dependentRequired"] = Object.fromEntries(lists.map(([name, list]) => [name, stringList(list).map(newName)]));
  }
  return copy;
}

export function restoreNames(args: JsonObject, renamed: Renamed): JsonObject {
  const back = new Map([...renamed].map(([name, other]) => [other, name]));
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [back.get(name) ?? name, value]));
}
