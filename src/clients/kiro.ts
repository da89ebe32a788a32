import type { AgentClient } from "./client.ts";
import { inHome, inProject, projectFiles, skillFolders, userFiles } from "./place.ts";
import { readMapAt } from "./read-servers.ts";
import { addressEntry, commandEntry, isCommand } from "./written-entry.ts";

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
