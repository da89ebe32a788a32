/**
 * The containers that this process has running. Killing `podman run` leaves its container behind, so each is removed by
 * name: when its server ends, on the way out of the process, and, for a process that was killed outright, by the next
 * hub, which finds a note in `$TOOLCRIB_HOME/run/containers`.
 */
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { isJsonObject } from "../../model/json.ts";
import { type ProcessTable, systemProcessTable } from "../stdio/process-table.ts";
import { type ContainerEngine, containerEngine } from "./container-engine.ts";
import { sweepImageFolders } from "./container-image.ts";
import { realPath } from "./named-mounts.ts";

interface LiveContainer {
  readonly engine: ContainerEngine;
  readonly name: string;
  readonly home: string;
  /** Called if no note can be kept. */
  warn(message: string): void;
}

const REMOVE_TIMEOUT_MS = 20_000;
/** The exit of a process should not wait long; the note finds what is left. */
const EXIT_REMOVE_TIMEOUT_MS = 5000;

// One set for the process, because `exit` is an event of the process.
const liveContainers = new Set<LiveContainer>();
let identity: HubIdentity | undefined;

export function thisHub(): HubIdentity {
  return (identity ??= hubIdentity());
}

/**
 * To be called before the container is started. The returned function removes it, running or not, and never rejects.
 * It may be called again.
 */
export function trackContainer(container: LiveContainer): () => Promise<void> {
  const { engine, name, home, warn } = container;
  try {
    const used = [...liveContainers, container].filter((each) => each.home === home).map((each) => each.engine.program);
    writeNote(home, { ...thisHub(), programs: [...new Set(used)] });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    warn(`No note of containers can be kept, so they would outlive a hub that is killed: ${reason}`);
  }
  if (liveContainers.size === 0) process.on("exit", removeAtExit);
  liveContainers.add(container);
  let removing: Promise<void> | undefined;
  return () => {
    removing ??= removeContainers(engine, [name]).then((gone) => {
      removing = undefined;
      // A container that could not be removed stays noted: the next start tries again.
      if (gone) release(container);
    });
    return removing;
  };
}

function release(container: LiveContainer): void {
  if (!liveContainers.delete(container)) return;
  if (liveContainers.size === 0) process.off("exit", removeAtExit);
  const others = [...liveContainers].some(({ home }) => home === container.home);
  if (!others) removeNote(container.home, thisHub());
}

/** Asks it to end, and ends it after a moment. Never rejects. */
export async function stopContainer(engine: ContainerEngine, name: string): Promise<void> {
  // Many programs do not hear SIGTERM as the first process of a container.
  await engine.run(["stop", "-t", "1", name], { timeoutMs: REMOVE_TIMEOUT_MS }).catch(() => undefined);
}

/** Whether they are gone. Those that are gone already do not count as a failure. Never rejects. */
async function removeContainers(engine: ContainerEngine, names: readonly string[]): Promise<boolean> {
  try {
    const { code, stderr } = await engine.run(removal(engine, names), { timeoutMs: REMOVE_TIMEOUT_MS });
    return code === 0 || /no such container/i.test(stderr);
  } catch {
    return false;
  }
}

/** docker kills at once and knows no `-t`. */
function removal({ kind }: ContainerEngine, names: readonly string[]): string[] {
  return kind === "podman" ? ["rm", "-f", "--ignore", "-t", "0", ...names] : ["rm", "-f", ...names];
}

function removeAtExit(): void {
  const byProgram = Map.groupBy(liveContainers, ({ engine }) => engine.program);
  for (const [program, containers] of byProgram) {
    const [first] = containers;
    if (first === undefined) continue;
    const args = removal(
      first.engine,
      containers.map(({ name }) => name),
    );
    spawnSync(program, args, { env: first.engine.env, stdio: "ignore", timeout: EXIT_REMOVE_TIMEOUT_MS });
  }
}

interface ReapedContainer {
  readonly name: string;
  readonly serverId: string;
  readonly gone: boolean;
}

interface ReapOptions {
  readonly env: NodeJS.ProcessEnv;
  warn(message: string): void;
  readonly table?: ProcessTable | null;
}

/** After this long the containers of a note of another boot, container or machine cannot be in use. */
const MAX_FOREIGN_AGE_MS = 30 * 24 * 3600 * 1000;

/**
 * At the start of a hub, when the processes that dead hubs left have ended: one of them may be about to start its
 * container. Starts no engine unless a dead hub left a note. Never rejects.
 */
export async function reapLeftContainers(
  home: string,
  { env, warn, table = systemProcessTable() }: ReapOptions,
): Promise<void> {
  await sweepImageFolders(home, table);
  for (const note of readNotes(home)) {
    if (table === null || mayBeAlive(note, table)) {
      if (table?.place !== note.place && Date.now() - note.writtenAt > MAX_FOREIGN_AGE_MS) removeNote(home, note);
      continue;
    }
    let allGone = true;
    for (const program of note.programs) allGone = (await reapEngine(note.id, program, home, { env, warn })) && allGone;
    if (allGone) removeNote(home, note);
  }
}

/** Whether none is left at this engine. */
async function reapEngine(hub: string, program: string, home: string, { env, warn }: ReapOptions): Promise<boolean> {
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
function mayBeAlive({ pid, startTime, place }: HubNote, table: ProcessTable): boolean {
  return place !== table.place || table.find(pid)?.startTime === startTime;
}

/** Removes the containers of hubs that were killed, and nothing else. */
async function reapContainers(engine: ContainerEngine, home: string, hub: string): Promise<ReapedContainer[]> {
  const filters = ["--filter", `label=toolcrib.home=${homeHash(home)}`, "--filter", `label=toolcrib.hub=${hub}`];
  const { code, stdout, stderr } = await engine.run(["ps", "--all", "--quiet", "--no-trunc", ...filters]);
  if (code !== 0) throw new Error(stderr.trim());
  const ids = stdout.split("\n").filter((id) => /^[0-9a-f]+$/.test(id));
  const reaped: ReapedContainer[] = [];
  for (const id of ids) {
    const { name, serverId } = await describeContainer(engine, id);
    reaped.push({ name, serverId, gone: await removeContainers(engine, [id]) });
  }
  return reaped;
}

async function describeContainer(engine: ContainerEngine, id: string): Promise<{ name: string; serverId: string }> {
  const { stdout } = await engine.run(["inspect", "--format", "{{json .Name}} {{json .Config.Labels}}", id]);
  const [, name = id, labels = "{}"] = /^"\/?([^"]*)" (\{.*\})/.exec(stdout.trim()) ?? [];
  const parsed: unknown = JSON.parse(labels);
  const serverId = isJsonObject(parsed) ? parsed["toolcrib.server"] : undefined;
  return { name, serverId: typeof serverId === "string" ? serverId : name };
}

const NoteSchema = z.object({
  pid: z.number(),
  startTime: z.string(),
  /** The boot and pid namespace in which the pid means something. */
  place: z.string(),
  /** The engines' programs. */
  programs: z.array(z.string()),
});

interface HubNote extends z.output<typeof NoteSchema> {
  readonly id: string;
  /** When it was last written. */
  readonly writtenAt: number;
}

/** Names this process for good: a pid alone may come back. */
type HubIdentity = Pick<HubNote, "id" | "pid" | "startTime" | "place">;

/**
 * Notes of hubs that have containers running: which process it is, and the engines that it used. A hub without
 * containers writes none, so that the next one need not ask an engine anything.
 */
export function writeNote(home: string, note: Omit<HubNote, "writtenAt">): void {
  const dir = notesFolder(home);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  // A folder that was there before may be open to others, and a forged note could name a program.
  chmodSync(dir, 0o700);
  writeFileSync(noteFile(home, note), JSON.stringify(note), { mode: 0o600 });
}

function removeNote(home: string, mark: Pick<HubIdentity, "id">): void {
  rmSync(noteFile(home, mark), { force: true });
}

/** Only those that this user wrote. */
export function readNotes(home: string): HubNote[] {
  const dir = notesFolder(home);
  let names: string[];
  try {
    names = readdirSync(dir);
  } catch {
    return [];
  }
  return names
    .filter((name) => /^[0-9a-f]{16}\.json$/.test(name))
    .map((name) => readNote(join(dir, name), name.slice(0, 16)))
    .filter((note) => note !== undefined);
}

function readNote(file: string, id: string): HubNote | undefined {
  try {
    const uid = process.getuid?.();
    const { uid: owner, mtimeMs: writtenAt } = statSync(file);
    if (uid !== undefined && owner !== uid) return undefined;
    return { ...NoteSchema.parse(JSON.parse(readFileSync(file, "utf8"))), id, writtenAt };
  } catch {
    return undefined;
  }
}

function notesFolder(home: string): string {
  return join(home, "run", "containers");
}

function noteFile(home: string, { id }: Pick<HubIdentity, "id">): string {
  return join(notesFolder(home), `${id}.json`);
}

export interface ContainerLabels {
  readonly "toolcrib.server": string;
  /** One hub process; see HubIdentity. */
  readonly "toolcrib.hub": string;
  readonly "toolcrib.pid": string;
  /** A hash of the hub's home: another home's containers are not ours to touch. */
  readonly "toolcrib.home": string;
}

function hubIdentity(): HubIdentity {
  const table = systemProcessTable();
  const pid = process.pid;
  const startTime = table?.find(pid)?.startTime ?? "";
  const place = table?.place ?? "";
  const id = createHash("sha256").update(`${place}\n${pid}\n${startTime}`).digest("hex").slice(0, 16);
  return { id, pid, startTime, place };
}

/** Identifies the containers of this home. */
export function containerLabels(serverId: string, home: string, mark: HubIdentity): ContainerLabels {
  return {
    "toolcrib.server": serverId,
    "toolcrib.hub": mark.id,
    "toolcrib.pid": String(mark.pid),
    "toolcrib.home": homeHash(home),
  };
}

function homeHash(home: string): string {
  return createHash("sha256").update(realPath(home)).digest("hex").slice(0, 16);
}

/** For people who look at a list of containers. */
export function containerName(serverId: string): string {
  const plain = serverId.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `toolcrib-${plain.replaceAll(/^-|-$/g, "").slice(0, 40) || "server"}-${randomBytes(5).toString("hex")}`;
}
