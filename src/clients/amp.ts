import type { AgentClient, ClientPlace } from "./client.ts";
import { fromEnv, inConfigHome, inProject, projectFiles, skillFolders, userFiles } from "./place.ts";
import { allowOnly, readMapAt } from "./read-servers.ts";
import { addressEntry, commandEntry, isCommand } from "./written-entry.ts";

/** One key with a dot in it, as in the settings of VS Code. */
const CONTAINER = "amp.mcpServers";

export const amp: AgentClient = {
  id: "amp",
  name: "Amp",
  format: "jsonc",
  files: (place) => [
    ...userFiles(...settingsOfUser(place)),
    // Servers of a project run only after the user has approved them.
    ...projectFiles(inProject(place, ".amp", "settings.json"), inProject(place, ".amp", "settings.jsonc")),
  ],
  traces: (place) => [inConfigHome(place, "amp")],
  pathOf: (serverId) => [CONTAINER, serverId],
  read: (document) =>
    readMapAt(document, [CONTAINER], { adapt: (entry, raw) => allowOnly(entry, raw["includeTools"]) }),
  write: (_serverId, server) => (isCommand(server) ? commandEntry(server) : addressEntry(server)),
  envReference: (name) => `\${${name}}`,
  skillDirs(place, scope) {
    const others = skillFolders(place, scope, {
      user: [".claude/skills"],
      project: [".agents/skills", ".claude/skills"],
    });
    if (scope === "project") return others;
    return [inConfigHome(place, "agents", "skills"), inConfigHome(place, "amp", "skills"), ...others];
  },
  afterChange: "Start Amp again.",
};

function settingsOfUser(place: ClientPlace): string[] {
  const named = fromEnv(place, "AMP_SETTINGS_FILE");
  const usual = [inConfigHome(place, "amp", "settings.json"), inConfigHome(place, "amp", "settings.jsonc")];
  return named === undefined ? usual : [named, ...usual];
}
