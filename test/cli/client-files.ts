/** Files of agent clients as people have them, in a workspace's home. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Workspace } from "./run-cli.ts";

/** The text that no output may ever hold. */
export const PLAIN_SECRET = "hunter2-hunter2-hunter2";

export const FILES = {
  cursor: ".cursor/mcp.json",
  "claude-desktop": ".config/Claude/claude_desktop_config.json",
  vscode: ".config/Code/User/mcp.json",
  codex: ".codex/config.toml",
  goose: ".config/goose/config.yaml",
  continue: ".continue/config.yaml",
  openclaw: ".openclaw/openclaw.json",
  zed: ".config/zed/settings.json",
} as const;

export type FiledClient = keyof typeof FILES;

export const TEXTS: Readonly<Record<FiledClient, string>> = {
  cursor: `{
    // what I use at work
    "mcpServers": {
        "github": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-github"], // pinned by hand
            "env": { "GITHUB_TOKEN": "${PLAIN_SECRET}" }
        },
        "docs": { "url": "https://docs.example/mcp", "headers": { "X-Team": "blue" } },
    },
}
`,
  "claude-desktop": `{"globalShortcut":"Ctrl+Space","mcpServers":{"memory":{"command":"npx","args":["-y","mem"]}}}`,
  vscode: `{\n\t"servers": {\n\t\t"docs": {\n\t\t\t"type": "http",\n\t\t\t"url": "https://docs.example/mcp"\n\t\t}\n\t},\n\t"inputs": []\n}\n`,
  codex: `model = "o3" # the one I like

[mcp_servers.memory]
command = "npx"
args = ["-y", "mem"]

[mcp_servers.memory.env]
API_KEY = "${PLAIN_SECRET}"

[tui]
theme = "dark"
`,
  goose: `# goose
GOOSE_PROVIDER: anthropic
extensions:
  developer:
    type: builtin
    enabled: true
  memory:
    type: stdio
    cmd: npx
    args: [-y, mem]
    envs: {API_KEY: ${PLAIN_SECRET}}
    enabled: true
GOOSE_MODE: auto
`,
  continue: `name: mine
version: 1.0.0
mcpServers:
  - name: memory   # remembers
    command: npx
    args: ["-y", "mem"]
`,
  openclaw: `{
  // OpenClaw
  agents: { defaults: { workspace: '~/claw' } },
  mcp: {
    servers: {
      memory: { command: 'npx', args: ['-y', 'mem'] },
    },
  },
}
`,
  zed: `// Zed settings
{
  "theme": "One Dark",
  "vim_mode": true
}
`,
};

/** Writes the usual text, or another one, and gives the path. */
export function giveFile(place: Workspace, client: FiledClient, text: string = TEXTS[client]): string {
  const path = join(place.home, FILES[client]);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

export function textOf(path: string): string {
  return readFileSync(path, "utf8");
}
