/** Folders in which skills usually are: those of agent clients, and those of the folder that the hub works in. */
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { AgentClient, ClientEnvironment } from "../../clients/agent-client.ts";
import { CLIENTS } from "../../clients/clients.ts";
import type { SkillPlace } from "../../contract/skill-schemas.ts";

export function skillPlaces(place: ClientEnvironment): SkillPlace[] {
  const { home, projectDir } = place;
  const known: [path: string, label: string][] = [
    [join(home, ".openclaw", "workspace", "skills"), "OpenClaw, workspace"],
    [join(home, ".openclaw", "skills"), "OpenClaw"],
    [join(home, ".claude", "skills"), "Claude Code"],
    [join(home, ".agents", "skills"), "Agent Skills"],
    ...CLIENTS.flatMap((client) =>
      client.skillDirs(place, "user").map((path): [string, string] => [path, (ownerOf(path, place) ?? client).name]),
    ),
    [join(projectDir, "skills"), "skills of this folder"],
    [join(projectDir, ".claude", "skills"), "Claude Code, this folder"],
  ];
  const byPath = new Map<string, string>();
  for (const [path, label] of known) if (!byPath.has(path)) byPath.set(path, label);
  return [...byPath].map(([path, label]) => ({ path, label, exists: existsSync(path) }));
}

/** Several clients read one folder: the one that it is called after, such as `.codex`, comes first. */
function ownerOf(path: string, place: ClientEnvironment): AgentClient | undefined {
  const folder = basename(dirname(path)).replace(/^\./, "");
  return CLIENTS.find(
    (client) => `${client.id}-`.startsWith(`${folder}-`) && client.skillDirs(place, "user").includes(path),
  );
}
