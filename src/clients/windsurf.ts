import type { AgentClient } from "./client.ts";
import { inHome, skillFolders, userFiles } from "./place.ts";
import { envColon, fileReference, readMapAt } from "./read-servers.ts";
import { commandEntry, isCommand, someOf } from "./written-entry.ts";

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
