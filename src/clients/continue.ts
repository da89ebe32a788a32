/** Continue: YAML with a list of servers. Its files of single servers in `.continue/mcpServers` have free names. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment, ClientRead } from "./agent-client.ts";
import { fromEnv, inHome, pathsOf, skillFolders, userFiles } from "./client-paths.ts";
import {
  addIfMissing,
  commandEntryWithCwd,
  isCommand,
  ServerCollector,
  setTimeLimit,
  someOf,
  valueAt,
} from "./server-entries.ts";

/** `continue` is a reserved word. */
export const continueDev: AgentClient = {
  id: "continue",
  name: "Continue",
  format: "yaml",
  files: (machine) => userFiles(pathsOf(machine).join(ownFolder(machine), "config.yaml")),
  traces: (machine) => [ownFolder(machine)],
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
  skillDirs(machine, scope) {
    if (scope === "user") return [pathsOf(machine).join(ownFolder(machine), "skills")];
    return skillFolders(machine, scope, { user: [], project: [".continue/skills", ".claude/skills"] });
  },
  newFile: "name: Local Config\nversion: 1.0.0\nschema: v1\n",
  afterChange: "Continue applies the change automatically; otherwise reload the editor window.",
};

function ownFolder(machine: ClientEnvironment): string {
  return fromEnv(machine, "CONTINUE_GLOBAL_DIR") ?? inHome(machine, ".continue");
}

function readContinue(document: unknown): ClientRead {
  const collector = new ServerCollector({ text: secretsOf, adapt });
  const list = valueAt(document, ["mcpServers"]);
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

function adapt(entry: JsonObject, raw: JsonObject): void {
  const { requestOptions, apiKey } = raw;
  if (isJsonObject(requestOptions) && isJsonObject(requestOptions["headers"])) {
    entry["headers"] = requestOptions["headers"];
  }
  if (typeof apiKey === "string") addIfMissing(entry, "headers", "Authorization", `Bearer ${apiKey}`);
  setTimeLimit(entry, "timeout", raw["connectionTimeout"]);
}

/** `${{ secrets.NAME }}`, also with the names of a store before the last part. */
function secretsOf(text: string): string {
  return text.replace(/\$\{\{\s*(?:secrets|inputs)\.(?:[\w-]+[./])*([A-Za-z_]\w*)\s*\}\}/g, "${$1}");
}
