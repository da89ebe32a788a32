/**
 * OpenCode: entries under `mcp` in version 1, under `mcp.servers` in version 2, which also reads the old form. Both are
 * read; the old one is written, because both versions understand it.
 */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientRead } from "./agent-client.ts";
import { fromEnv, inConfigHome, inProject, projectFiles, skillFolders, userFiles } from "./client-paths.ts";
import {
  addressEntry,
  fileReference,
  isCommand,
  objectAt,
  ServerCollector,
  setTimeLimit,
  someOf,
} from "./server-entries.ts";

const NAMES = ["opencode.json", "opencode.jsonc"];

export const opencode: AgentClient = {
  id: "opencode",
  name: "OpenCode",
  format: "jsonc",
  files(machine) {
    const named = fromEnv(machine, "OPENCODE_CONFIG");
    return [
      ...userFiles(...NAMES.map((name) => inConfigHome(machine, "opencode", name))),
      ...(named === undefined ? [] : userFiles(named)),
      ...projectFiles(...NAMES.map((name) => inProject(machine, name))),
      ...projectFiles(...NAMES.map((name) => inProject(machine, ".opencode", name))),
    ];
  },
  traces: (machine) => [inConfigHome(machine, "opencode")],
  pathOf: (serverId) => ["mcp", serverId],
  read: readOpencode,
  write(_serverId, server) {
    if (!isCommand(server)) return { type: "remote", ...addressEntry(server), enabled: true };
    if (server.cwd !== undefined) return undefined;
    const command = [server.command, ...server.args];
    return { type: "local", command, ...someOf("environment", server.env), enabled: true };
  },
  envReference: (name) => `{env:${name}}`,
  skillDirs(machine, scope) {
    const own = scope === "user" ? [inConfigHome(machine, "opencode", "skills")] : [];
    const others = [".claude/skills", ".agents/skills"];
    return [...own, ...skillFolders(machine, scope, { user: others, project: [".opencode/skills", ...others] })];
  },
  afterChange: "Restart OpenCode.",
};

function readOpencode(document: unknown): ClientRead {
  const mcp = objectAt(document, "mcp");
  const collector = new ServerCollector({
    keys: ["environment"],
    text: ownReferences,
    adapt(entry, raw) {
      const { timeout } = raw;
      setTimeLimit(entry, "timeout", isJsonObject(timeout) ? timeout["startup"] : timeout);
      if (isJsonObject(timeout)) setTimeLimit(entry, "toolTimeout", timeout["execution"] ?? timeout["request"]);
    },
  });
  if (isJsonObject(document) && document["mcp"] !== undefined && !isJsonObject(document["mcp"])) {
    collector.problem("an object is expected here", ["mcp"]);
  }
  for (const [id, entry] of Object.entries(mcp)) {
    if (isSetting(id, entry)) continue;
    collector.add(id, entry, ["mcp", id]);
  }
  // Later, because an entry of the new form counts before one of the old form with the same name.
  if (isSetting("servers", mcp["servers"])) collector.addMap(mcp["servers"], ["mcp", "servers"]);
  return collector.finish();
}

/** `servers` and `timeout` of version 2; in version 1 a server may be called that. */
function isSetting(id: string, value: unknown): boolean {
  if (id === "timeout") return typeof value === "number" || (isJsonObject(value) && !isServer(value));
  return id === "servers" && isJsonObject(value) && !isServer(value);
}

function isServer(value: JsonObject): boolean {
  return (
    typeof value["type"] === "string" ||
    typeof value["url"] === "string" ||
    typeof value["enabled"] === "boolean" ||
    Array.isArray(value["command"])
  );
}

function ownReferences(text: string): string {
  return text
    .replace(/\{env:([A-Za-z_]\w*)\}/g, "${$1}")
    .replace(/\{file:([^{}]{1,400})\}/g, (_whole, path: string) => fileReference(path));
}
