import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment } from "./agent-client.ts";
import { fromEnv, inHome, pathsOf, skillFolders, userFiles } from "./client-paths.ts";
import {
  addressEntry,
  allowOnly,
  commandEntryWithCwd,
  isCommand,
  readMapAt,
  type ReportProblem,
  setTimeLimit,
} from "./server-entries.ts";

export const openclaw: AgentClient = {
  id: "openclaw",
  name: "OpenClaw",
  format: "json5",
  files(machine) {
    const named = fromEnv(machine, "OPENCLAW_CONFIG_PATH");
    return userFiles(named ?? pathsOf(machine).join(stateDir(machine), "openclaw.json"));
  },
  traces: (machine) => [stateDir(machine)],
  pathOf: (serverId) => ["mcp", "servers", serverId],
  read: (document) =>
    readMapAt(document, ["mcp", "servers"], {
      keys: ["transport", "workingDirectory", "connectionTimeoutMs", "requestTimeoutMs"],
      adapt,
    }),
  // Without `transport` it takes an address for SSE.
  write(_serverId, server) {
    if (isCommand(server)) return commandEntryWithCwd(server);
    const { url, ...headers } = addressEntry(server);
    return { url, transport: server.transport === "sse" ? "sse" : "streamable-http", ...headers };
  },
  envReference: (name) => `\${${name}}`,
  skillDirs(machine, scope) {
    if (scope === "project") {
      return skillFolders(machine, scope, { user: [], project: ["skills", ".agents/skills"] });
    }
    return [pathsOf(machine).join(stateDir(machine), "skills"), inHome(machine, ".agents", "skills")];
  },
  afterChange: "Restart the OpenClaw gateway.",
};

function stateDir(machine: ClientEnvironment): string {
  const named = fromEnv(machine, "OPENCLAW_STATE_DIR");
  if (named !== undefined) return named;
  const home = fromEnv(machine, "OPENCLAW_HOME");
  return home === undefined ? inHome(machine, ".openclaw") : pathsOf(machine).join(home, ".openclaw");
}

function adapt(entry: JsonObject, raw: JsonObject, tell: ReportProblem): boolean {
  if (raw["clientCert"] !== undefined || raw["clientKey"] !== undefined) {
    tell("this server needs a client certificate, which is not supported; it is skipped", "clientCert");
    return false;
  }
  if (raw["sslVerify"] === false) tell("certificates are always verified here", "sslVerify");
  for (const key of ["env", "headers"]) {
    if (isJsonObject(entry[key])) entry[key] = withoutRefs(entry[key], tell, key);
  }
  if (raw["auth"] === "oauth") entry["auth"] = { type: "oauth" };
  // These two are seconds; their namesakes that end in Ms are told apart by `import` itself.
  setTimeLimit(entry, "toolTimeout", seconds(raw["timeout"]));
  setTimeLimit(entry, "timeout", seconds(raw["connectTimeout"]));
  if (isJsonObject(raw["toolFilter"])) {
    allowOnly(entry, raw["toolFilter"]["include"]);
    if (Array.isArray(raw["toolFilter"]["exclude"])) entry["excludeTools"] = raw["toolFilter"]["exclude"];
  }
  return true;
}

function seconds(value: unknown): unknown {
  return typeof value === "number" ? value * 1000 : undefined;
}

/** A reference may be `{source: "env", id: "NAME"}`; those to a store of OpenClaw cannot be followed from outside. */
function withoutRefs(record: JsonObject, tell: ReportProblem, key: string): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(record)) {
    if (!isJsonObject(value)) kept[name] = value;
    else if (value["source"] === "env" && typeof value["id"] === "string") kept[name] = `\${${value["id"]}}`;
    else tell(`the value of ${name} is a secret that OpenClaw stores; set it again`, key, name);
  }
  return kept;
}
