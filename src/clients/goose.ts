/** goose: YAML, where servers are `extensions` among others that are built into the program. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment } from "./agent-client.ts";
import { fromEnv, inAppData, inConfigHome, pathsOf, skillFolders, userFiles } from "./client-paths.ts";
import { addIfMissing, allowOnly, isCommand, readMapAt, type ReportProblem } from "./server-entries.ts";

/** Part of goose itself, so there is nothing to start. */
const BUILT_IN = new Set(["builtin", "platform", "frontend"]);
/** The seconds that goose itself writes for a new extension. */
const SECONDS = 300;

export const goose: AgentClient = {
  id: "goose",
  name: "goose",
  format: "yaml",
  files: (machine) => userFiles(pathsOf(machine).join(configDir(machine), "config.yaml")),
  traces: (machine) => [configDir(machine)],
  pathOf: (serverId) => ["extensions", serverId],
  read: (document) =>
    readMapAt(document, ["extensions"], {
      timeout: "call-seconds",
      text: (text) => text.replace(/(?<!\$)\$([A-Za-z_]\w*)/g, "${$1}"),
      adapt,
    }),
  write(serverId, server) {
    const shared = { name: serverId, description: "", enabled: true, timeout: SECONDS };
    if (!isCommand(server)) {
      if (server.transport === "sse") return undefined;
      return { ...shared, type: "streamable_http", uri: server.url, headers: { ...server.headers } };
    }
    if (server.cwd !== undefined) return undefined;
    return { ...shared, type: "stdio", cmd: server.command, args: [...server.args], envs: { ...server.env } };
  },
  skillDirs(machine, scope) {
    const shared = [".agents/skills", ".claude/skills"];
    if (scope === "project") return skillFolders(machine, scope, { user: [], project: [".goose/skills", ...shared] });
    return [
      pathsOf(machine).join(configDir(machine), "skills"),
      inConfigHome(machine, "agents", "skills"),
      ...skillFolders(machine, scope, { user: shared, project: [] }),
    ];
  },
  afterChange: "Start a new goose session.",
};

function configDir(machine: ClientEnvironment): string {
  const root = fromEnv(machine, "GOOSE_PATH_ROOT");
  if (root !== undefined) return pathsOf(machine).join(root, "config");
  if (machine.platform === "win32") return inAppData(machine, "Block", "goose", "config");
  return inConfigHome(machine, "goose");
}

function adapt(entry: JsonObject, raw: JsonObject, tell: ReportProblem): boolean {
  const type = raw["type"];
  if (typeof type === "string" && BUILT_IN.has(type)) return false;
  if (type === "inline_python") {
    tell("this extension is inline code of goose and not a server");
    return false;
  }
  entry["command"] ??= raw["cmd"];
  entry["url"] ??= raw["uri"];
  if (entry["command"] === undefined) delete entry["command"];
  if (entry["url"] === undefined) delete entry["url"];
  if (isJsonObject(raw["envs"])) entry["env"] = raw["envs"];
  // Names of variables whose values goose keeps in the keychain.
  for (const name of Array.isArray(raw["env_keys"]) ? raw["env_keys"] : []) {
    if (typeof name === "string") addIfMissing(entry, "env", name, `\${${name}}`);
  }
  // Here an empty list means all.
  if (Array.isArray(raw["available_tools"]) && raw["available_tools"].length > 0) {
    allowOnly(entry, raw["available_tools"]);
  }
  return true;
}
