/** Clients with a JSON file and an object of servers by name. They differ in paths, a few keys, and what they can express. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment, WrittenServer } from "./agent-client.ts";
import {
  fromEnv,
  inAppSupport,
  inConfigHome,
  inHome,
  inLocalAppData,
  inProject,
  pathsOf,
  projectFiles,
  skillFolders,
  userFiles,
} from "./client-paths.ts";
import {
  addressEntry,
  allowOnly,
  commandEntry,
  commandEntryWithCwd,
  disable,
  type EntryRules,
  envColon,
  fileReference,
  isCommand,
  objectAt,
  pick,
  readMapAt,
  someOf,
} from "./server-entries.ts";
import { vscodeUserFolders } from "./vs-code.ts";

interface JsonClient extends Omit<AgentClient, "format" | "pathOf" | "read" | "write"> {
  /** The key of the servers; `mcpServers` by default. */
  readonly container?: string;
  readonly rules?: EntryRules | ((document: unknown) => EntryRules);
  /** A plain command or URL by default. */
  readonly write?: (server: WrittenServer) => JsonObject | undefined;
}

function jsonClient({ container = "mcpServers", rules, write = commandOrUrl, ...client }: JsonClient): AgentClient {
  return {
    ...client,
    format: "jsonc",
    pathOf: (serverId) => [container, serverId],
    read: (document) => readMapAt(document, [container], typeof rules === "function" ? rules(document) : rules),
    write: (_serverId, server) => write(server),
  };
}

/** The client detects the transport of a URL. */
function commandOrUrl(server: WrittenServer): JsonObject | undefined {
  return isCommand(server) ? commandEntry(server) : addressEntry(server);
}

export const cursor = jsonClient({
  id: "cursor",
  name: "Cursor",
  files: (machine) => [
    ...userFiles(inHome(machine, ".cursor", "mcp.json")),
    ...projectFiles(inProject(machine, ".cursor", "mcp.json")),
  ],
  traces: (machine) => [inHome(machine, ".cursor")],
  rules: { text: envColon },
  envReference: (name) => `\${env:${name}}`,
  skillDirs: (machine, scope) =>
    skillFolders(machine, scope, {
      user: [".cursor/skills", ".agents/skills", ".claude/skills", ".codex/skills"],
      project: [".cursor/skills", ".agents/skills", ".claude/skills", ".codex/skills"],
    }),
  afterChange: "Restart Cursor, or enable the server in its settings under MCP.",
});

const CLAUDE_DESKTOP_FILE = "claude_desktop_config.json";
/** The folder of the version from the Microsoft Store, which has its own view of %APPDATA%. */
const CLAUDE_STORE_FOLDER = ["Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude"];

/** Its remote servers are connectors of the account and in no file. Skills can only be uploaded. */
export const claudeDesktop = jsonClient({
  id: "claude-desktop",
  name: "Claude Desktop",
  files: (machine) => [
    ...userFiles(inAppSupport(machine, "Claude", CLAUDE_DESKTOP_FILE)),
    ...(machine.platform === "win32"
      ? userFiles(inLocalAppData(machine, ...CLAUDE_STORE_FOLDER, CLAUDE_DESKTOP_FILE))
      : []),
  ],
  traces: (machine) => [
    inAppSupport(machine, "Claude"),
    ...(machine.platform === "win32" ? [inLocalAppData(machine, ...CLAUDE_STORE_FOLDER)] : []),
  ],
  write: (server) => (isCommand(server) ? commandEntry(server) : undefined),
  skillDirs: () => [],
  afterChange: "Quit Claude Desktop completely and start it again.",
});

export const windsurf = jsonClient({
  id: "windsurf",
  name: "Windsurf",
  files: (machine) =>
    userFiles(
      inHome(machine, ".codeium", "windsurf", "mcp_config.json"),
      inHome(machine, ".codeium", "windsurf-next", "mcp_config.json"),
      // The plugin for other editors.
      inHome(machine, ".codeium", "mcp_config.json"),
    ),
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
  skillDirs: (machine, scope) =>
    skillFolders(machine, scope, {
      user: [".codeium/windsurf/skills", ".agents/skills", ".claude/skills"],
      project: [".windsurf/skills", ".agents/skills", ".claude/skills"],
    }),
  afterChange: "Press the refresh button in the MCP section of Windsurf's Cascade panel, or restart Windsurf.",
});

export const kiro = jsonClient({
  id: "kiro",
  name: "Kiro",
  files: (machine) => [
    ...userFiles(inHome(machine, ".kiro", "settings", "mcp.json")),
    ...projectFiles(inProject(machine, ".kiro", "settings", "mcp.json")),
  ],
  traces: (machine) => [inHome(machine, ".kiro")],
  rules: { keys: ["disabledTools"], timeout: "call-milliseconds" },
  write(server) {
    if (!isCommand(server)) return { ...addressEntry(server), disabled: false };
    const entry = commandEntry(server);
    return entry === undefined ? undefined : { ...entry, disabled: false };
  },
  // It expands only variables that the user has approved.
  envReference: (name) => `\${${name}}`,
  skillDirs: (machine, scope) => skillFolders(machine, scope, { user: [".kiro/skills"], project: [".kiro/skills"] }),
  afterChange: "Kiro applies the change automatically; start a new session of Kiro CLI.",
});

/** The plugin for JetBrains IDEs and the CLI share these files. */
export const junie = jsonClient({
  id: "junie",
  name: "Junie",
  files: (machine) => [
    ...userFiles(inHome(machine, ".junie", "mcp", "mcp.json")),
    ...projectFiles(inProject(machine, ".junie", "mcp", "mcp.json")),
  ],
  traces: (machine) => [inHome(machine, ".junie")],
  write(server) {
    if (isCommand(server)) return commandEntry(server);
    return server.transport === "http" ? addressEntry(server) : undefined;
  },
  skillDirs: (machine, scope) => skillFolders(machine, scope, { user: [".junie/skills"], project: [".junie/skills"] }),
  afterChange: "Start a new Junie session; in the IDE, press the reload button in the MCP settings.",
});

/** It uses the format of Cursor, without references. */
export const lmStudio = jsonClient({
  id: "lm-studio",
  name: "LM Studio",
  files: (machine) =>
    userFiles(
      inHome(machine, ".lmstudio", "mcp.json"),
      // Older versions created this folder, and it stays in use.
      inHome(machine, ".cache", "lm-studio", "mcp.json"),
    ),
  traces: (machine) => [inHome(machine, ".lmstudio"), inHome(machine, ".cache", "lm-studio")],
  rules: { timeout: "call-milliseconds" },
  skillDirs: () => [],
  afterChange: "LM Studio applies the change automatically; otherwise restart it.",
});

export const amp = jsonClient({
  id: "amp",
  name: "Amp",
  files: (machine) => [
    ...userFiles(...ampUserSettings(machine)),
    // Servers of a project run only after the user has approved them.
    ...projectFiles(inProject(machine, ".amp", "settings.json"), inProject(machine, ".amp", "settings.jsonc")),
  ],
  traces: (machine) => [inConfigHome(machine, "amp")],
  // One key with a dot in it, as in the settings of VS Code.
  container: "amp.mcpServers",
  rules: { adapt: (entry, raw) => allowOnly(entry, raw["includeTools"]) },
  envReference: (name) => `\${${name}}`,
  skillDirs(machine, scope) {
    const others = skillFolders(machine, scope, {
      user: [".claude/skills"],
      project: [".agents/skills", ".claude/skills"],
    });
    if (scope === "project") return others;
    return [inConfigHome(machine, "agents", "skills"), inConfigHome(machine, "amp", "skills"), ...others];
  },
  afterChange: "Restart Amp.",
});

function ampUserSettings(machine: ClientEnvironment): string[] {
  const named = fromEnv(machine, "AMP_SETTINGS_FILE");
  const usual = [inConfigHome(machine, "amp", "settings.json"), inConfigHome(machine, "amp", "settings.jsonc")];
  return named === undefined ? usual : [named, ...usual];
}

export const geminiCli = jsonClient({
  id: "gemini-cli",
  name: "Gemini CLI",
  files: (machine) => [
    ...userFiles(pathsOf(machine).join(geminiFolder(machine), "settings.json")),
    ...projectFiles(inProject(machine, ".gemini", "settings.json")),
  ],
  traces: (machine) => [geminiFolder(machine)],
  rules: geminiRules,
  // `url` means SSE, `httpUrl` Streamable HTTP.
  write(server) {
    if (isCommand(server)) return commandEntryWithCwd(server);
    if (server.transport === "sse") return addressEntry(server);
    return { httpUrl: server.url, ...someOf("headers", server.headers) };
  },
  envReference: (name) => `\${${name}}`,
  skillDirs(machine, scope) {
    const own = scope === "user" ? [pathsOf(machine).join(geminiFolder(machine), "skills")] : [];
    return [
      ...own,
      ...skillFolders(machine, scope, { user: [".agents/skills"], project: [".gemini/skills", ".agents/skills"] }),
    ];
  },
  afterChange: "Start a new Gemini CLI session.",
});

function geminiFolder(machine: ClientEnvironment): string {
  const home = fromEnv(machine, "GEMINI_CLI_HOME");
  return home === undefined ? inHome(machine, ".gemini") : pathsOf(machine).join(home, ".gemini");
}

function geminiRules(document: unknown): EntryRules {
  const { allowed, excluded } = objectAt(document, "mcp");
  return {
    keys: ["httpUrl", "excludeTools"],
    timeout: "call-milliseconds",
    // `$NAME` is a reference too, but not after another `$`.
    text: (text) => text.replace(/(?<!\$)\$([A-Za-z_]\w*)/g, "${$1}"),
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
  files: (machine) => [
    ...userFiles(pathsOf(machine).join(copilotFolder(machine), COPILOT_FILE), ...olderCopilotFiles(machine)),
    ...projectFiles(inProject(machine, ".mcp.json"), inProject(machine, ".github", "mcp.json")),
  ],
  traces: (machine) => [copilotFolder(machine)],
  rules: { timeout: "call-milliseconds", adapt: (entry, raw) => allowOnly(entry, raw["tools"]) },
  // Some versions offer no tools without `tools`. "stdio" instead of "local", because other clients read the project's file too.
  write(server) {
    if (isCommand(server)) return { type: "stdio", ...commandEntryWithCwd(server), tools: ["*"] };
    return { type: server.transport, ...addressEntry(server), tools: ["*"] };
  },
  envReference: (name) => `\${${name}}`,
  skillDirs(machine, scope) {
    const own = scope === "user" ? [pathsOf(machine).join(copilotFolder(machine), "skills")] : [];
    const others = [".agents/skills", ".claude/skills"];
    return [...own, ...skillFolders(machine, scope, { user: others, project: [".github/skills", ...others] })];
  },
  afterChange: "Start a new Copilot CLI session.",
});

function copilotFolder(machine: ClientEnvironment): string {
  return fromEnv(machine, "COPILOT_HOME") ?? inHome(machine, ".copilot");
}

/** Before COPILOT_HOME existed, the folder was below XDG_CONFIG_HOME. */
function olderCopilotFiles(machine: ClientEnvironment): string[] {
  const moved = fromEnv(machine, "XDG_CONFIG_HOME");
  return moved === undefined ? [] : [pathsOf(machine).join(moved, ".copilot", COPILOT_FILE)];
}

const CLINE_FILE = "cline_mcp_settings.json";

export const cline = jsonClient({
  id: "cline",
  name: "Cline",
  files(machine) {
    const { join } = pathsOf(machine);
    return userFiles(
      fromEnv(machine, "CLINE_MCP_SETTINGS_PATH") ?? join(clineFolder(machine), "data", "settings", CLINE_FILE),
      // Files of older versions of the extension, which newer ones migrate once.
      ...clineExtensionFolders(machine).map((folder) => join(folder, "settings", CLINE_FILE)),
    );
  },
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
  skillDirs: (machine, scope) =>
    skillFolders(machine, scope, {
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
