/** The entries in a pasted value: a whole config of any program, a map of servers, or one entry alone. */
import { CLIENTS } from "../../clients/clients.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { NamedEntry } from "./command-entry.ts";
import { withInputs } from "./entry-inputs.ts";
import { notUnderstood } from "./shell-words.ts";

/** Keys of which an entry has at least one. */
const TARGETS = ["command", "url", "serverUrl", "httpUrl", "cmd", "uri"];
/** Where programs have their servers; their own readers know what the words there mean. */
const CONTAINERS: readonly (readonly [key: string, client: string])[] = [
  ["mcp_servers", "codex"],
  ["context_servers", "zed"],
  ["extensions", "goose"],
  ["amp.mcpServers", "amp"],
];

export interface SnippetEntries {
  readonly entries: readonly NamedEntry[];
  readonly warnings: readonly string[];
}

export function snippetEntries(value: unknown): SnippetEntries {
  const { entries, warnings } = entriesOf(value);
  const inputs = isJsonObject(value) ? (value["inputs"] ?? inputsOfSettings(value["mcp"])) : undefined;
  return { entries: entries.map((named) => withInputs(named, inputs)), warnings };
}

function inputsOfSettings(mcp: unknown): unknown {
  return isJsonObject(mcp) ? mcp["inputs"] : undefined;
}

function entriesOf(value: unknown): SnippetEntries {
  if (Array.isArray(value)) return listOf(value);
  if (!isJsonObject(value)) throw notUnderstood("it is neither an object nor a list");
  const known = CONTAINERS.find(([key]) => Object.hasOwn(value, key));
  if (known !== undefined) return ofClient(value, known[1]);
  const { mcpServers, servers, mcp } = value;
  const map = mcpServers ?? servers ?? (isJsonObject(mcp) ? (mcp["servers"] ?? mcp) : undefined);
  if (isJsonObject(mcp) && mcp["servers"] === undefined && !isEntry(value)) return ofClient(value, "opencode");
  if (Array.isArray(map)) return listOf(map);
  if (isJsonObject(map)) return mapOf(map);
  return isEntry(value) ? listOf([value]) : mapOf(value);
}

function isEntry(value: unknown): value is JsonObject {
  return isJsonObject(value) && TARGETS.some((key) => typeof value[key] === "string" || Array.isArray(value[key]));
}

function mapOf(map: JsonObject): SnippetEntries {
  const pairs = Object.entries(map).filter(([key]) => key !== "$schema" && key !== "inputs");
  const isMap = pairs.length > 0 && pairs.every(([, each]) => isEntry(each));
  if (isMap) return { entries: pairs.map(([id, each]) => ({ id, entry: asEntry(each) })), warnings: [] };
  // `[mcp_servers.x]` in TOML and the like, one level down.
  const [only, ...others] = pairs;
  if (others.length === 0 && isJsonObject(only?.[1]) && Object.values(only[1]).every(isEntry)) return mapOf(only[1]);
  const wrong = pairs.find(([, each]) => !isEntry(each))?.[0];
  throw notUnderstood(
    wrong === undefined
      ? "it holds no server"
      : `${JSON.stringify(wrong.slice(0, 80))} has neither a command nor an address`,
    "An entry has a command with args, or a url.",
  );
}

function listOf(list: readonly unknown[]): SnippetEntries {
  if (list.length === 0) throw notUnderstood("the list is empty");
  const entries = list.map((item, index) => {
    if (!isEntry(item)) throw notUnderstood(`item ${index + 1} has neither a command nor an address`);
    const name = item["id"] ?? item["name"];
    return { ...(typeof name === "string" && name !== "" ? { id: name } : {}), entry: asEntry(item) };
  });
  return { entries, warnings: [] };
}

function ofClient(value: JsonObject, id: string): SnippetEntries {
  const client = CLIENTS.find((each) => each.id === id);
  const read = client?.read(value, { scope: "user", path: "snippet" });
  const entries = Object.entries(read?.servers ?? {}).map(([name, entry]) => ({ id: name, entry }));
  const warnings = (read?.problems ?? []).map(({ path, message }) => `${path.join(".")}: ${message}`);
  if (entries.length === 0) throw notUnderstood(warnings[0] ?? "it holds no server");
  return { entries, warnings };
}

/** Goose's words, which its own reader would know in a whole file only. */
function asEntry(value: unknown): JsonObject {
  const { cmd, uri, envs, ...rest }: JsonObject = isJsonObject(value) ? value : {};
  return {
    ...rest,
    ...(rest["command"] === undefined && cmd !== undefined ? { command: cmd } : {}),
    ...(rest["url"] === undefined && uri !== undefined ? { url: uri } : {}),
    ...(rest["env"] === undefined && envs !== undefined ? { env: envs } : {}),
  };
}
