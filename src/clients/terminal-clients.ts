/** Agents in a terminal whose files are variants of those of others: of Gemini CLI, OpenCode, Claude Code and Codex. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment } from "./agent-client.ts";
import { below, filesAt, fromEnv, inConfigHome, inHome, skillsAt } from "./client-paths.ts";
import { geminiRules, jsonClient, readOpencode, writeGemini, writeOpencode } from "./json-clients.ts";
import {
  addIfMissing,
  addressEntry,
  allowOnly,
  commandEntry,
  commandEntryWithCwd,
  disable,
  envColon,
  isCommand,
  readMapAt,
  secondsToMs,
  setTimeLimit,
} from "./server-entries.ts";

/** A fork of Gemini CLI that passes its whole environment on. */
export const qwenCode = jsonClient({
  id: "qwen-code",
  name: "Qwen Code",
  saysName: /^qwen/i,
  toolNames: { prefix: (entry) => `mcp__${entry}__` },
  files: filesAt({ user: [below(qwenFolder, "settings.json")], project: [".qwen/settings.json"] }),
  traces: (machine) => [qwenFolder(machine)],
  rules: geminiRules,
  write: writeGemini,
  envReference: (name) => `\${${name}}`,
  skillDirs: skillsAt({
    user: [below(qwenFolder, "skills"), ".agents/skills"],
    project: [".qwen/skills", ".agents/skills"],
  }),
  afterChange: "Start a new Qwen Code session.",
});

function qwenFolder(machine: ClientEnvironment): string {
  return fromEnv(machine, "QWEN_HOME") ?? inHome(machine, ".qwen");
}

const KILO_FILES = ["kilo.json", "kilo.jsonc", "opencode.json", "opencode.jsonc"];

/** A fork of OpenCode, with files of its own and of OpenCode. */
export const kilo: AgentClient = {
  id: "kilo",
  name: "Kilo",
  saysName: /^kilo/i,
  toolNames: { prefix: (entry) => `${entry}_` },
  format: "jsonc",
  files: filesAt({
    user: [
      (machine) => KILO_FILES.map((name) => inConfigHome(machine, "kilo", name)),
      (machine) => fromEnv(machine, "KILO_CONFIG"),
    ],
    project: [".kilo/kilo.json", ".kilo/kilo.jsonc", "kilo.json", "kilo.jsonc"],
  }),
  traces: (machine) => [inConfigHome(machine, "kilo")],
  pathOf: (serverId) => ["mcp", serverId],
  read: readOpencode,
  write: (_serverId, server) => writeOpencode(server),
  envReference: (name) => `{env:${name}}`,
  skillDirs: skillsAt({
    user: [(machine) => inConfigHome(machine, "kilo", "skills"), ".kilo/skills", ".claude/skills", ".agents/skills"],
    project: [".kilo/skills", ".claude/skills", ".agents/skills"],
  }),
  afterChange: "Restart Kilo.",
};

/** A reference to a variable that is not set keeps the server from starting. */
export const droid = jsonClient({
  id: "droid",
  name: "Droid",
  saysName: /^factory-cli/i,
  files: filesAt({ user: [".factory/mcp.json"], project: [".factory/mcp.json"] }),
  traces: (machine) => [inHome(machine, ".factory")],
  write(server) {
    if (!isCommand(server)) return { type: server.transport, ...addressEntry(server), disabled: false };
    const entry = commandEntry(server);
    return entry && { type: "stdio", ...entry, disabled: false };
  },
  envReference: (name) => `\${${name}}`,
  skillDirs: skillsAt({ user: [".factory/skills"], project: [".factory/skills"] }),
  afterChange: "Droid applies the change automatically; otherwise start a new session.",
});

/** Its file is plain JSON: it refuses comments. */
export const kimi = jsonClient({
  id: "kimi",
  name: "Kimi Code",
  saysName: /^kimi/i,
  bearerVariable: "bearerTokenEnvVar",
  files: filesAt({ user: [below(kimiFolder, "mcp.json")], project: [".kimi-code/mcp.json", ".mcp.json"] }),
  traces: (machine) => [kimiFolder(machine)],
  rules: {
    keys: ["disabledTools"],
    adapt(entry, raw) {
      if (raw["transport"] === "sse") entry["type"] = "sse";
      const bearer = raw["bearerTokenEnvVar"];
      if (typeof bearer === "string") addIfMissing(entry, "headers", "Authorization", `Bearer \${${bearer}}`);
      setTimeLimit(entry, "timeout", raw["startupTimeoutMs"]);
      setTimeLimit(entry, "toolTimeout", raw["toolTimeoutMs"]);
      allowOnly(entry, raw["enabledTools"]);
    },
  },
  write(server) {
    if (isCommand(server)) return commandEntryWithCwd(server);
    return { ...(server.transport === "sse" ? { transport: "sse" } : {}), ...addressEntry(server) };
  },
  skillDirs: skillsAt({
    user: [below(kimiFolder, "skills"), ".agents/skills"],
    project: [".kimi-code/skills", ".agents/skills"],
  }),
  afterChange: "Start a new Kimi Code session.",
});

function kimiFolder(machine: ClientEnvironment): string {
  return fromEnv(machine, "KIMI_CODE_HOME") ?? inHome(machine, ".kimi-code");
}

/** With the extension pi-mcp-adapter, which also reads files that it shares with other programs. */
export const pi = jsonClient({
  id: "pi",
  name: "pi",
  saysName: /^pi-mcp/i,
  toolNames: { prefix: (entry) => `${entry}_` },
  files: filesAt({
    user: [below(piFolder, "mcp.json"), (machine) => inConfigHome(machine, "mcp", "mcp.json"), ".agents/mcp.json"],
    project: [".pi/mcp.json", ".mcp.json"],
  }),
  traces: (machine) => [piFolder(machine)],
  rules: {
    text: (text) => envColon(text).replace(/\$env:([A-Za-z_]\w*)|\{env:([A-Za-z_]\w*)\}/g, "${$1$2}"),
    adapt(entry, raw) {
      const bearer = raw["bearerTokenEnv"];
      if (typeof bearer === "string") addIfMissing(entry, "headers", "Authorization", `Bearer \${${bearer}}`);
    },
  },
  write: (server) => (isCommand(server) ? commandEntryWithCwd(server) : addressEntry(server)),
  envReference: (name) => `\${${name}}`,
  skillDirs: skillsAt({
    user: [below(piFolder, "skills"), ".agents/skills"],
    project: [".pi/skills", ".agents/skills"],
  }),
  afterChange: "Run /reload in pi. It needs the extension pi-mcp-adapter.",
});

function piFolder(machine: ClientEnvironment): string {
  return fromEnv(machine, "PI_CODING_AGENT_DIR") ?? inHome(machine, ".pi", "agent");
}

/** The keys of Codex in part. It reads the files of Claude Code and Cursor as well. */
export const grok: AgentClient = {
  id: "grok",
  name: "Grok",
  saysName: /^grok/i,
  // It takes the first `__` for the end of its prefix, and drops tools that have another one.
  toolNames: { prefix: (entry) => `${entry}__`, separator: "-" },
  format: "toml",
  files: filesAt({ user: [below(grokFolder, "config.toml")], project: [".grok/config.toml"] }),
  traces: (machine) => [grokFolder(machine)],
  pathOf: (serverId) => ["mcp_servers", serverId],
  read(document) {
    const off: unknown = isJsonObject(document) ? document["disabled_mcp_servers"] : undefined;
    return readMapAt(document, ["mcp_servers"], {
      adapt(entry: JsonObject, raw: JsonObject, _tell, id) {
        setTimeLimit(entry, "timeout", secondsToMs(raw["startup_timeout_sec"]));
        setTimeLimit(entry, "toolTimeout", secondsToMs(raw["tool_timeout_sec"]));
        if (Array.isArray(off) && off.includes(id)) disable(entry);
      },
    });
  },
  write(_serverId, server) {
    if (!isCommand(server)) return { ...(server.transport === "sse" ? { type: "sse" } : {}), ...addressEntry(server) };
    return commandEntry(server);
  },
  envReference: (name) => `\${${name}}`,
  skillDirs: skillsAt({
    user: [below(grokFolder, "skills"), ".agents/skills", ".claude/skills"],
    project: [".grok/skills", ".agents/skills", ".claude/skills"],
  }),
  afterChange: "Grok applies the change to running sessions; otherwise start a new one.",
};

function grokFolder(machine: ClientEnvironment): string {
  return fromEnv(machine, "GROK_HOME") ?? inHome(machine, ".grok");
}
