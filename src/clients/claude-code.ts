/**
 * Claude Code has three scopes in two files: servers of the user and, by project folder, servers that the user has in
 * that project alone (`projects.<folder>.mcpServers`) in ~/.claude.json, and servers of the project in its .mcp.json.
 */
import type { JsonObject } from "../model/json.ts";
import type { AgentClient, ClientFile, ClientEnvironment, ClientRead } from "./agent-client.ts";
import { below, filesAt, fromEnv, inHome, pathsOf, skillsAt } from "./client-paths.ts";
import {
  addressEntry,
  commandEntry,
  disable,
  type EntryRules,
  isCommand,
  objectAt,
  ServerCollector,
  valueAt,
} from "./server-entries.ts";

export const claudeCode: AgentClient = {
  id: "claude-code",
  name: "Claude Code",
  saysName: /^claude-code/i,
  toolNames: { prefix: (entry) => `mcp__${entry}__` },
  format: "jsonc",
  files: (machine) => [
    ...filesAt({ user: [ownFile], project: [".mcp.json"] })(machine),
    { scope: "project", path: ownFile(machine), projectKey: projectKey(machine) },
  ],
  traces: (machine) => [configDir(machine), ownFile(machine)],
  pathOf: (serverId, file) => [...containerOf(file), serverId],
  read: readClaudeCode,
  write(_serverId, server) {
    if (!isCommand(server)) return { type: server.transport, ...addressEntry(server) };
    const entry = commandEntry(server);
    return entry === undefined ? undefined : { type: "stdio", ...entry };
  },
  envReference: (name) => `\${${name}}`,
  skillDirs: skillsAt({ user: [below(configDir, "skills")], project: [".claude/skills"] }),
  afterChange: "Start a new Claude Code session.",
};

function configDir(machine: ClientEnvironment): string {
  return fromEnv(machine, "CLAUDE_CONFIG_DIR") ?? inHome(machine, ".claude");
}

/** Beside ~/.claude, but inside the folder that CLAUDE_CONFIG_DIR names. */
function ownFile(machine: ClientEnvironment): string {
  const moved = fromEnv(machine, "CLAUDE_CONFIG_DIR");
  return moved === undefined ? inHome(machine, ".claude.json") : pathsOf(machine).join(moved, ".claude.json");
}

/** It writes folders with forward slashes on every system. */
function projectKey(machine: ClientEnvironment): string {
  return machine.platform === "win32" ? machine.projectDir.replaceAll("\\", "/") : machine.projectDir;
}

function containerOf(file: ClientFile): string[] {
  return file.projectKey === undefined ? ["mcpServers"] : ["projects", file.projectKey, "mcpServers"];
}

function readClaudeCode(document: unknown, file: ClientFile): ClientRead {
  const path = containerOf(file);
  const off = offSwitches(document, file);
  const rules: EntryRules = {
    timeout: "call-milliseconds",
    adapt(entry, raw, tell, id) {
      if (off.includes(id)) disable(entry);
      if (raw["headersHelper"] !== undefined) {
        tell("headersHelper, a program that returns headers, is not imported", "headersHelper");
      }
    },
  };
  return new ServerCollector(rules).addMap(valueAt(document, path), path).finish();
}

/** Disabled servers are in a list of the project, not marked in their entries. */
function offSwitches(document: unknown, file: ClientFile): readonly unknown[] {
  if (file.projectKey === undefined) return [];
  const project: JsonObject = objectAt(document, "projects", file.projectKey);
  return Array.isArray(project["disabledMcpServers"]) ? project["disabledMcpServers"] : [];
}
