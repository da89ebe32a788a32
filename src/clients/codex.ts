/** Codex: TOML with its own keys. Its CLI, extension and app share the file. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment } from "./agent-client.ts";
import { below, filesAt, fromEnv, inHome, skillsAt } from "./client-paths.ts";
import {
  addIfMissing,
  allowOnly,
  commandEntryWithCwd,
  isCommand,
  objectAt,
  readMapAt,
  type ReportProblem,
  secondsToMs,
  setTimeLimit,
  someOf,
} from "./server-entries.ts";

export const codex: AgentClient = {
  id: "codex",
  name: "Codex CLI",
  saysName: /^codex/i,
  toolNames: { prefix: (entry) => `mcp__${entry}__` },
  bearerVariable: "bearer_token_env_var",
  reducesEnvironment: true,
  format: "toml",
  // Codex reads the project's file only in folders that the user trusts.
  files: filesAt({ user: [below(home, "config.toml")], project: [".codex/config.toml"] }),
  traces: (machine) => [home(machine)],
  pathOf: (serverId) => ["mcp_servers", serverId],
  read: (document) => readMapAt(document, ["mcp_servers"], { adapt }),
  write(_serverId, server) {
    if (isCommand(server)) {
      const { envNames = [], startsHub = false } = server;
      return {
        ...commandEntryWithCwd(server),
        ...(envNames.length === 0 ? {} : { env_vars: [...envNames] }),
        // Codex waits a second for others, and then begins without their tools.
        ...(startsHub ? { required: true } : {}),
      };
    }
    if (server.transport === "sse") return undefined;
    return { url: server.url, ...someOf("http_headers", server.headers) };
  },
  skillDirs: skillsAt({ user: [".agents/skills", below(home, "skills")], project: [".agents/skills"] }),
  afterChange: "Start a new Codex session; restart the extension and the app.",
};

function home(machine: ClientEnvironment): string {
  return fromEnv(machine, "CODEX_HOME") ?? inHome(machine, ".codex");
}

function adapt(entry: JsonObject, raw: JsonObject, tell: ReportProblem): void {
  // Codex uses http_headers and ignores `headers`.
  delete entry["headers"];
  if (isJsonObject(raw["http_headers"])) entry["headers"] = raw["http_headers"];
  for (const [header, variable] of Object.entries(objectAt(raw, "env_http_headers"))) {
    if (typeof variable === "string") addIfMissing(entry, "headers", header, `\${${variable}}`);
  }
  const bearer = raw["bearer_token_env_var"];
  if (typeof bearer === "string") addIfMissing(entry, "headers", "Authorization", `Bearer \${${bearer}}`);
  forwardVariables(entry, raw["env_vars"], tell);

  setTimeLimit(entry, "timeout", raw["startup_timeout_ms"]);
  setTimeLimit(entry, "timeout", secondsToMs(raw["startup_timeout_sec"]));
  setTimeLimit(entry, "toolTimeout", secondsToMs(raw["tool_timeout_sec"]));
  allowOnly(entry, raw["enabled_tools"]);
  if (Array.isArray(raw["disabled_tools"])) entry["disabledTools"] = raw["disabled_tools"];
}

/** Variables of the user that the server gets, by name; by default it gets few. */
function forwardVariables(entry: JsonObject, list: unknown, tell: ReportProblem): void {
  if (!Array.isArray(list)) return;
  for (const [index, item] of list.entries()) {
    const name: unknown = isJsonObject(item) ? item["name"] : item;
    if (typeof name !== "string") continue;
    if (isJsonObject(item) && item["source"] === "remote") {
      tell("a variable of another machine cannot be forwarded", "env_vars", index);
    } else addIfMissing(entry, "env", name, `\${${name}}`);
  }
}
