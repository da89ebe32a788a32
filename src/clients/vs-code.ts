import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentClient, ClientEnvironment, ClientRead } from "./agent-client.ts";
import { fromEnv, inAppSupport, inProject, pathsOf, projectFiles, skillFolders, userFiles } from "./client-paths.ts";
import { addressEntry, commandEntryWithCwd, envColon, isCommand, readMapAt } from "./server-entries.ts";

const INPUT = /\$\{input:([^{}]{1,200})\}/g;
export const vscode: AgentClient = {
  id: "vscode",
  name: "VS Code",
  format: "jsonc",
  files: (machine) => [
    ...userFiles(...vscodeUserFolders(machine).map((folder) => pathsOf(machine).join(folder, "mcp.json"))),
    ...projectFiles(inProject(machine, ".vscode", "mcp.json")),
  ],
  traces: vscodeUserFolders,
  pathOf: (serverId) => ["servers", serverId],
  read: readVscode,
  write(_serverId, server) {
    if (isCommand(server)) return { type: "stdio", ...commandEntryWithCwd(server) };
    return { type: server.transport, ...addressEntry(server) };
  },
  envReference: (name) => `\${env:${name}}`,
  skillDirs: (machine, scope) =>
    skillFolders(machine, scope, {
      user: [".copilot/skills", ".agents/skills", ".claude/skills"],
      project: [".github/skills", ".agents/skills", ".claude/skills"],
    }),
  afterChange: "VS Code applies the change and asks whether to trust the server; otherwise reload its window.",
};

/** The user data folders of VS Code, the active one first. */
export function vscodeUserFolders(machine: ClientEnvironment): string[] {
  const portable = fromEnv(machine, "VSCODE_PORTABLE");
  const usual = ["Code", "Code - Insiders"].map((product) => inAppSupport(machine, product, "User"));
  return portable === undefined ? usual : [pathsOf(machine).join(portable, "user-data", "User"), ...usual];
}

function readVscode(document: unknown): ClientRead {
  const told = new Set<string>();
  return readMapAt(document, ["servers"], {
    text: envColon,
    adapt(entry, raw, tell) {
      if (raw["sandboxEnabled"] === true) {
        const { sandbox, narrower } = translateVscodeSandbox(raw["sandbox"]);
        entry["sandbox"] = sandbox;
        tell(`VS Code's sandbox becomes bubblewrap here: ${narrower.join("; ")}`, "sandboxEnabled");
      }
      // VS Code tries Streamable HTTP and then SSE for it, which is what no type means here.
      if (entry["type"] === "http") delete entry["type"];
      for (const [, id = ""] of JSON.stringify(entry).matchAll(INPUT)) {
        if (told.has(id)) continue;
        told.add(id);
        tell(`VS Code asks for the input ${JSON.stringify(id)}; set its value with an environment variable`);
      }
      return true;
    },
  });
}

interface VscodeSandbox {
  /** The `sandbox` of the entry. */
  readonly sandbox: JsonObject;
  /** Allowed in VS Code and not here. */
  readonly narrower: readonly string[];
}

/** @param rules The entry's `sandbox`, which only counts with `sandboxEnabled`. */
export function translateVscodeSandbox(rules: unknown): VscodeSandbox {
  const { filesystem, network } = isJsonObject(rules) ? rules : {};
  const files = isJsonObject(filesystem) ? filesystem : {};
  const domains = textsOf(isJsonObject(network) ? network["allowedDomains"] : undefined);
  const denied = [...textsOf(files["denyRead"]), ...textsOf(files["denyWrite"])];
  const wanted = textsOf(files["allowWrite"]);
  // Patterns, and paths with denied parts, cannot be expressed here.
  const write = wanted.filter((path) => !/[*?[]/.test(path) && !denied.some((each) => isAtOrIn(each, path)));
  return {
    sandbox: { kind: "bubblewrap", ...(write.length === 0 ? {} : { write }) },
    narrower: [
      "it reads only the system and what sandbox.read names",
      ...(write.length === wanted.length ? [] : ["paths with patterns or exceptions may not be written"]),
      ...(domains.length === 0 ? [] : ["it has no network access, because single domains cannot be allowed"]),
    ],
  };
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

function isAtOrIn(path: string, folder: string): boolean {
  const bare = folder.replace(/[/\\]+$/, "");
  return path === bare || path.startsWith(`${bare}/`) || path.startsWith(`${bare}\\`);
}
