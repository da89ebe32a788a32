/** The list form of an mcp-servers.json: `{"servers": [{"id", "name", "transport", …}]}`. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { DialectRead, EntryReader } from "./entry.ts";

export function readList(value: JsonObject, reader: EntryReader): DialectRead {
  const list: unknown[] = Array.isArray(value["servers"]) ? value["servers"] : [];
  return reader.finish(readServerList(list, ["servers"], reader));
}

/** Also ACP's array, which differs in having names and no ids. */
export function readServerList(list: readonly unknown[], path: readonly string[], reader: EntryReader): ServerSpec[] {
  const servers: ServerSpec[] = [];
  const taken = new Set<string>();
  for (const [index, raw] of list.entries()) {
    const at = [...path, index];
    const label = isJsonObject(raw) ? (raw["id"] ?? raw["name"]) : undefined;
    if (!isJsonObject(raw) || typeof label !== "string" || label === "") {
      reader.refuse(at, "wrong_server", "found an entry without id and name; allowed is an object with an id");
      continue;
    }
    const id = reader.validId(label, at, taken);
    taken.add(id);
    const spec = reader.readForeign(id, at, flatten(raw));
    if (spec === undefined) continue;
    if (spec.roles?.length === 0) reader.warn(at, "no_roles", "an empty list of roles lets no role use the server");
    servers.push(spec);
  }
  return reader.withoutTwins(servers, path);
}

/** `transport` may be an object that holds what else stands beside it. */
function flatten(raw: JsonObject): JsonObject {
  const { transport, ...rest } = raw;
  return isJsonObject(transport) ? { ...transport, ...rest } : raw;
}
