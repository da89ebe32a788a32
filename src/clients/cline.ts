import { isJsonObject } from "../model/json.ts";
import type { AgentClient, ClientPlace } from "./client.ts";
import { fromEnv, inHome, pathsOf, skillFolders, userFiles } from "./place.ts";
import { envColon, pick, readMapAt } from "./read-servers.ts";
import { userFolders } from "./vscode.ts";
import { addressEntry, commandEntryWithCwd, isCommand } from "./written-entry.ts";

const FILE = "cline_mcp_settings.json";

export const cline: AgentClient = {
  id: "cline",
  name: "Cline",
  format: "jsonc",
  files(place) {
    const { join } = pathsOf(place);
    return userFiles(
      fromEnv(place, "CLINE_MCP_SETTINGS_PATH") ?? join(ownFolder(place), "data", "settings", FILE),
      // Older versions of the extension, which newer ones take over once.
      ...extensionFolders(place).map((folder) => join(folder, "settings", FILE)),
    );
  },
  traces: (place) => [ownFolder(place), ...extensionFolders(place)],
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

function ownFolder(place: ClientPlace): string {
  return fromEnv(place, "CLINE_DIR") ?? inHome(place, ".cline");
}

function extensionFolders(place: ClientPlace): string[] {
  return userFolders(place).map((folder) => pathsOf(place).join(folder, "globalStorage", "saoudrizwan.claude-dev"));
}
