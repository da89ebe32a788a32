/** Other programs' names for the keys of a server entry, and other forms of their values. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";

/** Tells of something that was changed on the way; the path is inside the entry. */
type Note = (path: (string | number)[], message: string) => void;

type Rename = (draft: JsonObject, value: unknown, note: Note) => void;

/** Keys with no meaning here: display, approval habits of the client, editor features. */
const MEANINGLESS = new Set([
  "alwaysAllow",
  "approvalMode",
  "autoApprove",
  "autoStart",
  "category",
  "comment",
  "_comment",
  "description",
  "dev",
  "displayName",
  "extensionName",
  "gallery",
  "icon",
  "iconUrl",
  "icons",
  "id",
  "note",
  "source",
  "supportsParallelToolCalls",
  "title",
  "version",
]);

const RENAMES: Readonly<Record<string, Rename>> = {
  type: setTransport,
  transportType: setTransport,
  transport: setTransport,
  serverUrl: (draft, value) => setDefault(draft, "url", value),
  httpUrl(draft, value) {
    setDefault(draft, "url", value);
    setDefault(draft, "transport", "http");
  },
  workingDir: (draft, value) => setDefault(draft, "cwd", value),
  workingDirectory: (draft, value) => setDefault(draft, "cwd", value),
  environment: (draft, value, note) => setDefault(draft, "env", textRecord(value, "environment", note)),
  env: (draft, value, note) => void (draft["env"] = textRecord(value, "env", note)),
  headers: (draft, value, note) => void (draft["headers"] = textRecord(value, "headers", note)),
  http_headers: (draft, value, note) => setDefault(draft, "headers", textRecord(value, "http_headers", note)),
  args: (draft, value, note) => void (draft["args"] = textList(value, "args", note)),
  connectionTimeoutMs: (draft, value) => setDefault(draft, "timeout", value),
  connectTimeoutMs: (draft, value) => setDefault(draft, "timeout", value),
  requestTimeoutMs: (draft, value) => setDefault(draft, "toolTimeout", value),
  toolTimeoutMs: (draft, value) => setDefault(draft, "toolTimeout", value),
  allowedAgentRoles: setRoles,
  allowedRoles: setRoles,
  restartOnCrash(draft, value) {
    if (value === false) draft["restart"] = false;
  },
  maxRestarts: (draft, value) => setRestart(draft, "max", value),
  restartDelayMs: (draft, value) => setRestart(draft, "initialDelay", value),
  disabled: (draft, value) => setDefault(draft, "enabled", typeof value === "boolean" ? !value : value),
  disabledTools: (draft, value) => addRules(draft, "deny", value),
  excludeTools: (draft, value) => addRules(draft, "deny", value),
  includeTools: (draft, value) => addRules(draft, "allow", value),
  enabledTools: (draft, value) => addRules(draft, "allow", value),
};

/** Keys of the entry that say something to another program and nothing here. */
export function meaninglessKeys(raw: JsonObject): string[] {
  const isTrust = (key: string): boolean => key === "trust" && typeof raw[key] === "boolean";
  return Object.keys(raw).filter((key) => (MEANINGLESS.has(key) && key !== "id") || isTrust(key));
}

/** The entry with Toolcrib's own names. Keys it does not know stay, so that they are told of as unknown. */
export function renameKeys(raw: JsonObject, note: Note): JsonObject {
  const draft: JsonObject = {};
  // Own names first: where a file has both, the foreign one does not override.
  const entries = Object.entries(raw).filter(([key, value]) => value !== null && !MEANINGLESS.has(key));
  for (const [key, value] of entries) if (!Object.hasOwn(RENAMES, key)) draft[key] = value;
  for (const [key, value] of entries) if (Object.hasOwn(RENAMES, key)) RENAMES[key]?.(draft, value, note);
  splitCommand(draft);
  return draft;
}

function setDefault(draft: JsonObject, key: string, value: unknown): void {
  if (draft[key] === undefined) draft[key] = value;
}

const TRANSPORTS: Readonly<Record<string, "stdio" | "http" | "sse" | "">> = {
  stdio: "stdio",
  local: "stdio",
  http: "http",
  "streamable-http": "http",
  streamablehttp: "http",
  streamable_http: "http",
  sse: "sse",
  // Says only that there is a url.
  remote: "",
};

function setTransport(draft: JsonObject, value: unknown): void {
  const transport = typeof value === "string" ? TRANSPORTS[value.toLowerCase()] : undefined;
  if (transport === "") return;
  // An unknown word stays, for the message that says what is allowed.
  setDefault(draft, "transport", transport ?? value);
}

function setRoles(draft: JsonObject, value: unknown): void {
  if (Array.isArray(value) && value.includes("*")) return;
  setDefault(draft, "roles", value);
}

function setRestart(draft: JsonObject, key: string, value: unknown): void {
  if (draft["restart"] === false) return;
  draft["restart"] = { [key]: value, ...(isJsonObject(draft["restart"]) ? draft["restart"] : {}) };
}

function addRules(draft: JsonObject, list: "allow" | "deny", value: unknown): void {
  // An empty list of the other program means "no rule"; an empty allow list here would forbid everything.
  if (!Array.isArray(value) || value.length === 0) return;
  const tools = isJsonObject(draft["tools"]) ? draft["tools"] : {};
  const before: unknown[] = Array.isArray(tools[list]) ? tools[list] : [];
  draft["tools"] = { ...tools, [list]: [...before, ...value] };
}

/** `command: ["npx", "-y", "x"]` in one list. */
function splitCommand(draft: JsonObject): void {
  const command = draft["command"];
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
  note(path, `a ${typeof value} stands where a text is expected; it is used as text`);
  return String(value);
}
