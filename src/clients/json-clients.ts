import { isJsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment, ClientRead } from "./agent-client.ts";
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
  envColon,
  fileReference,
  isCommand,
  objectAt,
  pick,
  readMapAt,
  someOf,
} from "./server-entries.ts";
import { vscodeUserFolders } from "./vs-code.ts";

export const cursor: AgentClient = {
  id: "cursor",
  name: "Cursor",
  format: "jsonc",
  files: (place) => [
    ...userFiles(inHome(place, ".cursor", "mcp.json")),
    ...projectFiles(inProject(place, ".cursor", "mcp.json")),
  ],
  traces: (place) => [inHome(place, ".cursor")],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: (document) => readMapAt(document, ["mcpServers"], { text: envColon }),
  // It tries Streamable HTTP and then SSE for an address, and has no word for either.
  write: (_serverId, server) => (isCommand(server) ? commandEntry(server) : addressEntry(server)),
  envReference: (name) => `\${env:${name}}`,
  skillDirs: (place, scope) =>
    skillFolders(place, scope, {
      user: [".cursor/skills", ".agents/skills", ".claude/skills", ".codex/skills"],
      project: [".cursor/skills", ".agents/skills", ".claude/skills", ".codex/skills"],
    }),
  afterChange: "Restart Cursor, or switch the server on in its settings under MCP.",
};

const CLAUDE_DESKTOP_FILE = "claude_desktop_config.json";
/** The folder of the program as the Microsoft Store installs it, which is a view of %APPDATA% of its own. */
const CLAUDE_STORE_FOLDER = ["Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude"];

/** Its remote servers are connectors of the account, which no file holds; and it takes skills by upload only. */
export const claudeDesktop: AgentClient = {
  id: "claude-desktop",
  name: "Claude Desktop",
  format: "jsonc",
  files: (place) => [
    ...userFiles(inAppSupport(place, "Claude", CLAUDE_DESKTOP_FILE)),
    ...(place.platform === "win32"
      ? userFiles(inLocalAppData(place, ...CLAUDE_STORE_FOLDER, CLAUDE_DESKTOP_FILE))
      : []),
  ],
  traces: (place) => [
    inAppSupport(place, "Claude"),
    ...(place.platform === "win32" ? [inLocalAppData(place, ...CLAUDE_STORE_FOLDER)] : []),
  ],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: (document) => readMapAt(document, ["mcpServers"]),
  write: (_serverId, server) => (isCommand(server) ? commandEntry(server) : undefined),
  skillDirs: () => [],
  afterChange: "Quit Claude Desktop completely and start it again.",
};

export const windsurf: AgentClient = {
  id: "windsurf",
  name: "Windsurf",
  format: "jsonc",
  files: (place) =>
    userFiles(
      inHome(place, ".codeium", "windsurf", "mcp_config.json"),
      inHome(place, ".codeium", "windsurf-next", "mcp_config.json"),
      // The plugin for other editors.
      inHome(place, ".codeium", "mcp_config.json"),
    ),
  traces: (place) => [inHome(place, ".codeium", "windsurf"), inHome(place, ".codeium", "windsurf-next")],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: (document) =>
    readMapAt(document, ["mcpServers"], {
      keys: ["serverUrl", "disabledTools"],
      text: (text) =>
        envColon(text).replace(/\$\{file:([^{}]{1,400})\}/g, (_whole, path: string) => fileReference(path)),
    }),
  write(_serverId, server) {
    if (isCommand(server)) return commandEntry(server);
    return { serverUrl: server.url, ...someOf("headers", server.headers) };
  },
  envReference: (name) => `\${env:${name}}`,
  skillDirs: (place, scope) =>
    skillFolders(place, scope, {
      user: [".codeium/windsurf/skills", ".agents/skills", ".claude/skills"],
      project: [".windsurf/skills", ".agents/skills", ".claude/skills"],
    }),
  afterChange: "Press the refresh button of the MCP servers in Windsurf's Cascade panel, or restart Windsurf.",
};

export const kiro: AgentClient = {
  id: "kiro",
  name: "Kiro",
  format: "jsonc",
  files: (place) => [
    ...userFiles(inHome(place, ".kiro", "settings", "mcp.json")),
    ...projectFiles(inProject(place, ".kiro", "settings", "mcp.json")),
  ],
  traces: (place) => [inHome(place, ".kiro")],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: (document) => readMapAt(document, ["mcpServers"], { keys: ["disabledTools"], timeout: "call-milliseconds" }),
  write(_serverId, server) {
    if (!isCommand(server)) return { ...addressEntry(server), disabled: false };
    const entry = commandEntry(server);
    return entry === undefined ? undefined : { ...entry, disabled: false };
  },
  // It passes on those variables only that the user has approved, and the reference itself for the others.
  envReference: (name) => `\${${name}}`,
  skillDirs: (place, scope) => skillFolders(place, scope, { user: [".kiro/skills"], project: [".kiro/skills"] }),
  afterChange: "Kiro notices the change; Kiro CLI needs a new session.",
};

/** The plugin of JetBrains' editors and the command line program share these files. */
export const junie: AgentClient = {
  id: "junie",
  name: "Junie",
  format: "jsonc",
  files: (place) => [
    ...userFiles(inHome(place, ".junie", "mcp", "mcp.json")),
    ...projectFiles(inProject(place, ".junie", "mcp", "mcp.json")),
  ],
  traces: (place) => [inHome(place, ".junie")],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: (document) => readMapAt(document, ["mcpServers"]),
  write(_serverId, server) {
    if (isCommand(server)) return commandEntry(server);
    return server.transport === "http" ? addressEntry(server) : undefined;
  },
  skillDirs: (place, scope) => skillFolders(place, scope, { user: [".junie/skills"], project: [".junie/skills"] }),
  afterChange: "Start a new Junie session; in the editor press the reload button of the MCP settings.",
};

/** It follows Cursor's file, without Cursor's references. */
export const lmStudio: AgentClient = {
  id: "lm-studio",
  name: "LM Studio",
  format: "jsonc",
  files: (place) =>
    userFiles(
      inHome(place, ".lmstudio", "mcp.json"),
      // The folder of older versions, which stays in use where it was made.
      inHome(place, ".cache", "lm-studio", "mcp.json"),
    ),
  traces: (place) => [inHome(place, ".lmstudio"), inHome(place, ".cache", "lm-studio")],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: (document) => readMapAt(document, ["mcpServers"], { timeout: "call-milliseconds" }),
  write: (_serverId, server) => (isCommand(server) ? commandEntry(server) : addressEntry(server)),
  skillDirs: () => [],
  afterChange: "LM Studio notices the change; otherwise restart it.",
};

/** One key with a dot in it, as in the settings of VS Code. */
const AMP_CONTAINER = "amp.mcpServers";

export const amp: AgentClient = {
  id: "amp",
  name: "Amp",
  format: "jsonc",
  files: (place) => [
    ...userFiles(...ampUserSettings(place)),
    // Servers of a project run only after the user has approved them.
    ...projectFiles(inProject(place, ".amp", "settings.json"), inProject(place, ".amp", "settings.jsonc")),
  ],
  traces: (place) => [inConfigHome(place, "amp")],
  pathOf: (serverId) => [AMP_CONTAINER, serverId],
  read: (document) =>
    readMapAt(document, [AMP_CONTAINER], { adapt: (entry, raw) => allowOnly(entry, raw["includeTools"]) }),
  write: (_serverId, server) => (isCommand(server) ? commandEntry(server) : addressEntry(server)),
  envReference: (name) => `\${${name}}`,
  skillDirs(place, scope) {
    const others = skillFolders(place, scope, {
      user: [".claude/skills"],
      project: [".agents/skills", ".claude/skills"],
    });
    if (scope === "project") return others;
    return [inConfigHome(place, "agents", "skills"), inConfigHome(place, "amp", "skills"), ...others];
  },
  afterChange: "Start Amp again.",
};

function ampUserSettings(place: ClientEnvironment): string[] {
  const named = fromEnv(place, "AMP_SETTINGS_FILE");
  const usual = [inConfigHome(place, "amp", "settings.json"), inConfigHome(place, "amp", "settings.jsonc")];
  return named === undefined ? usual : [named, ...usual];
}

export const geminiCli: AgentClient = {
  id: "gemini-cli",
  name: "Gemini CLI",
  format: "jsonc",
  files: (place) => [
    ...userFiles(pathsOf(place).join(geminiFolder(place), "settings.json")),
    ...projectFiles(inProject(place, ".gemini", "settings.json")),
  ],
  traces: (place) => [geminiFolder(place)],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: readGemini,
  // `url` is SSE there, `httpUrl` Streamable HTTP.
  write(_serverId, server) {
    if (isCommand(server)) return commandEntryWithCwd(server);
    if (server.transport === "sse") return addressEntry(server);
    return { httpUrl: server.url, ...someOf("headers", server.headers) };
  },
  envReference: (name) => `\${${name}}`,
  skillDirs(place, scope) {
    const own = scope === "user" ? [pathsOf(place).join(geminiFolder(place), "skills")] : [];
    return [
      ...own,
      ...skillFolders(place, scope, { user: [".agents/skills"], project: [".gemini/skills", ".agents/skills"] }),
    ];
  },
  afterChange: "Start a new Gemini CLI session.",
};

function geminiFolder(place: ClientEnvironment): string {
  const home = fromEnv(place, "GEMINI_CLI_HOME");
  return home === undefined ? inHome(place, ".gemini") : pathsOf(place).join(home, ".gemini");
}

function readGemini(document: unknown): ClientRead {
  const { allowed, excluded } = objectAt(document, "mcp");
  return readMapAt(document, ["mcpServers"], {
    keys: ["httpUrl", "excludeTools"],
    timeout: "call-milliseconds",
    // `$NAME` is a reference there as well; `$$` and `${` begin something else.
    text: (text) => text.replace(/(?<!\$)\$([A-Za-z_]\w*)/g, "${$1}"),
    adapt(entry, raw, _tell, id) {
      if (typeof entry["url"] === "string" && entry["httpUrl"] === undefined) entry["type"] ??= "sse";
      allowOnly(entry, raw["includeTools"]);
      const left = Array.isArray(allowed) && allowed.length > 0 && !allowed.includes(id);
      if (left || (Array.isArray(excluded) && excluded.includes(id))) disable(entry);
    },
  });
}

const COPILOT_FILE = "mcp-config.json";

export const copilotCli: AgentClient = {
  id: "copilot-cli",
  name: "Copilot CLI",
  format: "jsonc",
  files: (place) => [
    ...userFiles(pathsOf(place).join(copilotFolder(place), COPILOT_FILE), ...olderCopilotFiles(place)),
    ...projectFiles(inProject(place, ".mcp.json"), inProject(place, ".github", "mcp.json")),
  ],
  traces: (place) => [copilotFolder(place)],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: (document) =>
    readMapAt(document, ["mcpServers"], {
      timeout: "call-milliseconds",
      adapt: (entry, raw) => allowOnly(entry, raw["tools"]),
    }),
  // Without `tools` some versions offer none. "stdio" rather than "local": other clients read the project's file too.
  write(_serverId, server) {
    if (isCommand(server)) return { type: "stdio", ...commandEntryWithCwd(server), tools: ["*"] };
    return { type: server.transport, ...addressEntry(server), tools: ["*"] };
  },
  envReference: (name) => `\${${name}}`,
  skillDirs(place, scope) {
    const own = scope === "user" ? [pathsOf(place).join(copilotFolder(place), "skills")] : [];
    const others = [".agents/skills", ".claude/skills"];
    return [...own, ...skillFolders(place, scope, { user: others, project: [".github/skills", ...others] })];
  },
  afterChange: "Start a new Copilot CLI session.",
};

function copilotFolder(place: ClientEnvironment): string {
  return fromEnv(place, "COPILOT_HOME") ?? inHome(place, ".copilot");
}

/** Before COPILOT_HOME there was, the folder moved with XDG_CONFIG_HOME. */
function olderCopilotFiles(place: ClientEnvironment): string[] {
  const moved = fromEnv(place, "XDG_CONFIG_HOME");
  return moved === undefined ? [] : [pathsOf(place).join(moved, ".copilot", COPILOT_FILE)];
}

const CLINE_FILE = "cline_mcp_settings.json";

export const cline: AgentClient = {
  id: "cline",
  name: "Cline",
  format: "jsonc",
  files(place) {
    const { join } = pathsOf(place);
    return userFiles(
      fromEnv(place, "CLINE_MCP_SETTINGS_PATH") ?? join(clineFolder(place), "data", "settings", CLINE_FILE),
      // Older versions of the extension, which newer ones take over once.
      ...clineExtensionFolders(place).map((folder) => join(folder, "settings", CLINE_FILE)),
    );
  },
  traces: (place) => [clineFolder(place), ...clineExtensionFolders(place)],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: (document) =>
    readMapAt(document, ["mcpServers"], {
      timeout: "call-seconds",
      text: envColon,
      // Its command line program also writes what belongs to the transport into an object of that name.
      adapt(entry, raw) {
        if (!isJsonObject(raw["transport"])) return;
        const inner = pick(raw["transport"], ["type", "command", "args", "env", "cwd", "url", "headers"]);
        Object.assign(entry, { ...inner, ...entry });
      },
    }),
  write(_serverId, server) {
    if (isCommand(server)) return { ...commandEntryWithCwd(server), disabled: false };
    const type = server.transport === "sse" ? "sse" : "streamableHttp";
    return { type, ...addressEntry(server), disabled: false };
  },
  skillDirs: (place, scope) =>
    skillFolders(place, scope, {
      user: [".cline/skills", ".agents/skills"],
      project: [".cline/skills", ".clinerules/skills", ".claude/skills", ".agents/skills"],
    }),
  afterChange: "Cline notices the change; otherwise press Restart beside the server in its MCP panel.",
};

function clineFolder(place: ClientEnvironment): string {
  return fromEnv(place, "CLINE_DIR") ?? inHome(place, ".cline");
}

function clineExtensionFolders(place: ClientEnvironment): string[] {
  return vscodeUserFolders(place).map((folder) =>
    pathsOf(place).join(folder, "globalStorage", "saoudrizwan.claude-dev"),
  );
}
