/** From a ServerSpec back to an entry as short as a person would write it. */
import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { ServerEntrySchema, type ServerSpec } from "../model/server-spec.ts";

/** Without what is the default anyway. */
export function entryOfSpec(spec: ServerSpec): JsonObject {
  const { id: _id, origin: _origin, baseDir: _baseDir, ownFolder: _own, replaces: _replaces, ...rest } = spec;
  const { sandboxFrom, sandbox, fromProject: _fromProject, ...entry } = rest;
  const own = sandbox === undefined || sandboxFrom !== undefined ? {} : { sandbox };
  return withoutDefaults({ ...entry, ...own }, defaultsOfEntry());
}

let defaults: JsonObject | undefined;

function defaultsOfEntry(): JsonObject {
  return (defaults ??= ServerEntrySchema.parse({}));
}

/** A copy without what `usual` says anyway. */
export function withoutDefaults(value: JsonObject, usual: JsonObject): JsonObject {
  const short: JsonObject = {};
  for (const [key, each] of Object.entries(value)) {
    const other = usual[key];
    if (each === undefined || isDeepStrictEqual(each, other)) continue;
    short[key] = isJsonObject(each) && isJsonObject(other) ? withoutDefaults(each, other) : each;
  }
  return short;
}
