/** Clients with a YAML file. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment, ClientFile, ClientRead } from "./agent-client.ts";
import {
  below,
  filesAt,
  fromEnv,
  inAppData,
  inConfigHome,
  inHome,
  inProject,
  pathsOf,
  settingsFilesIn,
  skillsAt,
} from "./client-paths.ts";
import {
  addIfMissing,
  allowOnly,
  commandEntryWithCwd,
  dollarName,
  isCommand,
  readMapAt,
  type ReportProblem,
  ServerCollector,
  setTimeLimit,
  someOf,
  valueAt,
} from "./server-entries.ts";

/** A list of servers; files with any name in `mcpServers` folders hold more. `continue` is a reserved word. */
export const continueDev: AgentClient = {
  id: "continue",
  name: "Continue",
  saysName: /^continue/i,
  format: "yaml",
  files: filesAt({
    user: [
      below(continueFolder, "config.yaml"),
      (machine) => filesOf(machine, below(continueFolder, "mcpServers")(machine)),
    ],
    project: [
      ".continue/mcpServers/toolcrib.yaml",
      (machine) => filesOf(machine, inProject(machine, ".continue", "mcpServers")),
    ],
  }),
  traces: (machine) => [continueFolder(machine)],
  pathOf: (serverId) => ["mcpServers", { key: "name", is: serverId }],
  read: readContinue,
  write(serverId, server) {
    if (isCommand(server)) return { name: serverId, type: "stdio", ...commandEntryWithCwd(server) };
    const type = server.transport === "sse" ? "sse" : "streamable-http";
    const headers = someOf("headers", server.headers);
    const requestOptions = Object.keys(headers).length === 0 ? {} : { requestOptions: headers };
    return { name: serverId, type, url: server.url, ...requestOptions };
  },
  // From .env files, from Continue's own store, and from the environment at last.
  envReference: (name) => `\${{ secrets.${name} }}`,
  skillDirs: skillsAt({ user: [below(continueFolder, "skills")], project: [".continue/skills", ".claude/skills"] }),
  newFile: "name: Local Config\nversion: 1.0.0\nschema: v1\n",
  afterChange: "Continue applies the change automatically; otherwise reload the editor window.",
};

function continueFolder(machine: ClientEnvironment): string {
  return fromEnv(machine, "CONTINUE_GLOBAL_DIR") ?? inHome(machine, ".continue");
}

function filesOf(machine: ClientEnvironment, folder: string): string[] {
  return settingsFilesIn(folder)
    .filter((name) => name !== "toolcrib.yaml")
    .map((name) => pathsOf(machine).join(folder, name));
}

function readContinue(document: unknown, { path: file }: ClientFile): ClientRead {
  const collector = new ServerCollector({ text: continueSecrets, adapt: adaptContinue });
  const list = valueAt(document, ["mcpServers"]);
  // A file may be one server, which has the name of the file then.
  if (list === undefined && ["command", "url"].some((key) => typeof valueAt(document, [key]) === "string")) {
    collector.add(/([^/\\]+)\.\w+$/.exec(file)?.[1] ?? "", document, []);
    return collector.finish();
  }
  // Some users copy the object of another client.
  if (!Array.isArray(list)) return collector.addMap(list, ["mcpServers"]).finish();
  for (const [index, item] of list.entries()) {
    const path = ["mcpServers", index];
    const name: unknown = isJsonObject(item) ? item["name"] : undefined;
    if (typeof name === "string" && name !== "") collector.add(name, item, path);
    else if (isJsonObject(item) && item["uses"] !== undefined) {
      collector.problem("this is a block of Continue's hub, whose content is not in the file", path);
    } else collector.problem("this is not an object with a name that describes a server", path);
  }
  return collector.finish();
}

function adaptContinue(entry: JsonObject, raw: JsonObject): void {
  const { requestOptions, apiKey } = raw;
  if (isJsonObject(requestOptions) && isJsonObject(requestOptions["headers"])) {
    entry["headers"] = requestOptions["headers"];
  }
  if (typeof apiKey === "string") addIfMissing(entry, "headers", "Authorization", `Bearer ${apiKey}`);
  setTimeLimit(entry, "timeout", raw["connectionTimeout"]);
}

/** `${{ secrets.NAME }}`, also with the names of a store before the last part. */
function continueSecrets(text: string): string {
  return text.replace(/\$\{\{\s*(?:secrets|inputs)\.(?:[\w-]+[./])*([A-Za-z_]\w*)\s*\}\}/g, "${$1}");
}

/** Extensions that are part of goose itself, so there is nothing to start. */
const BUILT_IN = new Set(["builtin", "platform", "frontend"]);
/** The seconds that goose itself writes for a new extension. */
const SECONDS = 300;

export const goose: AgentClient = {
  id: "goose",
  name: "goose",
  saysName: /^goose/i,
  toolNames: { prefix: (entry) => `${entry}__` },
  format: "yaml",
  files: filesAt({ user: [below(gooseFolder, "config.yaml")] }),
  traces: (machine) => [gooseFolder(machine)],
  pathOf: (serverId) => ["extensions", serverId],
  read: (document) =>
    readMapAt(document, ["extensions"], {
      timeout: "call-seconds",
      text: dollarName,
      adapt: adaptGoose,
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
  skillDirs: skillsAt({
    user: [
      below(gooseFolder, "skills"),
      (machine) => inConfigHome(machine, "agents", "skills"),
      ".agents/skills",
      ".claude/skills",
    ],
    project: [".goose/skills", ".agents/skills", ".claude/skills"],
  }),
  afterChange: "Start a new goose session.",
};

function gooseFolder(machine: ClientEnvironment): string {
  const root = fromEnv(machine, "GOOSE_PATH_ROOT");
  if (root !== undefined) return pathsOf(machine).join(root, "config");
  if (machine.platform === "win32") return inAppData(machine, "Block", "goose", "config");
  return inConfigHome(machine, "goose");
}

function adaptGoose(entry: JsonObject, raw: JsonObject, tell: ReportProblem): boolean {
  const type = raw["type"];
  if (typeof type === "string" && BUILT_IN.has(type)) return false;
  if (type === "inline_python") {
    tell("this extension is inline code of goose and not a server");
    return false;
  }
  if (raw["cmd"] !== undefined) entry["command"] ??= raw["cmd"];
  if (raw["uri"] !== undefined) entry["url"] ??= raw["uri"];
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
