import type { AgentClient, ClientPlace, ClientRead } from "./client.ts";
import { fromEnv, inAppSupport, inProject, pathsOf, projectFiles, skillFolders, userFiles } from "./place.ts";
import { envColon, readMapAt } from "./read-servers.ts";
import { addressEntry, commandEntryWithCwd, isCommand } from "./written-entry.ts";
import { vscodeCage } from "./vscode-cage.ts";

export const vscode: AgentClient = {
  id: "vscode",
  name: "VS Code",
  format: "jsonc",
  files: (place) => [
    ...userFiles(...userFolders(place).map((folder) => pathsOf(place).join(folder, "mcp.json"))),
    ...projectFiles(inProject(place, ".vscode", "mcp.json")),
  ],
  traces: userFolders,
  pathOf: (serverId) => ["servers", serverId],
  read: readVscode,
  write(_serverId, server) {
    if (isCommand(server)) return { type: "stdio", ...commandEntryWithCwd(server) };
    return { type: server.transport, ...addressEntry(server) };
  },
  envReference: (name) => `\${env:${name}}`,
  skillDirs: (place, scope) =>
    skillFolders(place, scope, {
      user: [".copilot/skills", ".agents/skills", ".claude/skills"],
      project: [".github/skills", ".agents/skills", ".claude/skills"],
    }),
  afterChange: "VS Code notices the change and asks whether to trust the server; otherwise reload its window.",
};

/** Where VS Code keeps what it and its extensions know of the user; the one in use first. */
export function userFolders(place: ClientPlace): string[] {
  const portable = fromEnv(place, "VSCODE_PORTABLE");
  const usual = ["Code", "Code - Insiders"].map((product) => inAppSupport(place, product, "User"));
  return portable === undefined ? usual : [pathsOf(place).join(portable, "user-data", "User"), ...usual];
}

const INPUT = /\$\{input:([^{}]{1,200})\}/g;

function readVscode(document: unknown): ClientRead {
  const told = new Set<string>();
  return readMapAt(document, ["servers"], {
    text: envColon,
    adapt(entry, raw, tell) {
      if (raw["sandboxEnabled"] === true) {
        const { sandbox, narrower } = vscodeCage(raw["sandbox"]);
        entry["sandbox"] = sandbox;
        tell(`VS Code's sandbox becomes bubblewrap here: ${narrower.join("; ")}`, "sandboxEnabled");
      }
      // VS Code tries Streamable HTTP and then SSE for it, which is what no type means here.
      if (entry["type"] === "http") delete entry["type"];
      for (const [, id = ""] of JSON.stringify(entry).matchAll(INPUT)) {
        if (told.has(id)) continue;
        told.add(id);
        tell(`VS Code asks for the input ${JSON.stringify(id)}; give its value by an environment variable`);
      }
      return true;
    },
  });
}
