import { posix, win32 } from "node:path";
import { describe, expect, it } from "vitest";
import { CLIENT_IDS, type ClientId, type ClientEnvironment } from "../../src/clients/agent-client.ts";
import { CLIENTS } from "../../src/clients/clients.ts";
import { client, LINUX, MAC, WINDOWS } from "./fixture.ts";

type Files = readonly [linux: string, mac: string, windows: string, ...project: string[]];

/** The file of the user that is written on each system below the home, and the project's below the project. */
const WRITTEN: Readonly<Record<ClientId, Files>> = {
  "claude-desktop": [
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    "AppData/Roaming/Claude/claude_desktop_config.json",
  ],
  "claude-code": [".claude.json", ".claude.json", ".claude.json", ".mcp.json"],
  cursor: [".cursor/mcp.json", ".cursor/mcp.json", ".cursor/mcp.json", ".cursor/mcp.json"],
  vscode: [
    ".config/Code/User/mcp.json",
    "Library/Application Support/Code/User/mcp.json",
    "AppData/Roaming/Code/User/mcp.json",
    ".vscode/mcp.json",
  ],
  windsurf: [
    ".codeium/windsurf/mcp_config.json",
    ".codeium/windsurf/mcp_config.json",
    ".codeium/windsurf/mcp_config.json",
  ],
  cline: [
    ".cline/data/settings/cline_mcp_settings.json",
    ".cline/data/settings/cline_mcp_settings.json",
    ".cline/data/settings/cline_mcp_settings.json",
  ],
  zed: [
    ".config/zed/settings.json",
    ".config/zed/settings.json",
    "AppData/Roaming/Zed/settings.json",
    ".zed/settings.json",
  ],
  codex: [".codex/config.toml", ".codex/config.toml", ".codex/config.toml", ".codex/config.toml"],
  "gemini-cli": [".gemini/settings.json", ".gemini/settings.json", ".gemini/settings.json", ".gemini/settings.json"],
  opencode: [
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.json",
    "opencode.json",
  ],
  kiro: [".kiro/settings/mcp.json", ".kiro/settings/mcp.json", ".kiro/settings/mcp.json", ".kiro/settings/mcp.json"],
  junie: [".junie/mcp/mcp.json", ".junie/mcp/mcp.json", ".junie/mcp/mcp.json", ".junie/mcp/mcp.json"],
  goose: [".config/goose/config.yaml", ".config/goose/config.yaml", "AppData/Roaming/Block/goose/config/config.yaml"],
  "lm-studio": [".lmstudio/mcp.json", ".lmstudio/mcp.json", ".lmstudio/mcp.json"],
  amp: [".config/amp/settings.json", ".config/amp/settings.json", ".config/amp/settings.json", ".amp/settings.json"],
  continue: [
    ".continue/config.yaml",
    ".continue/config.yaml",
    ".continue/config.yaml",
    ".continue/mcpServers/toolcrib.yaml",
  ],
  openclaw: [".openclaw/openclaw.json", ".openclaw/openclaw.json", ".openclaw/openclaw.json"],
  "copilot-cli": [".copilot/mcp-config.json", ".copilot/mcp-config.json", ".copilot/mcp-config.json", ".mcp.json"],
  "qwen-code": [".qwen/settings.json", ".qwen/settings.json", ".qwen/settings.json", ".qwen/settings.json"],
  kilo: [".config/kilo/kilo.json", ".config/kilo/kilo.json", ".config/kilo/kilo.json", ".kilo/kilo.json"],
  droid: [".factory/mcp.json", ".factory/mcp.json", ".factory/mcp.json", ".factory/mcp.json"],
  kimi: [".kimi-code/mcp.json", ".kimi-code/mcp.json", ".kimi-code/mcp.json", ".kimi-code/mcp.json"],
  pi: [".pi/agent/mcp.json", ".pi/agent/mcp.json", ".pi/agent/mcp.json", ".pi/mcp.json"],
  grok: [".grok/config.toml", ".grok/config.toml", ".grok/config.toml", ".grok/config.toml"],
};

function written(id: string, place: ClientEnvironment, scope: "user" | "project" = "user"): string | undefined {
  return client(id)
    .files(place)
    .find((file) => file.scope === scope)?.path;
}

function withEnv(place: ClientEnvironment, env: NodeJS.ProcessEnv): ClientEnvironment {
  return { ...place, env: { ...place.env, ...env } };
}

describe("where the clients' files are", () => {
  it.each(CLIENT_IDS)("[skill-14a] %s: the file that is written on each system and in a project", (id) => {
    const [linux, mac, windows, project] = WRITTEN[id];
    expect(written(id, LINUX)).toBe(posix.join(LINUX.home, linux));
    expect(written(id, MAC)).toBe(posix.join(MAC.home, mac));
    expect(written(id, WINDOWS)).toBe(win32.join(WINDOWS.home, windows));
    for (const place of [LINUX, MAC]) {
      expect(written(id, place, "project")).toBe(
        project === undefined ? undefined : posix.join(place.projectDir, project),
      );
    }
    const onWindows = project === undefined ? undefined : win32.join(WINDOWS.projectDir, project);
    expect(written(id, WINDOWS, "project")).toBe(onWindows);
  });

  it("[skill-14a] Windows folders are found without their variables too", () => {
    const bare = { ...WINDOWS, env: {} };
    for (const { id } of CLIENTS) expect(written(id, bare)).toBe(written(id, WINDOWS));
    const moved = withEnv(WINDOWS, { APPDATA: "D:\\Roaming" });
    expect(written("vscode", moved)).toBe("D:\\Roaming\\Code\\User\\mcp.json");
    expect(written("goose", moved)).toBe("D:\\Roaming\\Block\\goose\\config\\config.yaml");
  });

  it("[skill-14a] XDG_CONFIG_HOME counts where the client heeds it, and only as an absolute path", () => {
    const moved = withEnv(LINUX, { XDG_CONFIG_HOME: "/xdg" });
    const heeding = ["claude-desktop", "vscode", "zed", "opencode", "goose", "amp", "kilo"];
    for (const { id } of CLIENTS) expect(written(id, moved)?.startsWith("/xdg/")).toBe(heeding.includes(id));
    const onMac = withEnv(MAC, { XDG_CONFIG_HOME: "/xdg" });
    expect(CLIENTS.map(({ id }) => id).filter((id) => written(id, onMac)?.startsWith("/xdg/"))).toEqual([
      "opencode",
      "goose",
      "amp",
      "kilo",
    ]);
    const relative = withEnv(LINUX, { XDG_CONFIG_HOME: "xdg" });
    for (const id of heeding) expect(written(id, relative)).toBe(written(id, LINUX));
  });

  it.each([
    ["codex", "CODEX_HOME", "/x/codex", "/x/codex/config.toml"],
    ["claude-code", "CLAUDE_CONFIG_DIR", "/x/claude", "/x/claude/.claude.json"],
    ["openclaw", "OPENCLAW_CONFIG_PATH", "~/claw.json5", "/home/ada/claw.json5"],
    ["openclaw", "OPENCLAW_STATE_DIR", "/x/state", "/x/state/openclaw.json"],
    ["openclaw", "OPENCLAW_HOME", "/x/home", "/x/home/.openclaw/openclaw.json"],
    ["copilot-cli", "COPILOT_HOME", "/x/copilot", "/x/copilot/mcp-config.json"],
    ["cline", "CLINE_DIR", "/x/cline", "/x/cline/data/settings/cline_mcp_settings.json"],
    ["cline", "CLINE_MCP_SETTINGS_PATH", "/x/mcp.json", "/x/mcp.json"],
    ["goose", "GOOSE_PATH_ROOT", "/x/goose", "/x/goose/config/config.yaml"],
    ["continue", "CONTINUE_GLOBAL_DIR", "/x/continue", "/x/continue/config.yaml"],
    ["gemini-cli", "GEMINI_CLI_HOME", "/x/gemini", "/x/gemini/.gemini/settings.json"],
    ["amp", "AMP_SETTINGS_FILE", "/x/amp.json", "/x/amp.json"],
    ["vscode", "VSCODE_PORTABLE", "/x/data", "/x/data/user-data/User/mcp.json"],
    ["zed", "FLATPAK_XDG_CONFIG_HOME", "/x/flat", "/x/flat/zed/settings.json"],
  ])("[skill-14a] %s heeds %s", (id, name, value, path) => {
    expect(written(id, withEnv(LINUX, { [name]: value }))).toBe(path);
    expect(written(id, withEnv(LINUX, { [name]: "  " }))).toBe(written(id, LINUX));
  });

  it("[skill-14a] other files that may hold servers are read after the one that is written", () => {
    const others = (id: string, place = LINUX): string[] =>
      client(id)
        .files(place)
        .map(({ path }) => path)
        .slice(1);
    expect(others("cline")).toContain(
      "/home/ada/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    );
    expect(others("opencode", withEnv(LINUX, { OPENCODE_CONFIG: "/x/o.json" }))).toEqual([
      "/home/ada/.config/opencode/opencode.jsonc",
      "/x/o.json",
      "/home/ada/engine/opencode.json",
      "/home/ada/engine/opencode.jsonc",
      "/home/ada/engine/.opencode/opencode.json",
      "/home/ada/engine/.opencode/opencode.jsonc",
    ]);
    expect(others("copilot-cli")).toEqual(["/home/ada/engine/.mcp.json", "/home/ada/engine/.github/mcp.json"]);
    expect(others("vscode")[0]).toBe("/home/ada/.config/Code - Insiders/User/mcp.json");
    expect(others("claude-desktop", WINDOWS)).toEqual([
      "C:\\Users\\ada\\AppData\\Local\\Packages\\Claude_pzs8sxrjxfjjc\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json",
    ]);
  });

  it("[skill-14a] all paths are absolute, below the home or the project, and in the manner of the system", () => {
    for (const place of [LINUX, MAC, WINDOWS]) {
      const { isAbsolute, normalize } = place.platform === "win32" ? win32 : posix;
      for (const one of CLIENTS) {
        const paths = [
          ...one.files(place).map(({ path }) => path),
          ...one.traces(place),
          ...one.skillDirs(place, "user"),
          ...one.skillDirs(place, "project"),
        ];
        for (const path of paths) {
          expect(isAbsolute(path) && path === normalize(path)).toBe(true);
          expect(path.startsWith(place.home) || path.startsWith(place.projectDir)).toBe(true);
        }
        expect(new Set(one.skillDirs(place, "user")).size).toBe(one.skillDirs(place, "user").length);
        expect(one.traces(place).length).toBeGreaterThan(0);
        for (const trace of one.traces(place)) expect(trace.startsWith(place.projectDir)).toBe(false);
      }
    }
  });
});

/** The skill folder that is written, of the user and of a project. */
const SKILLS: Readonly<Record<ClientId, readonly [user?: string, project?: string]>> = {
  "claude-desktop": [],
  "claude-code": [".claude/skills", ".claude/skills"],
  cursor: [".cursor/skills", ".cursor/skills"],
  vscode: [".copilot/skills", ".github/skills"],
  windsurf: [".codeium/windsurf/skills", ".windsurf/skills"],
  cline: [".cline/skills", ".cline/skills"],
  zed: [".agents/skills", ".agents/skills"],
  codex: [".agents/skills", ".agents/skills"],
  "gemini-cli": [".gemini/skills", ".gemini/skills"],
  opencode: [".config/opencode/skills", ".opencode/skills"],
  kiro: [".kiro/skills", ".kiro/skills"],
  junie: [".junie/skills", ".junie/skills"],
  goose: [".config/goose/skills", ".goose/skills"],
  "lm-studio": [],
  amp: [".config/agents/skills", ".agents/skills"],
  continue: [".continue/skills", ".continue/skills"],
  openclaw: [".openclaw/skills", "skills"],
  "copilot-cli": [".copilot/skills", ".github/skills"],
  "qwen-code": [".qwen/skills", ".qwen/skills"],
  kilo: [".config/kilo/skills", ".kilo/skills"],
  droid: [".factory/skills", ".factory/skills"],
  kimi: [".kimi-code/skills", ".kimi-code/skills"],
  pi: [".pi/agent/skills", ".pi/skills"],
  grok: [".grok/skills", ".grok/skills"],
};

describe("where the clients read skills", () => {
  it.each(CLIENT_IDS)("[skill-14a] %s: the folder that is written", (id) => {
    const [user, project] = SKILLS[id];
    const { skillDirs } = client(id);
    expect(skillDirs(LINUX, "user")[0]).toBe(user === undefined ? undefined : posix.join(LINUX.home, user));
    expect(skillDirs(LINUX, "project")[0]).toBe(
      project === undefined ? undefined : posix.join(LINUX.projectDir, project),
    );
  });

  it("[skill-14a] skill folders move with the client's home", () => {
    const moved = withEnv(LINUX, {
      CODEX_HOME: "/x/codex",
      CLAUDE_CONFIG_DIR: "/x/claude",
      OPENCLAW_STATE_DIR: "/x/state",
      COPILOT_HOME: "/x/copilot",
      XDG_CONFIG_HOME: "/xdg",
    });
    expect(client("codex").skillDirs(moved, "user")).toEqual(["/home/ada/.agents/skills", "/x/codex/skills"]);
    expect(client("claude-code").skillDirs(moved, "user")).toEqual(["/x/claude/skills"]);
    expect(client("openclaw").skillDirs(moved, "user")[0]).toBe("/x/state/skills");
    expect(client("copilot-cli").skillDirs(moved, "user")[0]).toBe("/x/copilot/skills");
    expect(client("amp").skillDirs(moved, "user")[0]).toBe("/xdg/agents/skills");
    expect(client("goose").skillDirs(WINDOWS, "user")[0]).toBe(
      "C:\\Users\\ada\\AppData\\Roaming\\Block\\goose\\config\\skills",
    );
  });
});
