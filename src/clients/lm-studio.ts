import type { AgentClient } from "./client.ts";
import { inHome, userFiles } from "./place.ts";
import { readMapAt } from "./read-servers.ts";
import { addressEntry, commandEntry, isCommand } from "./written-entry.ts";

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
