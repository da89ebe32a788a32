import type { AgentClient, ClientPlace } from "./client.ts";
import { fromEnv, inHome, inProject, pathsOf, projectFiles, skillFolders, userFiles } from "./place.ts";
import { allowOnly, readMapAt } from "./read-servers.ts";
import { addressEntry, commandEntryWithCwd, isCommand } from "./written-entry.ts";

const FILE = "mcp-config.json";

export const copilotCli: AgentClient = {
  id: "copilot-cli",
  name: "Copilot CLI",
  format: "jsonc",
  files: (place) => [
    ...userFiles(pathsOf(place).join(ownFolder(place), FILE), ...olderFiles(place)),
    ...projectFiles(inProject(place, ".mcp.json"), inProject(place, ".github", "mcp.json")),
  ],
  traces: (place) => [ownFolder(place)],
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
    const own = scope === "user" ? [pathsOf(place).join(ownFolder(place), "skills")] : [];
    const others = [".agents/skills", ".claude/skills"];
    return [...own, ...skillFolders(place, scope, { user: others, project: [".github/skills", ...others] })];
  },
  afterChange: "Start a new Copilot CLI session.",
};

function ownFolder(place: ClientPlace): string {
  return fromEnv(place, "COPILOT_HOME") ?? inHome(place, ".copilot");
}

/** Before COPILOT_HOME there was, the folder moved with XDG_CONFIG_HOME. */
function olderFiles(place: ClientPlace): string[] {
  const moved = fromEnv(place, "XDG_CONFIG_HOME");
  return moved === undefined ? [] : [pathsOf(place).join(moved, ".copilot", FILE)];
}
