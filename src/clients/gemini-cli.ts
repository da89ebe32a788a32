import type { AgentClient, ClientPlace, ClientRead } from "./client.ts";
import { fromEnv, inHome, inProject, pathsOf, projectFiles, skillFolders, userFiles } from "./place.ts";
import { allowOnly, objectAt, readMapAt, switchOff } from "./read-servers.ts";
import { addressEntry, commandEntryWithCwd, isCommand, someOf } from "./written-entry.ts";

export const geminiCli: AgentClient = {
  id: "gemini-cli",
  name: "Gemini CLI",
  format: "jsonc",
  files: (place) => [
    ...userFiles(pathsOf(place).join(ownFolder(place), "settings.json")),
    ...projectFiles(inProject(place, ".gemini", "settings.json")),
  ],
  traces: (place) => [ownFolder(place)],
  pathOf: (serverId) => ["mcpServers", serverId],
  read: readGemini,
  // `url` is SSE there, `httpUrl` Streamable HTTP.
  write(_serverId, server) {
    if (isCommand(server)) return commandEntryWithCwd(server);
    if (server.transport === "sse") return addressEntry(server);
    return { httpUrl: server.url, ...someOf("headers", server.headers) };
  },
  envReference: (name) => `\${${name}}`,
  skillDirs(place, scope) {
    const own = scope === "user" ? [pathsOf(place).join(ownFolder(place), "skills")] : [];
    return [
      ...own,
      ...skillFolders(place, scope, { user: [".agents/skills"], project: [".gemini/skills", ".agents/skills"] }),
    ];
  },
  afterChange: "Start a new Gemini CLI session.",
};

function ownFolder(place: ClientPlace): string {
  const home = fromEnv(place, "GEMINI_CLI_HOME");
  return home === undefined ? inHome(place, ".gemini") : pathsOf(place).join(home, ".gemini");
}

function readGemini(document: unknown): ClientRead {
  const { allowed, excluded } = objectAt(document, "mcp");
  return readMapAt(document, ["mcpServers"], {
    keys: ["httpUrl", "excludeTools"],
    timeout: "call-milliseconds",
    // `$NAME` is a reference there as well; `$$` and `${` begin something else.
    text: (text) => text.replace(/(?<!\$)\$([A-Za-z_]\w*)/g, "${$1}"),
    adapt(entry, raw, _tell, id) {
      if (typeof entry["url"] === "string" && entry["httpUrl"] === undefined) entry["type"] ??= "sse";
      allowOnly(entry, raw["includeTools"]);
      const left = Array.isArray(allowed) && allowed.length > 0 && !allowed.includes(id);
      if (left || (Array.isArray(excluded) && excluded.includes(id))) switchOff(entry);
    },
  });
}
