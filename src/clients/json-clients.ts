/** Clients with a JSON file and an object of servers by name. They differ in paths, a few keys, and what they can express. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment, ClientRead, WrittenServer } from "./agent-client.ts";
import {
  below,
  filesAt,
  fromEnv,
  inAppData,
  inAppSupport,
  inConfigHome,
  inHome,
  inLocalAppData,
  pathsOf,
  skillsAt,
} from "./client-paths.ts";
import {
  addressEntry,
  allowOnly,
  commandEntry,
  commandEntryWithCwd,
  disable,
  dollarName,
  type EntryRules,
  envColon,
  fileReference,
  isCommand,
  objectAt,
  pick,
  readMapAt,
  type ReportProblem,
  secondsToMs,
  ServerCollector,
  setTimeLimit,
  someOf,
  translateVscodeSandbox,
} from "./server-entries.ts";

interface JsonClient extends Omit<AgentClient, "format" | "pathOf" | "read" | "write"> {
  /** `jsonc` by default. */
  readonly format?: "json5";
  /** The keys that lead to the servers; `mcpServers` by default. */
  readonly container?: readonly string[];
  readonly rules?: EntryRules | ((document: unknown) => EntryRules);
  /** A plain command or URL by default. */
  readonly write?: (server: WrittenServer) => JsonObject | undefined;
}

export function jsonClient({
  container = ["mcpServers"],
  rules,
  write = commandOrUrl,
  ...client
}: JsonClient): AgentClient {
  return {
    format: "jsonc",
    ...client,
    pathOf: (serverId) => [...container, serverId],
    read: (document) => readMapAt(document, container, typeof rules === "function" ? rules(document) : rules),
    write: (_serverId, server) => write(server),
  };
}

/** The client detects the transport of a URL. */
function commandOrUrl(server: WrittenServer): JsonObject | undefined {
  return isCommand(server) ? commandEntry(server) : addressEntry(server);
}

/** For clients that know only Streamable HTTP. */
function withoutSse(server: WrittenServer): JsonObject | undefined {
  return isCommand(server) || server.transport === "http" ? commandOrUrl(server) : undefined;
}

const CURSOR_SKILLS = [".cursor/skills", ".agents/skills", ".claude/skills", ".codex/skills"];

export const cursor = jsonClient({
  id: "cursor",
  name: "Cursor",
  saysName: /^cursor/i,
  files: filesAt({ user: [".cursor/mcp.json"], project: [".cursor/mcp.json"] }),
  traces: (machine) => [inHome(machine, ".cursor")],
  rules: { text: envColon },
  envReference: (name) => `\${env:${name}}`,
  skillDirs: skillsAt({ user: CURSOR_SKILLS, project: CURSOR_SKILLS }),
  afterChange: "Restart Cursor, or enable the server in its settings under MCP.",
});

/** The version from the Microsoft Store has its own view of %APPDATA%. */
function claudeFolders(machine: ClientEnvironment): string[] {
  const usual = inAppSupport(machine, "Claude");
  if (machine.platform !== "win32") return [usual];
  return [usual, inLocalAppData(machine, "Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude")];
}

/** Its remote servers are connectors of the account and in no file. Skills can only be uploaded. */
export const claudeDesktop = jsonClient({
  id: "claude-desktop",
  name: "Claude Desktop",
  saysName: /^claude-(?:ai|desktop)/i,
  files: filesAt({
    user: [(machine) => claudeFolders(machine).map((dir) => pathsOf(machine).join(dir, "claude_desktop_config.json"))],
  }),
  traces: claudeFolders,
  write: (server) => (isCommand(server) ? commandEntry(server) : undefined),
  skillDirs: () => [],
  afterChange: "Quit Claude Desktop completely and start it again.",
});

export const windsurf = jsonClient({
  id: "windsurf",
  name: "Windsurf",
  saysName: /^windsurf/i,
  files: filesAt({
    user: [
      ".codeium/windsurf/mcp_config.json",
      ".codeium/windsurf-next/mcp_config.json",
      // The plugin for other editors.
      ".codeium/mcp_config.json",
    ],
  }),
  traces: (machine) => [inHome(machine, ".codeium", "windsurf"), inHome(machine, ".codeium", "windsurf-next")],
  rules: {
    keys: ["serverUrl", "disabledTools"],
    text: (text) => envColon(text).replace(/\$\{file:([^{}]{1,400})\}/g, (_whole, path: string) => fileReference(path)),
  },
  write(server) {
    if (isCommand(server)) return commandEntry(server);
    return { serverUrl: server.url, ...someOf("headers", server.headers) };
  },
  envReference: (name) => `\${env:${name}}`,
  skillDirs: skillsAt({
    user: [".codeium/windsurf/skills", ".agents/skills", ".claude/skills"],
    project: [".windsurf/skills", ".agents/skills", ".claude/skills"],
  }),
  afterChange: "Press the refresh button in the MCP section of Windsurf's Cascade panel, or restart Windsurf.",
});

export const kiro = jsonClient({
  id: "kiro",
  name: "Kiro",
  saysName: /^(?:kiro|q-dev-cli)/i,
  files: filesAt({ user: [".kiro/settings/mcp.json"], project: [".kiro/settings/mcp.json"] }),
  traces: (machine) => [inHome(machine, ".kiro")],
  rules: { keys: ["disabledTools"], timeout: "call-milliseconds" },
  write(server) {
    const entry = commandOrUrl(server);
    return entry && { ...entry, disabled: false };
  },
  // It expands only variables that the user has approved.
  envReference: (name) => `\${${name}}`,
  skillDirs: skillsAt({ user: [".kiro/skills"], project: [".kiro/skills"] }),
  afterChange: "Kiro applies the change automatically; start a new session of Kiro CLI.",
});

/** The plugin for JetBrains IDEs and the CLI share these files. */
export const junie = jsonClient({
  id: "junie",
  name: "Junie",
  saysName: /^junie|jetbrains/i,
  files: filesAt({ user: [".junie/mcp/mcp.json"], project: [".junie/mcp/mcp.json"] }),
  traces: (machine) => [inHome(machine, ".junie")],
  write: withoutSse,
  skillDirs: skillsAt({ user: [".junie/skills"], project: [".junie/skills"] }),
  afterChange: "Start a new Junie session; in the IDE, press the reload button in the MCP settings.",
});

/** It uses the format of Cursor, without references. */
export const lmStudio = jsonClient({
  id: "lm-studio",
  name: "LM Studio",
  saysName: /^lm-?studio/i,
  // Older versions created the second folder, and it stays in use.
  files: filesAt({ user: [".lmstudio/mcp.json", ".cache/lm-studio/mcp.json"] }),
  traces: (machine) => [inHome(machine, ".lmstudio"), inHome(machine, ".cache", "lm-studio")],
  rules: { timeout: "call-milliseconds" },
  skillDirs: () => [],
  afterChange: "LM Studio applies the change automatically; otherwise restart it.",
});

export const amp = jsonClient({
  id: "amp",
  name: "Amp",
  saysName: /^amp(?:-|$)/i,
  // Servers of a project run only after the user has approved them.
  files: filesAt({
    user: [
      (machine) => fromEnv(machine, "AMP_SETTINGS_FILE"),
      (machine) => inConfigHome(machine, "amp", "settings.json"),
      (machine) => inConfigHome(machine, "amp", "settings.jsonc"),
    ],
    project: [".amp/settings.json", ".amp/settings.jsonc"],
  }),
  traces: (machine) => [inConfigHome(machine, "amp")],
  // One key with a dot in it, as in the settings of VS Code.
  container: ["amp.mcpServers"],
  rules: { adapt: (entry, raw) => allowOnly(entry, raw["includeTools"]) },
  envReference: (name) => `\${${name}}`,
  skillDirs: skillsAt({
    user: [
      (machine) => inConfigHome(machine, "agents", "skills"),
      (machine) => inConfigHome(machine, "amp", "skills"),
      ".claude/skills",
    ],
    project: [".agents/skills", ".claude/skills"],
  }),
  afterChange: "Restart Amp.",
});

export const geminiCli = jsonClient({
  id: "gemini-cli",
  name: "Gemini CLI",
  reducesEnvironment: true,
  saysName: /^gemini-cli/i,
  toolNames: { prefix: (entry) => `mcp_${entry}_` },
  files: filesAt({ user: [below(geminiFolder, "settings.json")], project: [".gemini/settings.json"] }),
  traces: (machine) => [geminiFolder(machine)],
  rules: geminiRules,
  write: writeGemini,
  envReference: (name) => `\${${name}}`,
  skillDirs: skillsAt({
    user: [below(geminiFolder, "skills"), ".agents/skills"],
    project: [".gemini/skills", ".agents/skills"],
  }),
  afterChange: "Start a new Gemini CLI session.",
});

function geminiFolder(machine: ClientEnvironment): string {
  const home = fromEnv(machine, "GEMINI_CLI_HOME");
  return home === undefined ? inHome(machine, ".gemini") : pathsOf(machine).join(home, ".gemini");
}

/** `url` means SSE, `httpUrl` Streamable HTTP. */
export function writeGemini(server: WrittenServer): JsonObject {
  if (isCommand(server)) return commandEntryWithCwd(server);
  if (server.transport === "sse") return addressEntry(server);
  return { httpUrl: server.url, ...someOf("headers", server.headers) };
}

export function geminiRules(document: unknown): EntryRules {
  const { allowed, excluded } = objectAt(document, "mcp");
  return {
    keys: ["httpUrl", "excludeTools"],
    timeout: "call-milliseconds",
    text: dollarName,
    adapt(entry, raw, _tell, id) {
      if (typeof entry["url"] === "string" && entry["httpUrl"] === undefined) entry["type"] ??= "sse";
      allowOnly(entry, raw["includeTools"]);
      const left = Array.isArray(allowed) && allowed.length > 0 && !allowed.includes(id);
      if (left || (Array.isArray(excluded) && excluded.includes(id))) disable(entry);
    },
  };
}

const COPILOT_FILE = "mcp-config.json";

export const copilotCli = jsonClient({
  id: "copilot-cli",
  name: "Copilot CLI",
  saysName: /^(?:github-)?copilot/i,
  toolNames: { prefix: (entry) => `${entry}-` },
  files: filesAt({
    user: [below(copilotFolder, COPILOT_FILE), olderCopilotFile],
    project: [".mcp.json", ".github/mcp.json"],
  }),
  traces: (machine) => [copilotFolder(machine)],
  rules: { timeout: "call-milliseconds", adapt: (entry, raw) => allowOnly(entry, raw["tools"]) },
  // Some versions offer no tools without `tools`. "stdio" instead of "local", because other clients read the project's file too.
  write(server) {
    if (isCommand(server)) return { type: "stdio", ...commandEntryWithCwd(server), tools: ["*"] };
    return { type: server.transport, ...addressEntry(server), tools: ["*"] };
  },
  envReference: (name) => `\${${name}}`,
  skillDirs: skillsAt({
    user: [below(copilotFolder, "skills"), ".agents/skills", ".claude/skills"],
    project: [".github/skills", ".agents/skills", ".claude/skills"],
  }),
  afterChange: "Start a new Copilot CLI session.",
});

function copilotFolder(machine: ClientEnvironment): string {
  return fromEnv(machine, "COPILOT_HOME") ?? inHome(machine, ".copilot");
}

/** Before COPILOT_HOME existed, the folder was below XDG_CONFIG_HOME. */
function olderCopilotFile(machine: ClientEnvironment): string | undefined {
  const moved = fromEnv(machine, "XDG_CONFIG_HOME");
  return moved && pathsOf(machine).join(moved, ".copilot", COPILOT_FILE);
}

const CLINE_FILE = "cline_mcp_settings.json";

export const cline = jsonClient({
  id: "cline",
  name: "Cline",
  saysName: /^cline/i,
  files: filesAt({
    user: [
      (machine) =>
        fromEnv(machine, "CLINE_MCP_SETTINGS_PATH") ?? below(clineFolder, "data", "settings", CLINE_FILE)(machine),
      // Files of older versions of the extension, which newer ones migrate once.
      (machine) =>
        clineExtensionFolders(machine).map((folder) => pathsOf(machine).join(folder, "settings", CLINE_FILE)),
    ],
  }),
  traces: (machine) => [clineFolder(machine), ...clineExtensionFolders(machine)],
  rules: {
    timeout: "call-seconds",
    text: envColon,
    // Its CLI also writes the keys of the transport into an object `transport`.
    adapt(entry, raw) {
      if (!isJsonObject(raw["transport"])) return;
      const inner = pick(raw["transport"], ["type", "command", "args", "env", "cwd", "url", "headers"]);
      Object.assign(entry, { ...inner, ...entry });
    },
  },
  write(server) {
    if (isCommand(server)) return { ...commandEntryWithCwd(server), disabled: false };
    const type = server.transport === "sse" ? "sse" : "streamableHttp";
    return { type, ...addressEntry(server), disabled: false };
  },
  skillDirs: skillsAt({
    user: [".cline/skills", ".agents/skills"],
    project: [".cline/skills", ".clinerules/skills", ".claude/skills", ".agents/skills"],
  }),
  afterChange: "Cline applies the change automatically; otherwise press Restart beside the server in its MCP panel.",
});

function clineFolder(machine: ClientEnvironment): string {
  return fromEnv(machine, "CLINE_DIR") ?? inHome(machine, ".cline");
}

function clineExtensionFolders(machine: ClientEnvironment): string[] {
  return vscodeUserFolders(machine).map((folder) =>
    pathsOf(machine).join(folder, "globalStorage", "saoudrizwan.claude-dev"),
  );
}

export const zed = jsonClient({
  id: "zed",
  name: "Zed",
  saysName: /^zed/i,
  files: filesAt({ user: [below(zedFolder, "settings.json")], project: [".zed/settings.json"] }),
  traces: (machine) => [zedFolder(machine)],
  container: ["context_servers"],
  rules: {
    timeout: "call-seconds",
    adapt(entry, raw, tell) {
      // The form of older versions: the program, its arguments and its variables in one object.
      if (isJsonObject(raw["command"])) {
        Object.assign(entry, { command: raw["command"]["path"] }, pick(raw["command"], ["args", "env"]));
      }
      if (entry["command"] !== undefined || entry["url"] !== undefined) return true;
      tell("this server belongs to a Zed extension, and only Zed can start it");
      return false;
    },
  },
  write(server) {
    const entry = withoutSse(server);
    return entry && isCommand(server) ? { env: {}, ...entry } : entry;
  },
  skillDirs: skillsAt({ user: [".agents/skills"], project: [".agents/skills"] }),
  afterChange: "Zed applies the change automatically.",
});

/** On macOS it ignores XDG_CONFIG_HOME; inside Flatpak that is not the user's folder. */
function zedFolder(machine: ClientEnvironment): string {
  if (machine.platform === "win32") return inAppData(machine, "Zed");
  if (machine.platform === "darwin") return inHome(machine, ".config", "zed");
  const flatpak = fromEnv(machine, "FLATPAK_XDG_CONFIG_HOME");
  return flatpak === undefined ? inConfigHome(machine, "zed") : pathsOf(machine).join(flatpak, "zed");
}

const INPUT = /\$\{input:([^{}]{1,200})\}/g;

export const vscode = jsonClient({
  id: "vscode",
  name: "VS Code",
  saysName: /^(?:visual studio code|vscode)/i,
  files: filesAt({
    user: [(machine) => vscodeUserFolders(machine).map((folder) => pathsOf(machine).join(folder, "mcp.json"))],
    project: [".vscode/mcp.json"],
  }),
  traces: vscodeUserFolders,
  container: ["servers"],
  rules: vscodeRules,
  write(server) {
    if (isCommand(server)) return { type: "stdio", ...commandEntryWithCwd(server) };
    return { type: server.transport, ...addressEntry(server) };
  },
  envReference: (name) => `\${env:${name}}`,
  skillDirs: skillsAt({
    user: [".copilot/skills", ".agents/skills", ".claude/skills"],
    project: [".github/skills", ".agents/skills", ".claude/skills"],
  }),
  afterChange: "VS Code applies the change and asks whether to trust the server; otherwise reload its window.",
});

/** The user data folders of VS Code, the active one first. */
function vscodeUserFolders(machine: ClientEnvironment): string[] {
  const portable = fromEnv(machine, "VSCODE_PORTABLE");
  const usual = ["Code", "Code - Insiders"].map((product) => inAppSupport(machine, product, "User"));
  return portable === undefined ? usual : [pathsOf(machine).join(portable, "user-data", "User"), ...usual];
}

function vscodeRules(): EntryRules {
  const told = new Set<string>();
  return {
    text: envColon,
    adapt(entry, raw, tell) {
      if (raw["sandboxEnabled"] === true) {
        const { sandbox, narrower } = translateVscodeSandbox(raw["sandbox"]);
        entry["sandbox"] = sandbox;
        tell(`VS Code's sandbox becomes bubblewrap here: ${narrower.join("; ")}`, "sandboxEnabled");
      }
      // VS Code tries Streamable HTTP and then SSE for it, which is what no type means here.
      if (entry["type"] === "http") delete entry["type"];
      for (const [, id = ""] of JSON.stringify(entry).matchAll(INPUT)) {
        if (told.has(id)) continue;
        told.add(id);
        tell(`VS Code asks for the input ${JSON.stringify(id)}; set its value with an environment variable`);
      }
    },
  };
}

export const openclaw = jsonClient({
  id: "openclaw",
  name: "OpenClaw",
  reducesEnvironment: true,
  saysName: /^openclaw/i,
  toolNames: { prefix: (entry) => `${entry}__` },
  format: "json5",
  files: filesAt({
    user: [(machine) => fromEnv(machine, "OPENCLAW_CONFIG_PATH") ?? below(openclawFolder, "openclaw.json")(machine)],
  }),
  traces: (machine) => [openclawFolder(machine)],
  container: ["mcp", "servers"],
  rules: {
    keys: ["transport", "workingDirectory", "connectionTimeoutMs", "requestTimeoutMs"],
    adapt: adaptOpenclaw,
  },
  // Without `transport` it takes an address for SSE.
  write(server) {
    if (isCommand(server)) return commandEntryWithCwd(server);
    const { url, ...headers } = addressEntry(server);
    return { url, transport: server.transport === "sse" ? "sse" : "streamable-http", ...headers };
  },
  envReference: (name) => `\${${name}}`,
  skillDirs: skillsAt({
    user: [below(openclawFolder, "skills"), ".agents/skills"],
    project: ["skills", ".agents/skills"],
  }),
  afterChange: "Restart the OpenClaw gateway.",
});

function openclawFolder(machine: ClientEnvironment): string {
  const named = fromEnv(machine, "OPENCLAW_STATE_DIR");
  if (named !== undefined) return named;
  const home = fromEnv(machine, "OPENCLAW_HOME");
  return home === undefined ? inHome(machine, ".openclaw") : pathsOf(machine).join(home, ".openclaw");
}

function adaptOpenclaw(entry: JsonObject, raw: JsonObject, tell: ReportProblem): boolean {
  if (raw["clientCert"] !== undefined || raw["clientKey"] !== undefined) {
    tell("this server needs a client certificate, which is not supported; it is skipped", "clientCert");
    return false;
  }
  if (raw["sslVerify"] === false) tell("certificates are always verified here", "sslVerify");
  for (const key of ["env", "headers"]) {
    if (isJsonObject(entry[key])) entry[key] = withoutRefs(entry[key], tell, key);
  }
  if (raw["auth"] === "oauth") entry["auth"] = { type: "oauth" };
  // These two are seconds; their namesakes that end in Ms are told apart by `import` itself.
  setTimeLimit(entry, "toolTimeout", secondsToMs(raw["timeout"]));
  setTimeLimit(entry, "timeout", secondsToMs(raw["connectTimeout"]));
  if (isJsonObject(raw["toolFilter"])) {
    allowOnly(entry, raw["toolFilter"]["include"]);
    if (Array.isArray(raw["toolFilter"]["exclude"])) entry["excludeTools"] = raw["toolFilter"]["exclude"];
  }
  return true;
}

/** A reference may be `{source: "env", id: "NAME"}`; those to a store of OpenClaw cannot be followed from outside. */
function withoutRefs(record: JsonObject, tell: ReportProblem, key: string): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(record)) {
    if (!isJsonObject(value)) kept[name] = value;
    else if (value["source"] === "env" && typeof value["id"] === "string") kept[name] = `\${${value["id"]}}`;
    else tell(`the value of ${name} is a secret that OpenClaw stores; set it again`, key, name);
  }
  return kept;
}

const OPENCODE_FILES = ["opencode.json", "opencode.jsonc"];

/**
 * Entries are under `mcp` in version 1, under `mcp.servers` in version 2, which also reads the old form. Both are read; the
 * old one is written, because both versions understand it.
 */
export const opencode: AgentClient = {
  id: "opencode",
  name: "OpenCode",
  saysName: /^opencode/i,
  toolNames: { prefix: (entry) => `${entry}_` },
  format: "jsonc",
  files: filesAt({
    user: [
      (machine) => OPENCODE_FILES.map((name) => inConfigHome(machine, "opencode", name)),
      (machine) => fromEnv(machine, "OPENCODE_CONFIG"),
    ],
    project: [...OPENCODE_FILES, ...OPENCODE_FILES.map((name) => `.opencode/${name}`)],
  }),
  traces: (machine) => [inConfigHome(machine, "opencode")],
  pathOf: (serverId) => ["mcp", serverId],
  read: readOpencode,
  write: (_serverId, server) => writeOpencode(server),
  envReference: (name) => `{env:${name}}`,
  skillDirs: skillsAt({
    user: [(machine) => inConfigHome(machine, "opencode", "skills"), ".claude/skills", ".agents/skills"],
    project: [".opencode/skills", ".claude/skills", ".agents/skills"],
  }),
  afterChange: "Restart OpenCode.",
};

export function writeOpencode(server: WrittenServer): JsonObject | undefined {
  if (!isCommand(server)) return { type: "remote", ...addressEntry(server), enabled: true };
  if (server.cwd !== undefined) return undefined;
  const command = [server.command, ...server.args];
  return { type: "local", command, ...someOf("environment", server.env), enabled: true };
}

export function readOpencode(document: unknown): ClientRead {
  const mcp = objectAt(document, "mcp");
  const collector = new ServerCollector({
    keys: ["environment"],
    text: opencodeReferences,
    adapt(entry, raw) {
      const { timeout } = raw;
      setTimeLimit(entry, "timeout", isJsonObject(timeout) ? timeout["startup"] : timeout);
      if (isJsonObject(timeout)) setTimeLimit(entry, "toolTimeout", timeout["execution"] ?? timeout["request"]);
    },
  });
  if (isJsonObject(document) && document["mcp"] !== undefined && !isJsonObject(document["mcp"])) {
    collector.problem("an object is expected here", ["mcp"]);
  }
  for (const [id, entry] of Object.entries(mcp))
    if (!isOpencodeSetting(id, entry)) collector.add(id, entry, ["mcp", id]);
  // Later, because an entry of the new form counts before one of the old form with the same name.
  if (isOpencodeSetting("servers", mcp["servers"])) collector.addMap(mcp["servers"], ["mcp", "servers"]);
  return collector.finish();
}

/** `servers` and `timeout` of version 2; in version 1 a server may be called that. */
function isOpencodeSetting(id: string, value: unknown): boolean {
  if (id === "timeout") return typeof value === "number" || (isJsonObject(value) && !isOpencodeServer(value));
  return id === "servers" && isJsonObject(value) && !isOpencodeServer(value);
}

function isOpencodeServer(value: JsonObject): boolean {
  return (
    typeof value["type"] === "string" ||
    typeof value["url"] === "string" ||
    typeof value["enabled"] === "boolean" ||
    Array.isArray(value["command"])
  );
}

function opencodeReferences(text: string): string {
  return text
    .replace(/\{env:([A-Za-z_]\w*)\}/g, "${$1}")
    .replace(/\{file:([^{}]{1,400})\}/g, (_whole, path: string) => fileReference(path));
}
