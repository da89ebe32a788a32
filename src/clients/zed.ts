import { isJsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment } from "./agent-client.ts";
import {
  fromEnv,
  inAppData,
  inConfigHome,
  inHome,
  inProject,
  pathsOf,
  projectFiles,
  skillFolders,
  userFiles,
} from "./client-paths.ts";
import { addressEntry, commandEntry, isCommand, pick, readMapAt } from "./server-entries.ts";

export const zed: AgentClient = {
  id: "zed",
  name: "Zed",
  format: "jsonc",
  files: (machine) => [
    ...userFiles(pathsOf(machine).join(configDir(machine), "settings.json")),
    ...projectFiles(inProject(machine, ".zed", "settings.json")),
  ],
  traces: (machine) => [configDir(machine)],
  pathOf: (serverId) => ["context_servers", serverId],
  read: (document) =>
    readMapAt(document, ["context_servers"], {
      timeout: "call-seconds",
      adapt(entry, raw, tell) {
        // The form of older versions: the program, its arguments and its variables in one object.
        if (isJsonObject(raw["command"])) {
          Object.assign(entry, { command: raw["command"]["path"] }, pick(raw["command"], ["args", "env"]));
        }
        if (entry["command"] !== undefined || entry["url"] !== undefined) return true;
        tell("this server belongs to a Zed extension, and only Zed can start it");
        return false;
      },
    }),
  write(_serverId, server) {
    if (isCommand(server)) {
      const entry = commandEntry(server);
      return entry === undefined ? undefined : { env: {}, ...entry };
    }
    return server.transport === "http" ? addressEntry(server) : undefined;
  },
  skillDirs: (machine, scope) =>
    skillFolders(machine, scope, { user: [".agents/skills"], project: [".agents/skills"] }),
  afterChange: "Zed applies the change automatically.",
};

/** On macOS it ignores XDG_CONFIG_HOME; inside Flatpak that is not the user's folder. */
function configDir(machine: ClientEnvironment): string {
  if (machine.platform === "win32") return inAppData(machine, "Zed");
  if (machine.platform === "darwin") return inHome(machine, ".config", "zed");
  const flatpak = fromEnv(machine, "FLATPAK_XDG_CONFIG_HOME");
  return flatpak === undefined ? inConfigHome(machine, "zed") : pathsOf(machine).join(flatpak, "zed");
}
