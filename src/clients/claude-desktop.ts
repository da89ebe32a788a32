import type { AgentClient } from "./client.ts";
import { inAppSupport, inLocalAppData, userFiles } from "./place.ts";
import { readMapAt } from "./read-servers.ts";
import { commandEntry, isCommand } from "./written-entry.ts";

const FILE = "claude_desktop_config.json";
/** The folder of the program as the Microsoft Store installs it, which is a view of %APPDATA% of its own. */
const STORE_FOLDER = ["Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude"];

/** Its remote servers are connectors of the account, which no file holds; and it takes skills by upload only. */
export const claudeDesktop: AgentClient = {
  id: "claude-desktop",
  name: "Claude Desktop",
  format: "jsonc",
  files: (place) => [
    ...userFiles(inAppSupport(place, "Claude", FILE)),
    ...(place.platform === "win32" ? userFiles(inLocalAppData(place, ...STORE_FOLDER, FILE)) : []),
  ],
  traces: (place) => [
    inAppSupport(place, "Claude"),
    ...(place.platform === "win32" ? [inLocalAppData(place, ...STORE_FOLDER)] : []),
  ],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: (document) => readMapAt(document, ["mcpServers"]),
  write: (_serverId, server) => (isCommand(server) ? commandEntry(server) : undefined),
  skillDirs: () => [],
  afterChange: "Quit Claude Desktop completely and start it again.",
};
