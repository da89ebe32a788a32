/** Removes the containers of hubs that were killed, and nothing else. */
import { isJsonObject } from "../../../model/json.ts";
import { type ProcessTable, systemProcessTable } from "../../orphans/process-table.ts";
import { containerEngine, type ContainerEngine } from "./engine.ts";
import { sweepImageFolders } from "./image-folders.ts";
import { type HubNote, readNotes, removeNote } from "./hub-notes.ts";
import { homeHash } from "./labels.ts";
import { removeContainers } from "./live-containers.ts";

export interface ReapedContainer {
  readonly name: string;
  readonly serverId: string;
  readonly gone: boolean;
}

export interface ReapOptions {
  readonly env: NodeJS.ProcessEnv;
  warn(message: string): void;
  readonly table?: ProcessTable | null;
}

/** After this long nobody can be using what a note of another boot, container or machine speaks of. */
const FOREIGN_KEPT_MS = 30 * 24 * 3600 * 1000;

/**
 * At the start of a hub, when the processes that dead hubs left have ended: one of them may be about to start its
 * container. Starts no engine unless a dead hub left a note. Never rejects.
 */
export async function reapCages(home: string, { env, warn, table = systemProcessTable() }: ReapOptions): Promise<void> {
  await sweepImageFolders(home, table);
  for (const note of readNotes(home)) {
    if (table === null || mayLive(note, table)) {
      if (table?.place !== note.place && Date.now() - note.writtenAt > FOREIGN_KEPT_MS) removeNote(home, note);
      continue;
    }
    let allGone = true;
    for (const program of note.programs) allGone = (await reapOf(note.id, program, home, { env, warn })) && allGone;
    if (allGone) removeNote(home, note);
  }
}

/** Whether none is left at this engine. */
async function reapOf(hub: string, program: string, home: string, { env, warn }: ReapOptions): Promise<boolean> {
  try {
    const reaped = await reapContainers(await containerEngine({ program }, env), home, hub);
    for (const { serverId, gone } of reaped) {
      const end = gone ? "was removed" : "could not be removed";
      warn(`A container of "${serverId}" was left over from a hub that died; it ${end}.`);
    }
    return reaped.every(({ gone }) => gone);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    warn(`Containers that a hub left behind cannot be looked for: ${reason}`);
    return false;
  }
}

/**
 * A pid of another boot, container or machine says nothing about processes here: that hub counts as alive. After a
 * reboot no container runs any more; those of that boot were started with --rm.
 */
function mayLive({ pid, startTime, place }: HubNote, table: ProcessTable): boolean {
  return place !== table.place || table.find(pid)?.startTime === startTime;
}

export async function reapContainers(engine: ContainerEngine, home: string, hub: string): Promise<ReapedContainer[]> {
  const filters = ["--filter", `label=toolcrib.home=${homeHash(home)}`, "--filter", `label=toolcrib.hub=${hub}`];
  const { code, stdout, stderr } = await engine.run(["ps", "--all", "--quiet", "--no-trunc", ...filters]);
  if (code !== 0) throw new Error(stderr.trim());
  const ids = stdout.split("\n").filter((id) => /^[0-9a-f]+$/.test(id));
  const reaped: ReapedContainer[] = [];
  for (const id of ids) {
    const { name, serverId } = await describe(engine, id);
    reaped.push({ name, serverId, gone: await removeContainers(engine, [id]) });
  }
  return reaped;
}

async function describe(engine: ContainerEngine, id: string): Promise<{ name: string; serverId: string }> {
  const { stdout } = await engine.run(["inspect", "--format", "{{json .Name}} {{json .Config.Labels}}", id]);
  const [, name = id, labels = "{}"] = /^"\/?([^"]*)" (\{.*\})/.exec(stdout.trim()) ?? [];
  const parsed: unknown = JSON.parse(labels);
  const serverId = isJsonObject(parsed) ? parsed["toolcrib.server"] : undefined;
  return { name, serverId: typeof serverId === "string" ? serverId : name };
}
