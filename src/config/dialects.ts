/** Recognises which program's config a value is, and reads it. */
import { homedir } from "node:os";
import { basename, dirname } from "node:path";
import { translateVscodeSandbox } from "../clients/server-entries.ts";
import { ConfigSchema } from "../model/config.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { ToolRules } from "../model/tool-rules.ts";
import { compileGlob } from "../policy/glob.ts";
import { ConfigDocument, type ConfigPath } from "./config-document.ts";
import { expandVariables, VscodeInputs } from "./editor-variables.ts";
import { ALL_TOOLS, type DialectRead, EntryReader, type FileDialect } from "./entry-reader.ts";
import { describeFound } from "./validate-config.ts";

/** Files that belong to a client: everything else in them is that client's business. */
const CLIENT_FILES = new Set(
  `claude_desktop_config.json .claude.json .mcp.json mcp.json mcp_config.json mcp-config.json
  cline_mcp_settings.json mcp_settings.json settings.json settings.local.json`.split(/\s+/),
);

/** Top-level keys by which a file with servers is Toolcrib's own. Not `env`, which Claude Code's settings have as well. */
const OWN_KEYS = Object.keys(ConfigSchema.shape).filter((key) => !["mcpServers", "$schema", "env"].includes(key));

const OWN_FILE = /^toolcrib(?:\..*)?\.jsonc?$/;

/** A value without marks of any program counts as Toolcrib's own, whose strict messages help most. */
export function detectDialect(value: unknown, file: string): FileDialect {
  if (Array.isArray(value)) return "acp";
  if (!isJsonObject(value)) return "toolcrib";
  const name = basename(file);
  if (OWN_FILE.test(name)) return "toolcrib";
  // Whoever wrote rules or limits beside the servers counts on them, whichever key and form the servers have.
  const isOwn = OWN_KEYS.some((key) => Object.hasOwn(value, key)) || Array.isArray(objectAt(value, "env")["inherit"]);
  const ofClient = isClientFile(name) || !isOwn;
  if (Array.isArray(value["servers"])) return ofClient ? "list" : "toolcrib";
  if (Array.isArray(value["mcpServers"])) return ofClient ? "acp" : "toolcrib";
  if (isJsonObject(value["mcpServers"])) return ofClient ? "claude" : "toolcrib";
  if (isJsonObject(value["servers"])) return ofClient ? "vscode" : "toolcrib";
  if (isOpenclaw(value, name)) return "openclaw";
  if (isJsonObject(value["mcp"]) && isJsonObject(value["mcp"]["servers"])) return ofClient ? "vscode" : "toolcrib";
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
  readonly document?: ConfigDocument;
  /** Where relative paths start; the file's folder if absent. */
  readonly baseDir?: string;
  /** For `${userHome}`. */
  readonly userHome?: string;
}

/** Reads a config of any known dialect into ServerSpecs. Never throws: what cannot be read is among the problems. */
export function readDialect(value: unknown, options: DialectOptions): DialectRead {
  const { file, document = ConfigDocument.ofValue(file, value), baseDir, userHome = homedir() } = options;
  const dialect = detectDialect(value, file);
  const reader = new EntryReader(document, dialect, { baseDir, userHome });
  if (Array.isArray(value)) return readList(value, [], reader);
  if (!isJsonObject(value)) {
    reader.refuse([], "wrong_value", `found ${describeFound(value, "kind")}; expected an object`);
    return reader.finish([]);
  }
  switch (dialect) {
    case "claude":
      return readClaude(value, reader);
    case "vscode":
      return readVscode(value, reader);
    case "list":
      return readList(value["servers"], ["servers"], reader);
    case "openclaw":
      return readOpenclaw(value, reader);
    case "acp":
      return readList(value["mcpServers"], ["mcpServers"], reader);
    case "toolcrib":
      return readToolcrib(value, reader);
  }
}

/** JSONC, or JSON5 where the file is of a program that writes it: elsewhere a lenient grammar would hide mistakes. */
export function parseConfigText(file: string, text: string): ConfigDocument {
  const document = ConfigDocument.parse(file, text);
  if (document.errors.length === 0) return document;
  const lenient = ConfigDocument.parseJson5(file, text);
  return lenient !== undefined && detectDialect(lenient.value, file) === "openclaw" ? lenient : document;
}

/** `mcpServers` as an object; undefined, with a problem noted, for anything else. */
function serverMap(map: unknown, reader: EntryReader): JsonObject | undefined {
  if (isJsonObject(map)) return map;
  const message = `found ${describeFound(map, "kind")}; expected an object of servers by id`;
  reader.refuse(["mcpServers"], "wrong_value", message);
  return undefined;
}

/** Servers of another Toolcrib config, read as an import: its other keys are not used. */
function readToolcrib(value: JsonObject, reader: EntryReader): DialectRead {
  const map = serverMap(value["mcpServers"] ?? {}, reader);
  if (map === undefined) return reader.finish([]);
  const others = Object.keys(value).filter((key) => key !== "mcpServers" && key !== "$schema");
  if (others.length > 0) {
    reader.warn([], "not_read", `only the servers of an imported config are used; not read: ${others.join(", ")}`);
  }
  const servers: ServerSpec[] = [];
  for (const [key, raw] of Object.entries(map)) {
    const at = ["mcpServers", key];
    const entry = isJsonObject(raw) ? adaptOwnEntry(raw, at, reader) : raw;
    const spec = reader.readOwn(reader.validId(key, at, new Set(Object.keys(map))), at, entry);
    if (spec !== undefined) servers.push(spec);
  }
  return reader.finish(servers);
}

/** Folders in which a program keeps its file inside of a workspace. */
const SETTINGS_FOLDERS = new Set(`.cursor .vscode .windsurf .gemini .kiro .roo .kilocode .amazonq`.split(/\s+/));

/** Cline and Roo Code allow an hour at most, so that a larger number cannot be their seconds. */
const MAX_CLINE_TIMEOUT_SECONDS = 3600;

/** `{"mcpServers": {…}}`: Claude Desktop, Claude Code, Cursor, Windsurf, Cline, Gemini CLI and many more. */
function readClaude(value: JsonObject, reader: EntryReader): DialectRead {
  const map = serverMap(value["mcpServers"], reader);
  if (map === undefined) return reader.finish([]);
  return reader.finish(reader.readMap(["mcpServers"], map, (raw, at) => adaptClaudeEntry(raw, at, reader)));
}

/** One entry under `mcpServers`, as it would be read from a file in the given folder. */
export function readClaudeEntry(
  id: string,
  raw: JsonObject,
  document: ConfigDocument,
  options: Required<Pick<DialectOptions, "baseDir" | "userHome">>,
): DialectRead {
  const reader = new EntryReader(document, "claude", options);
  const spec = reader.readForeign(id, [], adaptClaudeEntry(raw, [], reader));
  return reader.finish(spec === undefined ? [] : [spec]);
}

/** An entry of Toolcrib's own file, in which people paste what other programs' documentation prints. */
export function adaptOwnEntry(raw: JsonObject, at: ConfigPath, reader: EntryReader, inputs?: VscodeInputs): JsonObject {
  return reader.withOwnKeys(adaptClaudeEntry(raw, at, reader, inputs), at);
}

/** The folder that a settings folder belongs to. */
export function workspaceOf(folder: string): string {
  return SETTINGS_FOLDERS.has(basename(folder)) ? dirname(folder) : folder;
}

function adaptClaudeEntry(raw: JsonObject, at: ConfigPath, reader: EntryReader, inputs?: VscodeInputs): JsonObject {
  const entry = expandVariables(raw, {
    workspaceFolder: workspaceOf(reader.baseDir),
    userHome: reader.userHome,
    input: inputs && ((id) => inputs.reference(id)),
  });
  adaptTimeout(entry, at, reader);
  // Gemini CLI's switch for its own confirmations.
  if (typeof entry["trust"] === "boolean") delete entry["trust"];
  for (const key of ["env", "headers"])
    if (isJsonObject(entry[key])) entry[key] = adaptDollars(entry[key], [...at, key], reader);
  return entry;
}

/** `timeout` is the time of a call in Cline (seconds), Gemini CLI, Kiro and Amazon Q (milliseconds), not that of connecting. */
function adaptTimeout(entry: JsonObject, at: ConfigPath, reader: EntryReader): void {
  const timeout = entry["timeout"];
  if (typeof timeout !== "number") return;
  const file = basename(reader.document.file);
  const cline =
    ["autoApprove", "alwaysAllow"].some((key) => key in entry) ||
    ("disabled" in entry && !("enabled" in entry)) ||
    entry["type"] === "streamableHttp" ||
    file === "cline_mcp_settings.json" ||
    file === "mcp_settings.json";
  const gemini =
    ["httpUrl", "includeTools", "excludeTools"].some((key) => key in entry) || typeof entry["trust"] === "boolean";
  if (cline && timeout <= MAX_CLINE_TIMEOUT_SECONDS) {
    entry["toolTimeout"] ??= timeout * 1000;
    reader.warn([...at, "timeout"], "adapted", `timeout is read as ${timeout} seconds for a call, as Cline does`);
  } else if (gemini || cline) entry["toolTimeout"] ??= timeout;
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

/** VS Code: `servers` and `inputs` of an mcp.json, or the same under `mcp` in a settings.json. */
function readVscode(value: JsonObject, reader: EntryReader): DialectRead {
  const inSettings = isJsonObject(value["mcp"]) ? value["mcp"] : undefined;
  const root = inSettings ?? value;
  const path: ConfigPath = inSettings === undefined ? [] : ["mcp"];
  const servers = isJsonObject(root["servers"]) ? root["servers"] : {};
  const inputs = new VscodeInputs(root["inputs"], [...path, "inputs"], reader);
  const variables = {
    workspaceFolder: workspaceOf(reader.baseDir),
    userHome: reader.userHome,
    input: (id: string) => inputs.reference(id),
  };
  const prepare = (raw: JsonObject, at: ConfigPath): JsonObject =>
    adaptVscodeEntry(expandVariables(raw, variables), at, reader);
  return reader.finish(reader.readMap([...path, "servers"], servers, prepare));
}

function adaptVscodeEntry(raw: JsonObject, at: ConfigPath, reader: EntryReader): JsonObject {
  const { envFile, sandbox, sandboxEnabled, ...entry } = raw;
  if (envFile !== undefined) {
    reader.warn([...at, "envFile"], "not_read", "envFile is not read", "name the variables in env, with references");
  }
  if (sandboxEnabled === true) {
    const translated = translateVscodeSandbox(sandbox);
    entry["sandbox"] = translated.sandbox;
    const message = `the sandbox becomes bubblewrap here: ${translated.narrower.join("; ")}`;
    reader.warn([...at, "sandboxEnabled"], "adapted", message);
  } else if (sandboxEnabled === undefined && !isVscodeSandbox(sandbox)) entry["sandbox"] = sandbox;
  dropHttpType(entry);
  const hasFolder = ["cwd", "workingDir", "workingDirectory"].some((key) => entry[key] !== undefined);
  if (typeof entry["command"] === "string" && !hasFolder) entry["cwd"] = workspaceOf(reader.baseDir);
  return entry;
}

/** Rules that count for nothing until `sandboxEnabled`. Whoever wrote our own `sandbox` counts on it in any file. */
function isVscodeSandbox(sandbox: unknown): boolean {
  if (!isJsonObject(sandbox)) return sandbox === undefined;
  return Object.entries(sandbox).every(
    ([key, value]) => ["filesystem", "network"].includes(key) && isJsonObject(value),
  );
}

/** In the form with `servers` programs try Streamable HTTP and then SSE for it, which is what no transport means here. */
export function dropHttpType(entry: JsonObject): JsonObject {
  if (/^(?:streamable-?)?http$/i.test(String(entry["type"]))) delete entry["type"];
  return entry;
}

/**
 * OpenClaw's openclaw.json: `mcp.servers`, over them `agents.defaults.mcp.servers`, and per agent
 * `agents.list[].mcp.servers`, whose entries change single keys of the shared entry of the same id. Every agent is a role.
 * The file's own rules about tools apply to all of its servers.
 */
function readOpenclaw(value: JsonObject, reader: EntryReader): DialectRead {
  const agents = objectAt(value, "agents");
  const defaults: ConfigPath = ["agents", "defaults", "mcp", "servers"];
  const rules = joinRules(
    openclawRules(objectAt(value, "tools"), ["tools"], reader),
    openclawRules(objectAt(objectAt(value, "gateway"), "tools"), ["gateway", "tools"], reader),
  );
  const readMap = (at: ConfigPath, map: JsonObject, refused?: ServerSpec[]): ServerSpec[] =>
    reader
      .readMap(at, map, (raw, where) => adaptOpenclawEntry(raw, where, reader), refused)
      .map((spec) => {
        if (rules === undefined) return spec;
        const tools = joinRules(spec.tools, rules, spec.toolPrefix ?? `${spec.id}__`);
        if (tools?.allow?.length === 0) {
          const hint = "name tools of servers as server__tool, or all of them as bundle-mcp";
          reader.warn(
            [...at, spec.id],
            "no_tools",
            "the lists of allowed tools leave none of this server's tools",
            hint,
          );
        }
        return { ...spec, tools };
      });

  const shared = serversAt(value);
  const ofDefaults = serversAt(objectAt(agents, "defaults"));
  const top = readMap(["mcp", "servers"], withoutIds(shared, ofDefaults));
  const servers = [...top, ...readMap(defaults, overlay(shared, ofDefaults))];

  const all = { ...shared, ...overlay(shared, ofDefaults) };
  const roleServers: Record<string, ServerSpec[]> = {};
  const roles: Record<string, { tools?: ToolRules }> = {};
  const list: unknown[] = Array.isArray(agents["list"]) ? agents["list"] : [];
  for (const [index, agent] of list.entries()) {
    if (!isJsonObject(agent) || typeof agent["id"] !== "string" || agent["id"] === "") continue;
    const tools = openclawRules(objectAt(agent, "tools"), ["agents", "list", index, "tools"], reader);
    roles[agent["id"]] = tools === undefined ? {} : { tools };
    const own = serversAt(agent);
    if (Object.keys(own).length === 0) continue;
    const merged = Object.entries(overlay(all, own)).map(([id, entry]) => [id, withOwnPrefix(entry, own[id])]);
    const refused: ServerSpec[] = [];
    const usable = readMap(["agents", "list", index, "mcp", "servers"], Object.fromEntries(merged), refused);
    // In the place of a wrong one the agent would get the shared server, which may be allowed more.
    roleServers[agent["id"]] = [...usable, ...refused];
  }
  return reader.finish(servers, { roleServers, roles });
}

/** Words that mean all tools of MCP servers. */
const OPENCLAW_MCP_TOOLS = new Set(["group:plugins", "bundle-mcp", "*"]);

/**
 * Lists of tools of OpenClaw. Its own tools and groups of them are not here: an `allow` that names only those allows no tool of a
 * server.
 */
function openclawRules(tools: JsonObject, at: ConfigPath, reader: EntryReader): ToolRules | undefined {
  const namesOf = (key: "allow" | "deny"): readonly string[] | null | undefined => {
    const list = tools[key];
    if (list === undefined || list === null) return undefined;
    if (typeof list === "string") return [list];
    if (Array.isArray(list) && list.every((name) => typeof name === "string")) return list;
    reader.warn([...at, key], "wrong_value", "this is not a list of names, so no tool of a server is allowed");
    return null;
  };
  const patternsOf = (list: readonly string[], isMeant: (name: string) => boolean): string[] =>
    list.flatMap((name) => {
      if (OPENCLAW_MCP_TOOLS.has(name)) return ["*"];
      return name !== "" && !name.startsWith("group:") && isMeant(name) ? [name] : [];
    });
  const [allow, deny] = [namesOf("allow"), namesOf("deny")];
  if (allow === null || deny === null) return { allow: [] };
  const rules: ToolRules = {
    ...(allow === undefined ? {} : { allow: patternsOf(allow, (name) => /__|[*?]/.test(name)) }),
    ...(deny === undefined ? {} : { deny: patternsOf(deny, () => true) }),
  };
  return Object.keys(rules).length === 0 ? undefined : rules;
}

/** The rules that allow only what both allow. Names in them are a server's own, or have the prefix of its public ones. */
function joinRules(one: ToolRules | undefined, other: ToolRules | undefined, prefix = ""): ToolRules | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const deny = [...(one.deny ?? []), ...(other.deny ?? [])];
  const [a, b] = [one.allow, other.allow];
  const formsOf = (pattern: string): readonly string[] => [pattern, `${prefix}${pattern}`];
  const within = (name: string, list: readonly string[]): boolean =>
    list.some((pattern) => formsOf(pattern).some((wide) => formsOf(name).some((narrow) => covers(wide, narrow))));
  const allow =
    a === undefined || b === undefined
      ? (a ?? b)
      : [...new Set([...a.filter((name) => within(name, b)), ...b.filter((name) => within(name, a))])];
  // What asks is offered, whatever is allowed.
  const ask =
    allow && one.ask?.flatMap((name) => (name === ALL_TOOLS[0] ? allow : ALL_TOOLS.includes(name) ? [] : [name]));
  return { ...one, ...other, ...(ask && { ask }), ...(allow && { allow }), ...(deny.length > 0 && { deny }) };
}

/** Whether one pattern matches whatever another one does. Of two that overlap it says no: less is allowed then. */
function covers(wide: string, narrow: string): boolean {
  if (wide === narrow) return true;
  // `?` would match the star of the other pattern as if it were one character.
  return !(wide.includes("?") && /[*?]/.test(narrow)) && compileGlob(wide)(narrow);
}

function objectAt(value: JsonObject, key: string): JsonObject {
  return isJsonObject(value[key]) ? value[key] : {};
}

function serversAt(value: JsonObject): JsonObject {
  return objectAt(objectAt(value, "mcp"), "servers");
}

function withoutIds(map: JsonObject, others: JsonObject): JsonObject {
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

/** Without the prefix of the shared entry: that server has it, and the agent sees the names of that server anyway. */
function withOwnPrefix(merged: unknown, own: unknown): unknown {
  if (!isJsonObject(merged) || !isJsonObject(own) || own["toolPrefix"] !== undefined) return merged;
  const { toolPrefix: _prefix, ...rest } = merged;
  return rest;
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

function adaptOpenclawEntry(raw: JsonObject, at: ConfigPath, reader: EntryReader): JsonObject | undefined {
  const { sslVerify, clientCert, clientKey, toolFilter, ...entry } = raw;
  if (sslVerify === false)
    reader.warn([...at, "sslVerify"], "not_read", "certificates are always checked; sslVerify is not read");
  if (clientCert !== undefined || clientKey !== undefined) {
    reader.refuse([...at, "clientCert"], "not_supported", "client certificates are not supported");
    return undefined;
  }
  if (toolFilter !== undefined && toolFilter !== null) {
    const { include, allow, exclude, deny, ...others } = isJsonObject(toolFilter) ? toolFilter : { toolFilter };
    if (Object.keys(others).length > 0) {
      const found = isJsonObject(toolFilter) ? `unknown key ${Object.keys(others).join(", ")}` : "found no object";
      reader.refuse([...at, "toolFilter"], "wrong_value", `${found}; expected an object with include and exclude`);
      return undefined;
    }
    entry["includeTools"] ??= include ?? allow;
    entry["excludeTools"] ??= exclude ?? deny;
  }
  // Settings of a login that `auth` asks for, and of another program's adapter.
  delete entry["oauth"];
  delete entry["codex"];
  if (typeof entry["auth"] === "string") entry["auth"] = { type: entry["auth"] };
  // Its separator is not part of it there.
  const prefix = entry["toolPrefix"];
  if (typeof prefix === "string" && /[A-Za-z0-9]$/.test(prefix)) entry["toolPrefix"] = `${prefix}__`;
  for (const key of ["env", "headers"]) if (isJsonObject(entry[key])) entry[key] = withoutRefs(entry[key]);
  return entry;
}

/** OpenClaw writes a reference as `{"source": "env", "id": "NAME"}`. Other sources stay, and are refused because they are not text. */
function withoutRefs(record: JsonObject): JsonObject {
  const entries = Object.entries(record).map(([key, value]): [string, unknown] => {
    const ref =
      isJsonObject(value) && value["source"] === "env" && typeof value["id"] === "string" ? value["id"] : undefined;
    return [key, ref === undefined ? value : `secret://env/${ref}`];
  });
  return Object.fromEntries(entries);
}

/**
 * The list form of an mcp-servers.json: `{"servers": [{"id", "name", "transport", …}]}`. Also ACP's `mcpServers` array, which
 * has names instead of ids, stdio entries without `type`, and env and headers as lists of name and value.
 */
function readList(list: unknown, path: readonly string[], reader: EntryReader): DialectRead {
  const servers: ServerSpec[] = [];
  const taken = new Set<string>();
  for (const [index, raw] of (Array.isArray(list) ? list : []).entries()) {
    const at = [...path, index];
    const label = isJsonObject(raw) ? (raw["id"] ?? raw["name"]) : undefined;
    if (!isJsonObject(raw) || typeof label !== "string" || label === "") {
      reader.refuse(at, "wrong_server", "found an entry without id and name; expected an object with an id");
      continue;
    }
    const id = reader.validId(label, at, taken);
    taken.add(id);
    const spec = reader.readForeign(id, at, flatten(raw));
    if (spec === undefined) continue;
    if (spec.roles?.length === 0) reader.warn(at, "no_roles", "an empty list of roles lets no role use the server");
    servers.push(spec);
  }
  return reader.finish(reader.withoutDuplicates(servers, path));
}

/** `transport` may be an object with the keys that are otherwise beside it. */
function flatten(raw: JsonObject): JsonObject {
  const { transport, ...rest } = raw;
  return isJsonObject(transport) ? { ...transport, ...rest } : raw;
}
