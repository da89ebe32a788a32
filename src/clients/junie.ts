import type { AgentClient } from "./client.ts";
import { inHome, inProject, projectFiles, skillFolders, userFiles } from "./place.ts";
import { readMapAt } from "./read-servers.ts";
import { addressEntry, commandEntry, isCommand } from "./written-entry.ts";

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
