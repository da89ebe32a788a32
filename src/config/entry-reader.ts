/** From a server entry of any program to a ServerSpec: foreign names of keys and foreign forms of values. */
import { dirname, posix } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { ClientId } from "../clients/agent-client.ts";

import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Diagnostic } from "../model/loaded-config.ts";
import { type ServerEntry, ServerEntrySchema, ServerIdSchema, type ServerSpec } from "../model/server-spec.ts";
import { type ToolRules } from "../model/tool-rules.ts";
import { type ConfigDocument, type ConfigPath, formatPath, renderDiagnostic } from "./config-document.ts";
import { serverProblems, serverWarnings } from "./config-rules.ts";
import { entryNode } from "./config-schema.ts";
import { validateConfig } from "./validate-config.ts";

/** Forms that are recognised by the content of a file. */
export type FileDialect = "toolcrib" | "claude" | "vscode" | "list" | "openclaw" | "acp";

/** Or the client whose file it is, where that is known beforehand. */
export type DialectName = FileDialect | ClientId;

export interface DialectRead {
  readonly dialect: DialectName;
  readonly servers: ServerSpec[];
  /** Servers that only one agent of the file's program has, by its id, with those that cannot be used: `problem` says why. */
  readonly roleServers: Record<string, ServerSpec[]>;
  /** The agents of the file's program by id, with the rules of each. */
  readonly roles: Readonly<Record<string, { readonly tools?: ToolRules }>>;
  readonly warnings: Diagnostic[];
  /** Entries that could not be read, and are not among the servers. */
  readonly problems: Diagnostic[];
  /** Ids of entries that start Toolcrib itself, and are not among the servers. */
  readonly own: readonly string[];
}

export const NOT_A_SERVER = "found something that is not an object; expected an object that describes a server";

/** Keys of which an entry has at least one. */
const TARGETS = ["command", "url", "serverUrl", "httpUrl", "cmd", "uri"];

export function isServerEntry(value: unknown): value is JsonObject {
  return isJsonObject(value) && TARGETS.some((key) => typeof value[key] === "string" || Array.isArray(value[key]));
}

/** Keys under which programs have their servers, and the client whose reader understands them. */
export const FOREIGN_CONTAINERS: readonly (readonly [key: string, client: ClientId])[] = [
  ["mcp_servers", "codex"],
  ["context_servers", "zed"],
  ["extensions", "goose"],
  ["amp.mcpServers", "amp"],
];

/** Whether another program's servers may be under this key at the top of a file. */
export function isForeignContainer(key: string, value: unknown): boolean {
  if (TARGETS.includes(key) || FOREIGN_CONTAINERS.some(([name]) => name === key) || isServerEntry(value)) return true;
  return isJsonObject(value) && Object.values(value).some((each) => isServerEntry(each) || isServerMap(each));
}

function isServerMap(value: unknown): boolean {
  const entries = isJsonObject(value) ? Object.values(value) : Array.isArray(value) ? value : [];
  return entries.length > 0 && entries.every(isServerEntry);
}

/** The name itself where it is a valid id, else one like it that is not taken. */
function serverIdFor(wanted: string, taken: ReadonlySet<string>): string {
  if (ServerIdSchema.safeParse(wanted).success) return wanted;
  const plain =
    wanted
      .replace(/[^A-Za-z0-9._@ -]+/g, "-")
      .replace(/^[^A-Za-z0-9]+/, "")
      .slice(0, 60) || "server";
  let id = plain;
  for (let count = 2; taken.has(id) || !ServerIdSchema.safeParse(id).success; count++) id = `${plain}-${count}`;
  return id;
}

/** The ids of the servers of a map by the names that are written there, in its order. */
export function serverIdsOf(map: JsonObject): Map<string, string> {
  const taken = new Set(Object.keys(map));
  const ids = new Map<string, string>();
  for (const name of Object.keys(map)) {
    const id = serverIdFor(name, taken);
    taken.add(id);
    ids.set(name, id);
  }
  return ids;
}

/** Reads the entries of one file and collects what there is to say about them. */
export class EntryReader {
  readonly document: ConfigDocument;
  readonly baseDir: string;
  readonly userHome: string;
  readonly warnings: Diagnostic[] = [];
  readonly problems: Diagnostic[] = [];
  readonly #dialect: DialectName;
  readonly #own: string[] = [];

  constructor(document: ConfigDocument, dialect: DialectName, options: { baseDir?: string; userHome: string }) {
    this.document = document;
    this.#dialect = dialect;
    this.baseDir = options.baseDir ?? dirname(document.file);
    this.userHome = options.userHome;
  }

  warn(path: ConfigPath, code: string, message: string, hint?: string): void {
    this.warnings.push(this.document.report(path, { severity: "warning", code, message, hint }));
  }

  refuse(path: ConfigPath, code: string, message: string, hint?: string): void {
    this.problems.push(this.document.report(path, { severity: "error", code, message, hint }));
  }

  /** An entry with another program's keys; undefined, with a problem noted, if it is not a server. */
  readForeign(id: string, path: ConfigPath, raw: JsonObject): ServerSpec | undefined {
    if (isToolcribEntry(id, raw)) {
      this.#own.push(id);
      this.warn(path, "own_entry", "this entry starts Toolcrib itself; it is left out");
      return undefined;
    }
    return this.readOwn(id, path, this.withOwnKeys(raw, path));
  }

  /** The entry with Toolcrib's own names. Unknown keys stay, so that they are reported as unknown. */
  withOwnKeys(raw: JsonObject, path: ConfigPath): JsonObject {
    const { inherit, entry } = withOwnInherit(raw);
    const draft = renameKeys(entry, (key, message) => this.warn([...path, ...key], "adapted", message));
    return inherit === undefined ? draft : { inherit, ...draft };
  }

  /** An entry with Toolcrib's own keys. */
  readOwn(id: string, path: ConfigPath, value: unknown): ServerSpec | undefined {
    const { output, problems, warnings } = validateConfig(this.document, path, value, ServerEntrySchema, entryNode());
    const unknown = this.#dialect === "toolcrib" ? warnings.filter(({ code }) => code === "unknown_key") : [];
    this.warnings.push(...warnings.filter((warning) => !unknown.includes(warning)));
    this.problems.push(
      ...problems,
      ...unknown.map((each) => asUnusable(each, formatPath(this.document.writtenPath(path)))),
    );
    if (output === undefined || unknown.length > 0) return undefined;
    const wrong = serverProblems(this.document, path, output);
    this.problems.push(...wrong);
    if (wrong.length > 0) return undefined;
    this.warnings.push(...serverWarnings(this.document, path, output));
    return this.#specOf(id, output);
  }

  #specOf(id: string, entry: ServerEntry): ServerSpec {
    return { ...entry, id, origin: { file: this.document.file, dialect: this.#dialect }, baseDir: this.baseDir };
  }

  /** An id that Toolcrib accepts; a change is reported. `taken` keeps two changed ids from becoming one. */
  validId(wanted: string, path: ConfigPath, taken: ReadonlySet<string>): string {
    const id = serverIdFor(wanted, taken);
    if (id === wanted) return id;
    this.warn(
      path,
      "renamed",
      `the name ${JSON.stringify(wanted.slice(0, 80))} is not a valid id; it is called ${JSON.stringify(id)} here`,
    );
    return id;
  }

  /**
   * The entries of an object by id, in the file's order. `prepare` returns undefined for an entry that it refused.
   * @param refused Gets a server in the place of each that cannot be used: it is never started, and says why.
   */
  readMap(
    path: ConfigPath,
    map: JsonObject,
    prepare: (raw: JsonObject, at: ConfigPath) => JsonObject | undefined = (raw) => raw,
    refused: ServerSpec[] = [],
  ): ServerSpec[] {
    const taken = new Set(Object.keys(map));
    const servers: ServerSpec[] = [];
    for (const [key, raw] of Object.entries(map)) {
      const at = [...path, key];
      const before = this.problems.length;
      if (!isJsonObject(raw)) this.refuse(at, "wrong_server", NOT_A_SERVER);
      const prepared = isJsonObject(raw) ? prepare(raw, at) : undefined;
      const id = this.validId(key, at, taken);
      taken.add(id);
      const spec = prepared && this.readForeign(id, at, prepared);
      if (spec !== undefined) servers.push(spec);
      const problem = this.problems.slice(before).map(renderDiagnostic).join("; ");
      if (spec === undefined && problem !== "")
        refused.push({ ...this.#specOf(id, ServerEntrySchema.parse({})), problem });
    }
    return servers;
  }

  /** Of entries with one id the last counts, as with keys of an object. */
  withoutDuplicates(servers: readonly ServerSpec[], path: ConfigPath): ServerSpec[] {
    const byId = new Map<string, ServerSpec>();
    for (const spec of servers) {
      if (byId.delete(spec.id))
        this.warn(path, "duplicate_id", `the id ${JSON.stringify(spec.id)} occurs twice; the last one counts`);
      byId.set(spec.id, spec);
    }
    return [...byId.values()];
  }

  finish(
    servers: ServerSpec[],
    { roleServers = {}, roles = {} }: Partial<Pick<DialectRead, "roleServers" | "roles">> = {},
  ): DialectRead {
    const { warnings, problems } = this;
    return { dialect: this.#dialect, servers, roleServers, roles, warnings, problems, own: this.#own };
  }
}

/**
 * A key that is not acted on may have been meant to narrow what the server does.
 *
 * @param entry Path of the server's entry.
 */
export function asUnusable(unknown: Diagnostic, entry: string): Diagnostic {
  const key = unknown.path.slice(entry.length + 1);
  if (!Object.hasOwn(KEY_ALIASES, key) || key === "oauth")
    return { ...unknown, severity: "error", message: unknown.message.replace(/ is ignored$/, "") };
  const message = `"${key}" contradicts another key of this server`;
  return { ...unknown, severity: "error", message, hint: "remove one of them" };
}

/** `env.inherit` as a list is not a variable but a key of the entry. */
function withOwnInherit(entry: JsonObject): { readonly entry: JsonObject; readonly inherit?: unknown } {
  if (!isJsonObject(entry["env"]) || !Array.isArray(entry["env"]["inherit"])) return { entry };
  const { inherit, ...env } = entry["env"];
  return { entry: { ...entry, env }, inherit };
}

// Other programs' names for the keys of a server entry, and other forms of their values.

/** Reports a change; the path is inside the entry. */
type Note = (path: (string | number)[], message: string) => void;

/** Patterns that together match every tool, and nothing else. */
export const ALL_TOOLS: readonly string[] = ["readOnly", "writes"];

/** @param written The key as the entry has it. */
type Rename = (draft: JsonObject, value: unknown, note: Note, written: string) => void;

/** Keys with no meaning here: display, features of editors and shops. */
const IGNORED_KEYS = new Set(
  `$schema _meta approvalMode author autoStart category comment _comment description dev disabledReason displayName extensionName
  faviconUrl fromGalleryId gallery homepage icon iconPath iconUrl icons id installSource keywords license logoUrl metadata
  note notes provider providerUrl registryUrl repository source supportsParallelToolCalls title version`.split(/\s+/),
);

const TRANSPORTS: Readonly<Record<string, "stdio" | "http" | "sse" | "">> = {
  stdio: "stdio",
  local: "stdio",
  http: "http",
  "streamable-http": "http",
  streamablehttp: "http",
  streamable_http: "http",
  streamable: "http",
  sse: "sse",
  // Says only that there is a url.
  remote: "",
};

/** Other names of our own keys, or what they become. */
const KEY_ALIASES: Readonly<Record<string, string | Rename>> = {
  type: setTransport,
  transportType: setTransport,
  transport: setTransport,
  serverUrl: "url",
  baseUrl: "url",
  // In Gemini CLI it comes before `url`.
  httpUrl(draft, value, _note, written) {
    draft["url"] = value;
    setDefault(draft, "transport", "http", written);
  },
  workingDir: "cwd",
  workingDirectory: "cwd",
  working_directory: "cwd",
  environment: (draft, value, note, written) => setDefault(draft, "env", textRecord(value, written, note), written),
  env: (draft, value, note) => void (draft["env"] = textRecord(value, "env", note)),
  headers: (draft, value, note) => void (draft["headers"] = textRecord(value, "headers", note)),
  http_headers: (draft, value, note, written) =>
    setDefault(draft, "headers", textRecord(value, written, note), written),
  args: (draft, value, note) => void (draft["args"] = textList(value, "args", note)),
  connectionTimeoutMs: "timeout",
  connectTimeoutMs: "timeout",
  requestTimeoutMs: "toolTimeout",
  toolTimeoutMs: "toolTimeout",
  auth: setAuth,
  oauth: setAuth,
  allowedAgentRoles: setRoles,
  allowedRoles: setRoles,
  restartOnCrash(draft, value) {
    if (value !== true) draft["restart"] = value;
  },
  maxRestarts: (draft, value) => setRestart(draft, "max", value),
  restartDelayMs: (draft, value) => setRestart(draft, "initialDelay", value),
  disabled: (draft, value, _note, written) =>
    setDefault(draft, "enabled", typeof value === "boolean" ? !value : value, written),
  isActive: "enabled",
  start_on_launch: "autoConnect",
  // Read when all other rules are there.
  autoApprove: () => {},
  alwaysAllow: () => {},
  disabledTools: (draft, value) => addRules(draft, "deny", value),
  disabled_tools: (draft, value) => addRules(draft, "deny", value),
  excludeTools: (draft, value) => addRules(draft, "deny", value),
  includeTools: (draft, value) => addRules(draft, "allow", value),
  enabledTools: (draft, value) => addRules(draft, "allow", value),
  enabled_tools: (draft, value) => addRules(draft, "allow", value),
};

/** Keys of the entry that say something to another program and nothing here. */
export function findIgnoredKeys(raw: JsonObject): string[] {
  const isTrust = (key: string): boolean => key === "trust" && typeof raw[key] === "boolean";
  return Object.keys(raw).filter((key) => (isIgnored(key, raw[key]) && key !== "id") || isTrust(key));
}

/** JSON has no comments, so that people write them as keys. */
function isIgnored(key: string, value: unknown): boolean {
  return IGNORED_KEYS.has(key) || (typeof value === "string" && /^(?:_|#|\/\/)/.test(key));
}

export function renameKeys(raw: JsonObject, note: Note): JsonObject {
  const draft: JsonObject = {};
  // Own names first: where a file has both, the foreign one does not override.
  const entries = Object.entries(raw).filter(([key, value]) => value !== null && !isIgnored(key, value));
  for (const [key, value] of entries) if (!Object.hasOwn(KEY_ALIASES, key)) draft[key] = value;
  // Copilot CLI: a list of the tools that are offered.
  if (Array.isArray(draft["tools"])) {
    if (draft["tools"].includes("*")) delete draft["tools"];
    else draft["tools"] = { allow: draft["tools"] };
  }
  const isOwn = ([key]: [string, unknown]): boolean => Object.hasOwn(ServerEntrySchema.shape, key);
  for (const [key, value] of [...entries.filter(isOwn), ...entries.filter((entry) => !isOwn(entry))]) {
    const alias = Object.hasOwn(KEY_ALIASES, key) ? KEY_ALIASES[key] : undefined;
    if (typeof alias === "string") setDefault(draft, alias, value, key);
    else alias?.(draft, value, note, key);
  }
  setApproved(draft, [raw["autoApprove"], raw["alwaysAllow"]].flat());
  splitCommand(draft);
  return draft;
}

/** The key of the entry that became this key of Toolcrib's own. */
export function writtenKey(raw: JsonObject, key: string): string {
  if (Object.hasOwn(raw, key)) return key;
  const isSource = (each: string): boolean =>
    Object.hasOwn(
      renameKeys({ [each]: raw[each] }, () => {}),
      key,
    );
  return Object.keys(raw).find(isSource) ?? key;
}

/** Keys of our own of which several foreign ones are parts. */
const JOINED_KEYS = ["tools", "restart"];

/** The entry with the given keys under our own names: under another one, a key that is set beside it would contradict it. */
export function withOwnNames(entry: JsonObject, keys: readonly string[]): JsonObject {
  const others = Object.keys(entry).filter((key) => {
    if (!Object.hasOwn(KEY_ALIASES, key) || Object.hasOwn(ServerEntrySchema.shape, key)) return false;
    const meant = Object.keys(renameKeys({ [key]: entry[key] }, () => {}));
    return meant.some((own) => keys.includes(own) && !JOINED_KEYS.includes(own));
  });
  if (others.length === 0) return entry;
  const [renamed, rest] = [true, false].map((isOther) =>
    Object.fromEntries(Object.entries(entry).filter(([key]) => others.includes(key) === isOther)),
  );
  return { ...rest, ...renameKeys(renamed ?? {}, () => {}) };
}

/** A key that contradicts another one stays under its own name, which is reported: neither can be known to be meant. */
function setDefault(draft: JsonObject, key: string, value: unknown, written: string): void {
  if (draft[key] === undefined) draft[key] = value;
  else if (key !== written && !isDeepStrictEqual(draft[key], value)) draft[written] = value;
}

function setTransport(draft: JsonObject, value: unknown, _note: Note, written: string): void {
  const transport = typeof value === "string" ? TRANSPORTS[value.toLowerCase()] : undefined;
  if (transport === "") return;
  // An unknown word stays, for the message that says what is allowed.
  setDefault(draft, "transport", transport ?? value, written);
}

/** Cursor's `auth`, and the `oauth` of Claude Code, Gemini CLI and others: a login with a client that was registered by hand. */
function setAuth(draft: JsonObject, value: unknown, _note: Note, written: string): void {
  const isCursors = isJsonObject(value) && value["type"] === undefined && value["CLIENT_ID"] !== undefined;
  if (!isJsonObject(value) || (written === "auth" && !isCursors) || value["enabled"] === false) {
    draft[written] = value;
    return;
  }
  const { CLIENT_ID, CLIENT_SECRET, callbackPort, enabled: _enabled, scopes, ...rest } = value;
  const auth: JsonObject = { type: "oauth", ...rest };
  for (const [key, given] of Object.entries({
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    redirectPort: callbackPort,
  }))
    if (given !== undefined) auth[key] ??= given;
  if (scopes !== undefined)
    auth["scopes"] = typeof scopes === "string" ? scopes.split(/[\s,]+/).filter(Boolean) : scopes;
  setDefault(draft, "auth", auth, written);
}

function setRoles(draft: JsonObject, value: unknown, _note: Note, written: string): void {
  if (Array.isArray(value) && value.includes("*")) return;
  setDefault(draft, "roles", value, written);
}

function setRestart(draft: JsonObject, key: string, value: unknown): void {
  if (draft["restart"] === false) return;
  draft["restart"] = { [key]: value, ...(isJsonObject(draft["restart"]) ? draft["restart"] : {}) };
}

/**
 * Tools that run without a question: the server's other tools ask, as far as they are allowed. A list of none is what programs
 * write by themselves.
 */
function setApproved(draft: JsonObject, approved: readonly unknown[]): void {
  // As with other rules, what is not a name stays, for the message that says what is allowed.
  const wrong = approved.filter((name) => !["string", "boolean", "undefined"].includes(typeof name) && name !== null);
  if (wrong.length > 0) addRules(draft, "ask", wrong);
  const names = approved.filter((name) => typeof name === "string");
  if (names.length === 0 || names.includes("*")) return;
  const tools = isJsonObject(draft["tools"]) ? draft["tools"] : {};
  const others: readonly unknown[] = Array.isArray(tools["allow"]) ? tools["allow"] : ALL_TOOLS;
  addRules(draft, "ask", [...others, ...names.map((name) => `!${name}`)]);
}

function addRules(draft: JsonObject, list: "allow" | "ask" | "deny", value: unknown): void {
  // An empty list of the other program means "no rule"; an empty allow list here would forbid everything.
  if (Array.isArray(value) && value.length === 0) return;
  const { tools = {} } = draft;
  const before = isJsonObject(tools) ? (tools[list] ?? []) : undefined;
  // Rules of our own that have another form stay, for the message that says what is allowed.
  if (!isJsonObject(tools) || !Array.isArray(before)) return;
  draft["tools"] = { ...tools, [list]: Array.isArray(value) ? [...before, ...value] : value };
}

/** `command: ["npx", "-y", "x"]` in one list, or `{"path", "args", "env"}` in one object. */
function splitCommand(draft: JsonObject): void {
  const command = draft["command"];
  if (isJsonObject(command) && typeof command["path"] === "string") {
    draft["command"] = command["path"];
    for (const key of ["args", "env"]) if (command[key] !== undefined) setDefault(draft, key, command[key], key);
    return;
  }
  if (!Array.isArray(command) || command.length === 0) return;
  const [program, ...args]: unknown[] = command;
  draft["command"] = program;
  draft["args"] = [...args, ...(Array.isArray(draft["args"]) ? draft["args"] : [])];
}

/** `{"K": "v"}`, `[{"name": "K", "value": "v"}]` or `["K=v"]`; numbers and booleans become text. */
function textRecord(value: unknown, key: string, note: Note): unknown {
  if (isJsonObject(value)) {
    const entries = Object.entries(value).filter(([, one]) => one !== null);
    return Object.fromEntries(entries.map(([name, one]) => [name, asText(one, [key, name], note)]));
  }
  if (!Array.isArray(value)) return value;
  const record: JsonObject = {};
  for (const [index, item] of value.entries()) {
    if (isJsonObject(item) && typeof item["name"] === "string") {
      record[item["name"]] = asText(item["value"] ?? "", [key, index], note);
      continue;
    }
    const [, name, text] = (typeof item === "string" && /^([\w-]+)\s*[=:]\s*(.*)$/s.exec(item)) || [];
    if (name === undefined) return value;
    record[name] = text;
  }
  return record;
}

function textList(value: unknown, key: string, note: Note): unknown {
  return Array.isArray(value) ? value.map((item, index) => asText(item, [key, index], note)) : value;
}

function asText(value: unknown, path: (string | number)[], note: Note): unknown {
  if (typeof value !== "number" && typeof value !== "boolean") return value;
  note(path, `found a ${typeof value} where a string is expected; it is used as a string`);
  return String(value);
}

const OWN_PROGRAM = /^toolcrib(?:\.(?:js|cmd|ps1|exe)|@[\w.^~-]+)?$/i;
/** Programs and options that may precede the actual program. */
const LAUNCHER = /^(?:-.*|\/c|env|cmd|node|npx|npm|exec|x|pnpm|yarn|dlx|bun|bunx)(?:\.exe|\.cmd)?$/i;

/** Whether an entry starts Toolcrib itself: a hub that imported it would start itself without end. */
export function isToolcribEntry(id: string, entry: JsonObject): boolean {
  const [program, ...rest] = wordsOf(entry)
    .filter((word) => !LAUNCHER.test(word))
    .map((word) => posix.basename(word.replaceAll("\\", "/")))
    .filter((word) => !LAUNCHER.test(word));
  if (program !== undefined) return OWN_PROGRAM.test(program) && rest.includes("mcp");
  return id === "toolcrib" && ["url", "serverUrl", "httpUrl"].some((key) => typeof entry[key] === "string");
}

function wordsOf({ command, args }: JsonObject): string[] {
  const parts: unknown[] = [...(Array.isArray(command) ? command : [command]), ...(Array.isArray(args) ? args : [])];
  return parts.filter((part) => typeof part === "string");
}
