/** Servers of another Toolcrib config, read as an import: its other keys are not taken over. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { foundIn } from "../schema-words.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { DialectRead, EntryReader } from "./entry.ts";

export function readToolcrib(value: JsonObject, reader: EntryReader): DialectRead {
  const map = value["mcpServers"] ?? {};
  if (!isJsonObject(map)) {
    reader.refuse(
      ["mcpServers"],
      "wrong_value",
      `found ${foundIn(map, "kind")}; allowed is an object of servers by id`,
    );
    return reader.finish([]);
  }
  const others = Object.keys(value).filter((key) => key !== "mcpServers" && key !== "$schema");
  if (others.length > 0) {
    reader.warn([], "not_read", `only the servers of an imported config are used; not read: ${others.join(", ")}`);
  }
  const servers: ServerSpec[] = [];
  for (const [id, raw] of Object.entries(map)) {
    const spec = reader.readOwn(
      reader.validId(id, ["mcpServers", id], new Set(Object.keys(map))),
      ["mcpServers", id],
      raw,
    );
    if (spec !== undefined) servers.push(spec);
  }
  return reader.finish(servers);
}
