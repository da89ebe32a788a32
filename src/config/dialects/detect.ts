/** Recognises which program's config a value is, and reads it. */
import { homedir } from "node:os";
import { basename } from "node:path";
import { ConfigSchema } from "../../model/config.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { Document } from "../document.ts";
import { foundIn } from "../schema-words.ts";
import { readAcp } from "./acp.ts";
import { readClaude } from "./claude.ts";
import { EntryReader, type DialectRead, type FileDialect } from "./entry.ts";
import { readList } from "./list.ts";
import { readOpenclaw } from "./openclaw.ts";
import { readToolcrib } from "./toolcrib.ts";
import { readVscode } from "./vscode.ts";

/** Files that belong to a client: what else stands in them is that client's business. */
const CLIENT_FILES = new Set([
  "claude_desktop_config.json",
  ".claude.json",
  ".mcp.json",
  "mcp.json",
  "mcp_config.json",
  "mcp-config.json",
  "cline_mcp_settings.json",
  "mcp_settings.json",
  "settings.json",
  "settings.local.json",
]);

/** Top-level keys by which a file with `mcpServers` is Toolcrib's own. */
const OWN_KEYS = Object.keys(ConfigSchema.shape).filter((key) => key !== "mcpServers" && key !== "$schema");

const OWN_FILE = /^toolcrib(?:\..*)?\.jsonc?$/;

/** A value that is nobody's in particular counts as Toolcrib's own, whose strict messages help most. */
export function detectDialect(value: unknown, file: string): FileDialect {
  if (Array.isArray(value)) return "acp";
  if (!isJsonObject(value)) return "toolcrib";
  const name = basename(file);
  if (OWN_FILE.test(name)) return "toolcrib";
  if (Array.isArray(value["servers"])) return "list";
  if (Array.isArray(value["mcpServers"])) return "acp";
  if (isJsonObject(value["mcpServers"])) {
    return isClientFile(name) || !OWN_KEYS.some((key) => Object.hasOwn(value, key)) ? "claude" : "toolcrib";
  }
  if (isJsonObject(value["servers"])) return "vscode";
  if (isOpenclaw(value, name)) return "openclaw";
  if (isJsonObject(value["mcp"]) && isJsonObject(value["mcp"]["servers"])) return "vscode";
  return "toolcrib";
}

export function isClientFile(name: string): boolean {
  return CLIENT_FILES.has(name);
}

/** Both programs have `mcp.servers`; VS Code's settings have dotted keys and `inputs`, OpenClaw's file has neither. */
function isOpenclaw(value: JsonObject, name: string): boolean {
  const mcp = isJsonObject(value["mcp"]) ? value["mcp"] : {};
  if (/^(?:openclaw|clawdbot|moltbot)\.json5?$/.test(name) || isJsonObject(value["agents"])) return true;
  if (!isJsonObject(mcp["servers"]) || "inputs" in mcp || name === "settings.json") return false;
  return !Object.keys(value).some((key) => key.includes("."));
}

interface DialectOptions {
  readonly file: string;
  /** The document that the value came from, for lines in messages. */
  readonly document?: Document;
  /** Where relative paths start; the file's folder if absent. */
  readonly baseDir?: string;
  /** For `${userHome}`. */
  readonly userHome?: string;
}

/** Reads a config of any known dialect into ServerSpecs. Never throws: what cannot be read is among the problems. */
export function readDialect(value: unknown, options: DialectOptions): DialectRead {
  const dialect = detectDialect(value, options.file);
  const document = options.document ?? Document.ofValue(options.file, value);
  const { baseDir } = options;
  const reader = new EntryReader(document, dialect, {
    baseDir,
    userHome: options.userHome ?? homedir(),
  });
  if (Array.isArray(value)) return readAcp(value, [], reader);
  if (!isJsonObject(value)) {
    reader.refuse([], "wrong_value", `found ${foundIn(value, "kind")}; allowed is an object`);
    return reader.finish([]);
  }
  switch (dialect) {
    case "claude":
      return readClaude(value, reader);
    case "vscode":
      return readVscode(value, reader);
    case "list":
      return readList(value, reader);
    case "openclaw":
      return readOpenclaw(value, reader);
    case "acp":
      return readAcp(Array.isArray(value["mcpServers"]) ? value["mcpServers"] : [], ["mcpServers"], reader);
    case "toolcrib":
      return readToolcrib(value, reader);
  }
}
