/**
 * OpenClaw's openclaw.json: `mcp.servers`, over them `agents.defaults.mcp.servers`, and per agent
 * `agents.list[].mcp.servers`, whose entries change single keys of the shared entry of the same id.
 */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { ConfigPath } from "../config-path.ts";
import type { DialectRead, EntryReader } from "./entry.ts";

export function readOpenclaw(value: JsonObject, reader: EntryReader): DialectRead {
  const agents = objectAt(value, "agents");
  const defaults: ConfigPath = ["agents", "defaults", "mcp", "servers"];
  const prepare = (raw: unknown, at: ConfigPath): unknown => adapt(raw, at, reader);

  const shared = serversAt(value);
  const ofDefaults = serversAt(objectAt(agents, "defaults"));
  const top = reader.readMap(["mcp", "servers"], without(shared, ofDefaults), prepare);
  const servers = [...top, ...reader.readMap(defaults, overlay(shared, ofDefaults), prepare)];

  const all = { ...shared, ...overlay(shared, ofDefaults) };
  const roleServers: Record<string, ServerSpec[]> = {};
  const list: unknown[] = Array.isArray(agents["list"]) ? agents["list"] : [];
  for (const [index, agent] of list.entries()) {
    if (!isJsonObject(agent) || typeof agent["id"] !== "string") continue;
    const own = serversAt(agent);
    if (Object.keys(own).length === 0) continue;
    const at = ["agents", "list", index, "mcp", "servers"];
    roleServers[agent["id"]] = reader.readMap(at, overlay(all, own), prepare);
  }
  return reader.finish(servers, roleServers);
}

function objectAt(value: JsonObject, key: string): JsonObject {
  return isJsonObject(value[key]) ? value[key] : {};
}

function serversAt(value: JsonObject): JsonObject {
  return objectAt(objectAt(value, "mcp"), "servers");
}

function without(map: JsonObject, others: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(map).filter(([id]) => !Object.hasOwn(others, id)));
}

/** Each entry of `over` on top of the entry of the same id below it; env and headers are joined. */
function overlay(below: JsonObject, over: JsonObject): JsonObject {
  const merged: JsonObject = {};
  for (const [id, entry] of Object.entries(over)) {
    const base = Object.hasOwn(below, id) ? below[id] : undefined;
    merged[id] = isJsonObject(base) && isJsonObject(entry) ? mergeEntry(base, entry) : entry;
  }
  return merged;
}

function mergeEntry(base: JsonObject, entry: JsonObject): JsonObject {
  const merged: JsonObject = { ...base, ...entry };
  // A change of transport must not leave the other one's address behind.
  if (entry["url"] !== undefined && entry["command"] === undefined) delete merged["command"];
  if (entry["command"] !== undefined && entry["url"] === undefined) delete merged["url"];
  for (const key of ["env", "headers"]) {
    if (isJsonObject(base[key]) && isJsonObject(entry[key])) merged[key] = { ...base[key], ...entry[key] };
  }
  return merged;
}

function adapt(raw: unknown, at: ConfigPath, reader: EntryReader): unknown {
  if (!isJsonObject(raw)) return raw;
  const { sslVerify, clientCert, clientKey, toolFilter, ...entry } = raw;
  if (sslVerify === false)
    reader.warn([...at, "sslVerify"], "not_read", "certificates are always checked; sslVerify is not read");
  if (clientCert !== undefined || clientKey !== undefined) {
    reader.refuse([...at, "clientCert"], "not_supported", "client certificates are not supported");
    return undefined;
  }
  if (isJsonObject(toolFilter)) {
    entry["includeTools"] ??= toolFilter["include"] ?? toolFilter["allow"];
    entry["excludeTools"] ??= toolFilter["exclude"] ?? toolFilter["deny"];
  }
  // Settings of a login that `auth` asks for, and of another program's adapter.
  delete entry["oauth"];
  delete entry["codex"];
  if (typeof entry["auth"] === "string") entry["auth"] = { type: entry["auth"] };
  for (const key of ["env", "headers"]) if (isJsonObject(entry[key])) entry[key] = withoutRefs(entry[key]);
  return entry;
}

/** OpenClaw writes a reference as `{"source": "env", "id": "NAME"}`. Other sources stay, and are refused as no text. */
function withoutRefs(record: JsonObject): JsonObject {
  const entries = Object.entries(record).map(([key, value]): [string, unknown] => {
    const ref =
      isJsonObject(value) && value["source"] === "env" && typeof value["id"] === "string" ? value["id"] : undefined;
    return [key, ref === undefined ? value : `secret://env/${ref}`];
  });
  return Object.fromEntries(entries);
}
