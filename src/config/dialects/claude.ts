/** `{"mcpServers": {…}}`: Claude Desktop, Claude Code, Cursor, Windsurf, Cline, Gemini CLI and many more. */
import { basename, dirname } from "node:path";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ConfigPath } from "../config-path.ts";
import { foundIn } from "../schema-words.ts";
import type { DialectRead, EntryReader } from "./entry.ts";
import { expandVariables } from "./variables.ts";

/** Folders in which a program keeps its file inside of a workspace. */
const SETTINGS_FOLDERS = new Set([
  ".cursor",
  ".vscode",
  ".windsurf",
  ".gemini",
  ".kiro",
  ".roo",
  ".kilocode",
  ".amazonq",
]);

/** Cline and Roo Code allow an hour at most, so that a larger number cannot be their seconds. */
const MOST_SECONDS = 3600;

export function readClaude(value: JsonObject, reader: EntryReader): DialectRead {
  const map = value["mcpServers"];
  if (!isJsonObject(map)) {
    reader.refuse(
      ["mcpServers"],
      "wrong_value",
      `found ${foundIn(map, "kind")}; allowed is an object of servers by id`,
    );
    return reader.finish([]);
  }
  const variables = { workspaceFolder: workspaceOf(reader.baseDir), userHome: reader.userHome };
  const prepare = (raw: unknown, at: ConfigPath): unknown => adapt(expandVariables(raw, variables), at, reader);
  return reader.finish(reader.readMap(["mcpServers"], map, prepare));
}

/** The folder that a settings folder belongs to. */
export function workspaceOf(folder: string): string {
  return SETTINGS_FOLDERS.has(basename(folder)) ? dirname(folder) : folder;
}

function adapt(raw: unknown, at: ConfigPath, reader: EntryReader): unknown {
  if (!isJsonObject(raw)) return raw;
  const entry: JsonObject = { ...raw };
  adaptTimeout(entry, at, reader);
  // Gemini CLI's switch for its own confirmations.
  if (typeof entry["trust"] === "boolean") delete entry["trust"];
  for (const key of ["env", "headers"])
    if (isJsonObject(entry[key])) entry[key] = adaptDollars(entry[key], [...at, key], reader);
  return entry;
}

/** `timeout` is the time of a call in Cline (seconds) and Gemini CLI (milliseconds), not that of connecting. */
function adaptTimeout(entry: JsonObject, at: ConfigPath, reader: EntryReader): void {
  const timeout = entry["timeout"];
  if (typeof timeout !== "number") return;
  const file = basename(reader.document.file);
  const cline =
    ["autoApprove", "alwaysAllow"].some((key) => key in entry) ||
    entry["type"] === "streamableHttp" ||
    file === "cline_mcp_settings.json" ||
    file === "mcp_settings.json";
  const gemini =
    ["httpUrl", "includeTools", "excludeTools"].some((key) => key in entry) || typeof entry["trust"] === "boolean";
  if (cline && timeout <= MOST_SECONDS) {
    entry["toolTimeout"] ??= timeout * 1000;
    reader.warn([...at, "timeout"], "adapted", `timeout is read as ${timeout} seconds for a call, as Cline does`);
  } else if (gemini) entry["toolTimeout"] ??= timeout;
  else return;
  delete entry["timeout"];
}

/** Gemini CLI also expands a value that is `$NAME` as a whole. */
function adaptDollars(record: JsonObject, at: ConfigPath, reader: EntryReader): JsonObject {
  const adapted: JsonObject = {};
  for (const [key, value] of Object.entries(record)) {
    const [, name] = (typeof value === "string" && /^\$([A-Z][A-Z0-9_]*)$/.exec(value)) || [];
    adapted[key] = name === undefined ? value : `\${${name}}`;
    if (name !== undefined) reader.warn([...at, key], "adapted", `$${name} is read as \${${name}}`);
  }
  return adapted;
}
