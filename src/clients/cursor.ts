import type { AgentClient } from "./client.ts";
import { inHome, inProject, projectFiles, skillFolders, userFiles } from "./place.ts";
import { envColon, readMapAt } from "./read-servers.ts";
import { addressEntry, commandEntry, isCommand } from "./written-entry.ts";

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
