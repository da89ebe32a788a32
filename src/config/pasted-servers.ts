/** Servers from a pasted text: a command line, an address, or a snippet of any program's config. */
import { homedir } from "node:os";
import { CLIENTS } from "../clients/clients.ts";
import { editorFor } from "../files/edit/editors.ts";
import { TextSyntaxError } from "../files/edit/text-syntax.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { ServerIdSchema, type ServerSpec } from "../model/server-spec.ts";
import {
  type PlaintextCredential,
  findPlaintextCredentials,
  replaceCredentials,
} from "../secrets/plaintext-credentials.ts";
import { writeReference } from "../secrets/secret-references.ts";
import { ConfigDocument } from "./config-document.ts";
import { expandVariables, VscodeInputs } from "./editor-variables.ts";
import { FOREIGN_CONTAINERS, isServerEntry } from "./entry-reader.ts";
import { type NamedEntry, notUnderstoodError, parseCommandLine, shellWords } from "./pasted-command.ts";
import { type EntryContext, type ReadEntry, readServerEntry } from "./server-entry.ts";

interface ParsedServer {
  /** Proposed; valid, and no two have the same. */
  serverId: string;
  /** With Toolcrib's own keys. A plaintext secret is replaced by a reference to a variable, and a warning says so. */
  config: JsonObject;
  /** No message contains a value. */
  warnings: string[];
}

/** Rejects with `invalid_arguments` or `invalid_config` that says what was not understood. */
export function parsePastedServers(text: string): ParsedServer[] {
  const pasted = withoutFence(text);
  if (pasted === "") throw notUnderstoodError("it is empty");
  const { entries, warnings } = readPasted(pasted);
  const taken = new Set<string>();
  return entries.map((named, index) => {
    const server = toParsedServer(named, taken);
    taken.add(server.serverId);
    return index === 0 ? { ...server, warnings: [...warnings, ...server.warnings] } : server;
  });
}

function readPasted(text: string): SnippetEntries {
  if (/^https?:\/\/\S+$/i.test(text)) return { entries: [{ entry: { url: text } }], warnings: [] };
  const value = snippetValue(text);
  if (value !== undefined) return snippetEntries(value);
  const line = text.replace(/^\$\s+/, "");
  if (/\n/.test(line.replace(/\\\r?\n/g, " ").trim())) throw notUnderstoodError("a command line is one line");
  return { entries: [withInputs(parseCommandLine(shellWords(line)))], warnings: [] };
}

/** Pages and chats put snippets between fences. */
function withoutFence(text: string): string {
  const [, inside] = /^```[^\n]*\n(.*?)\n?```$/s.exec(text.trim()) ?? [];
  return (inside ?? text).replace(/^\uFEFF/, "").trim();
}

/**
 * The servers of a file in a form that is known from pasted snippets only, such as Zed's, OpenCode's or one entry alone, as they are
 * written. Rejects as `parsePastedServers` does.
 */
export function readSnippetFile(text: string, place: EntryContext): { servers: ServerSpec[]; warnings: string[] } {
  const { entries, warnings } = readPasted(withoutFence(text));
  const taken = new Set<string>();
  const servers = entries.map((named) => {
    const { serverId, read, noted } = readNamed(named, taken, place);
    taken.add(serverId);
    warnings.push(...noted);
    return { ...read.spec, id: serverId };
  });
  return { servers, warnings };
}

interface NamedServer {
  readonly serverId: string;
  readonly read: ReadEntry;
  readonly noted: readonly string[];
}

function readNamed(
  { id, entry: raw, warnings: noted = [] }: NamedEntry,
  taken: ReadonlySet<string>,
  place: EntryContext,
): NamedServer {
  const read = readServerEntry("pasted", raw, place);
  const wanted = id ?? proposeId(read.entry, taken);
  const isUsable = ServerIdSchema.safeParse(wanted).success && !taken.has(wanted);
  const serverId = isUsable ? wanted : proposeId({ command: wanted }, taken);
  const renamed =
    id !== undefined && !isUsable ? [`the name ${JSON.stringify(id.slice(0, 80))} cannot be an id here`] : [];
  const ofEntry = read.warnings
    .filter(({ code }) => code !== "plain_credential")
    .map(
      ({ path, message, hint }) =>
        [path, message].filter((part) => part !== "").join(": ") + (hint === undefined ? "" : ` (${hint})`),
    );
  return { serverId, read, noted: [...renamed, ...noted, ...ofEntry] };
}

function toParsedServer(named: NamedEntry, taken: ReadonlySet<string>): ParsedServer {
  const place = { origin: { file: "snippet", dialect: "snippet" }, baseDir: homedir(), userHome: homedir() };
  const { serverId, read, noted } = readNamed(named, taken, place);
  const { entry } = read;
  const found = findPlaintextCredentials(entry);
  const names = new Map(found.map((each) => [each, proposeVariable(serverId, each)]));
  return {
    serverId,
    config: replaceCredentials(entry, found, (each) => writeReference("env", names.get(each) ?? "SECRET")),
    warnings: [
      ...noted,
      ...found.map(
        (each) => `${each.where}: a plaintext secret was here; it is now the variable ${names.get(each) ?? ""}`,
      ),
    ],
  };
}

/** The variable's own name in `env`, else one of the server's and the place's. */
function proposeVariable(serverId: string, { path, where }: PlaintextCredential): string {
  const [first, key] = path;
  if (first === "env" && typeof key === "string" && /^[A-Za-z_]\w*$/.test(key)) return key;
  const last = /authorization|token|bearer/i.test(where) ? "TOKEN" : "SECRET";
  const name = `${serverId}_${last}`.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
  return /^\d/.test(name) ? `_${name}` : name;
}

/** `[mcp_servers.files]` on a line of its own. */
const TOML_TABLE = /^[ \t]*\[{1,2}[\w. \t"'-]+\]{1,2}[ \t]*(?:#.*)?$/m;
/** Not `NAME=value`, which begins a command line. */
const TOML_PAIR = /^[\w."-]+\s+=\s/;

/**
 * What the parsers take too long for, or more room than there is: a key of TOML with many dots, a map of YAML with many
 * keys. No server has either.
 */
const MAX_TOML_KEY_PARTS = 64;
const MAX_YAML_KEYS = 2000;

/** The value of a pasted text, whichever notation it is in; undefined if it is none of them. */
function snippetValue(text: string): unknown {
  const isToml = TOML_TABLE.test(text) || TOML_PAIR.test(text);
  if (/^[{[]/.test(text) && !isToml) return jsonValue(text);
  // `"files": { … }`, cut out of a file.
  if (/^"[^"\n]+"\s*:\s*\{/.test(text)) return jsonValue(`{${text.replace(/,\s*$/, "")}}`);
  if (isToml) {
    if (text.split(/[\n=,{]/).some((part) => count(part, /\./g) > MAX_TOML_KEY_PARTS))
      throw notUnderstoodError("it is nested too deeply");
    const value = parsedAs("toml", text);
    return value instanceof TextSyntaxError ? refuseFormat("TOML", value) : value;
  }
  if (!/^(?:-\s+)?["']?[\w.@ -]+["']?\s*:(?:\s|$)/.test(text)) return undefined;
  if (count(text, /[:,?]/g) > MAX_YAML_KEYS) throw notUnderstoodError("it has too many keys");
  const value = parsedAs("yaml", text);
  return value instanceof TextSyntaxError ? refuseFormat("YAML", value) : value;
}

function count(text: string, mark: RegExp): number {
  return text.match(mark)?.length ?? 0;
}

function jsonValue(text: string): unknown {
  const document = ConfigDocument.parse("snippet", text);
  if (document.errors.length === 0) return document.value;
  const lenient = ConfigDocument.parseJson5("snippet", text);
  if (lenient !== undefined) return lenient.value;
  const [error] = document.errors;
  const place = error === undefined ? "" : ` in line ${error.line}, column ${error.column}: ${error.message}`;
  throw notUnderstoodError(`it begins like JSON but is not valid${place}`);
}

function parsedAs(format: "yaml" | "toml", text: string): unknown {
  try {
    return editorFor(format).parse(text);
  } catch (error) {
    if (error instanceof TextSyntaxError) return error;
    throw error;
  }
}

function refuseFormat(format: string, { message }: TextSyntaxError): never {
  throw notUnderstoodError(`it looks like ${format} but is not valid, ${message}`);
}

interface SnippetEntries {
  readonly entries: readonly NamedEntry[];
  readonly warnings: string[];
}

/** The entries in a pasted value: a whole config of any program, a map of servers, or one entry alone. */
function snippetEntries(value: unknown): SnippetEntries {
  const { entries, warnings } = entriesOf(value);
  const inputs = isJsonObject(value) ? (value["inputs"] ?? inputsOfSettings(value["mcp"])) : undefined;
  return { entries: entries.map((named) => withInputs(named, inputs)), warnings };
}

function inputsOfSettings(mcp: unknown): unknown {
  return isJsonObject(mcp) ? mcp["inputs"] : undefined;
}

function entriesOf(value: unknown): SnippetEntries {
  if (Array.isArray(value)) return listOf(value);
  if (!isJsonObject(value)) throw notUnderstoodError("it is neither an object nor a list");
  const known = FOREIGN_CONTAINERS.find(([key]) => Object.hasOwn(value, key));
  if (known !== undefined) return ofClient(value, known[1]);
  const { mcpServers, servers, mcp } = value;
  const map = mcpServers ?? servers ?? (isJsonObject(mcp) ? (mcp["servers"] ?? mcp) : undefined);
  if (isJsonObject(mcp) && mcp["servers"] === undefined && !isServerEntry(value)) return ofClient(value, "opencode");
  if (Array.isArray(map)) return listOf(map);
  if (isJsonObject(map)) return mapOf(map);
  return isServerEntry(value) ? listOf([value]) : mapOf(value);
}

function mapOf(map: JsonObject): SnippetEntries {
  const pairs = Object.entries(map).filter(([key]) => key !== "$schema" && key !== "inputs");
  const isMap = pairs.length > 0 && pairs.every(([, each]) => isServerEntry(each));
  if (isMap) return { entries: pairs.map(([id, each]) => ({ id, entry: asEntry(each) })), warnings: [] };
  // `[mcp_servers.x]` in TOML and the like, one level down, and an extension's part of the settings of an editor.
  const [only, ...others] = pairs;
  if (others.length === 0 && isJsonObject(only?.[1]) && ("mcpServers" in only[1] || "servers" in only[1]))
    return entriesOf(only[1]);
  if (others.length === 0 && isJsonObject(only?.[1]) && Object.values(only[1]).every(isServerEntry))
    return mapOf(only[1]);
  const wrong = pairs.find(([, each]) => !isServerEntry(each))?.[0];
  throw notUnderstoodError(
    wrong === undefined
      ? "it contains no server"
      : `${JSON.stringify(wrong.slice(0, 80))} has neither a command nor an address`,
    "An entry has a command with args, or a url.",
  );
}

function listOf(list: readonly unknown[]): SnippetEntries {
  if (list.length === 0) throw notUnderstoodError("the list is empty");
  const entries = list.map((item, index) => {
    if (!isServerEntry(item)) throw notUnderstoodError(`item ${index + 1} has neither a command nor an address`);
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
  if (entries.length === 0) throw notUnderstoodError(warnings[0] ?? "it contains no server");
  return { entries, warnings };
}

/** Also with Goose's keys, which its own reader knows only in a whole file. */
function asEntry(value: unknown): JsonObject {
  const { cmd, uri, envs, ...rest }: JsonObject = isJsonObject(value) ? value : {};
  return {
    ...rest,
    ...(rest["command"] === undefined && cmd !== undefined ? { command: cmd } : {}),
    ...(rest["url"] === undefined && uri !== undefined ? { url: uri } : {}),
    ...(rest["env"] === undefined && envs !== undefined ? { env: envs } : {}),
  };
}

/** @param listed The `inputs` beside the servers, which say what each is. */
function withInputs(named: NamedEntry, listed?: unknown): NamedEntry {
  const warnings: string[] = [];
  const inputs = new VscodeInputs(listed, ["inputs"], { warn: (_path, _code, message) => void warnings.push(message) });
  const entry = expandVariables(named.entry, { input: (id) => inputs.reference(id) });
  return warnings.length > 0 ? { ...named, entry, warnings } : named;
}

/** Words that say nothing about which server it is. */
const GENERIC = new Set([
  "",
  "app",
  "bin",
  "build",
  "cli",
  "cmd",
  "com",
  "dist",
  "http",
  "index",
  "lib",
  "main",
  "mcp",
  "out",
  "remote",
  "run",
  "server",
  "src",
  "sse",
  "start",
  "stdio",
  "www",
  "api",
]);
const LAUNCHERS =
  /^(?:npx|bunx|uvx|pipx|pnpx|npm|pnpm|yarn|bun|deno|node|python[\d.]*|uv|tsx|ts-node|docker|podman|sh|bash|cmd|java|go|cargo|ruby|php|dotnet)(?:\.exe|\.cmd)?$/i;
/** Words that follow a launcher and are not a package. */
const VERBS = new Set(["run", "exec", "dlx", "x", "tool", "create", "-m", "/c", "--"]);
/** Options of launchers that take a value. */
const WITH_VALUE = new Set(`-e --env -v --volume -p --name --mount --network --from --with --directory`.split(/\s+/));

/** A short name for a server that has none, from what it is started with. */
function proposeId(entry: JsonObject, taken: ReadonlySet<string>): string {
  const url = textOf(entry, "url");
  const named = url === undefined ? nameOfCommand(entry) : nameOfAddress(url);
  const plain = named
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "")
    .slice(0, 40);
  const base = ServerIdSchema.safeParse(plain).success ? plain : "server";
  let id = base;
  for (let count = 2; taken.has(id); count++) id = `${base}-${count}`;
  return id;
}

function nameOfAddress(url: string): string {
  if (!URL.canParse(url)) return "server";
  const { hostname, pathname } = new URL(url);
  if (/^[\d.]+$|:|^localhost$/.test(hostname)) return lastTelling(pathname.split("/")) ?? "local-server";
  const labels = hostname.split(".").slice(0, -1);
  return labels.findLast((label) => !GENERIC.has(label)) ?? lastTelling(pathname.split("/")) ?? "server";
}

function nameOfCommand(entry: JsonObject): string {
  const command = textOf(entry, "command") ?? "";
  const args = Array.isArray(entry["args"]) ? entry["args"].filter((each) => typeof each === "string") : [];
  const program = command.split(/[/\\]/).at(-1) ?? "";
  if (!LAUNCHERS.test(program)) return shortName(program);
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    if (WITH_VALUE.has(word)) at += 1;
    else if (!word.startsWith("-") && !VERBS.has(word)) return shortName(word);
  }
  return shortName(program);
}

/** `@modelcontextprotocol/server-filesystem@1.0` as `filesystem`, `mcp/github:latest` as `github`. */
function shortName(word: string): string {
  const path = word.replace(/^(?:npm|jsr|git\+https?):/, "").replace(/\.(?:[cm]?[jt]s|py|exe|cmd|jar|rb|php)$/i, "");
  const versionless = path.replace(/(?!^)@[^/@]*$/, "").replace(/:[\w.-]+$/, "");
  const segments = versionless.split(/[/\\]/).map(bare);
  return lastTelling(segments) ?? "server";
}

function bare(segment: string): string {
  const name = segment.replaceAll("_", "-").replace(/^@/, "");
  return name.replace(/^(?:mcp-server-|server-|mcp-)/i, "").replace(/(?:-mcp-server|-mcp|-server)$/i, "");
}

function lastTelling(segments: readonly string[]): string | undefined {
  return segments.findLast((segment) => !GENERIC.has(segment.toLowerCase()) && /[A-Za-z0-9]/.test(segment));
}

function textOf(entry: JsonObject, key: string): string | undefined {
  const value = entry[key];
  return typeof value === "string" ? value : undefined;
}
