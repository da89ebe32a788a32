/**
 * Pid records: how children are found again after the hub itself was killed outright. Each hub process keeps one file
 * in `$TOOLCRIB_HOME/run` that lists its children; the next hub ends the children of those that are dead.
 */
import { hash, randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type ProcessFacts, type ProcessTable, systemProcessTable } from "./process-table.ts";

export interface NewChild {
  readonly pid: number;
  readonly serverId: string;
  /** As it was started; what the process itself shows is added to it. */
  readonly command: string;
  readonly args: readonly string[];
  /** The value of MARK_VARIABLE that it was started with. */
  readonly mark?: string | undefined;
}

export class PidRecords {
  readonly #dir: string;
  readonly #name: string;
  #writes = 0;
  /** This process. */
  #owner: ProcessFacts | undefined;
  #file: string | undefined;
  readonly #table: ProcessTable | null;
  readonly #children = new Map<number, ChildRecord>();
  /** The end of the turn, when something was written in it; null otherwise. */
  #endOfTurn: NodeJS.Immediate | null = null;
  #unwritten = false;

  constructor(dir: string, table: ProcessTable | null = systemProcessTable()) {
    this.#dir = dir;
    // Several hubs may live in one process, and a pid may come back: the random part keeps their files apart.
    this.#name = `${process.pid}-${randomBytes(4).toString("hex")}`;
    this.#table = table;
  }

  /** Why children of a killed hub cannot be found again on this system, or null. */
  get unsupported(): string | null {
    if (this.#table !== null) return null;
    return `Servers left over from a killed hub are not found again on ${process.platform}.`;
  }

  /**
   * To be called in the same turn as spawn(): only a kill within that turn is missed. Never throws; the returned text says why a record could not be kept.
   */
  add(child: NewChild): string | null {
    const facts = this.#table?.find(child.pid) ?? null;
    if (facts === null) return null;
    const { pid, serverId, command, args, mark } = child;
    const { pgid, startTime } = facts;
    const words = commandWords(command, ...args, facts.command);
    this.#children.set(pid, { pid, pgid, startTime, serverId, program: basename(command), words, members: [], mark });
    return this.#save();
  }

  /** The programs of a server that run now. */
  pidsOf(serverId: string): number[] {
    return [...this.#children.values()].flatMap((child) => (child.serverId === serverId ? [child.pid] : []));
  }

  /** Looks at a child again once it is up: launchers have started what they launch and have changed their command line. */
  update(pid: number): string | null {
    const child = this.#children.get(pid);
    const facts = this.#table?.find(pid) ?? null;
    if (child === undefined || facts === null || this.#table === null) return null;
    const now = commandWords(facts.command);
    const words = {
      all: [...new Set([...child.words.all, ...now.all])],
      telling: [...new Set([...child.words.telling, ...now.telling])],
    };
    const members = this.#table.descendants(pid).map((member) => ({ pid: member.pid, startTime: member.startTime }));
    if (words.all.length === child.words.all.length && members.length === 0) return null;
    this.#children.set(pid, { ...child, words, members });
    return this.#save();
  }

  remove(pid: number): void {
    if (this.#children.delete(pid)) this.#save();
  }

  /** Removes this hub's own record. */
  close(): void {
    this.#children.clear();
    if (this.#endOfTurn !== null) clearImmediate(this.#endOfTurn);
    this.#write();
  }

  /** Ends what hubs that are dead by now left behind, and removes their records. Never rejects. */
  async reapOrphans(): Promise<ReapedOrphan[]> {
    return this.#table === null ? [] : reapRecords(this.#dir, this.#table);
  }

  /** At once, and if there is more in the same turn, all of that at its end: a hub may start thirty servers in one. */
  #save(): string | null {
    this.#unwritten = true;
    if (this.#endOfTurn !== null && this.#children.size > 0) return null;
    this.#endOfTurn ??= setImmediate(() => {
      this.#endOfTurn = null;
      if (this.#unwritten) this.#write();
    });
    return this.#write();
  }

  #write(): string | null {
    this.#unwritten = false;
    try {
      if (this.#children.size === 0) {
        this.#remove();
        return null;
      }
      const owner = (this.#owner ??= this.#table?.find(process.pid) ?? undefined);
      if (owner === undefined || this.#table === null) return "This process cannot be found in the process table.";
      const record: PidRecord = {
        version: 1,
        place: this.#table.place,
        owner: { pid: owner.pid, startTime: owner.startTime },
        children: [...this.#children.values()],
      };
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
      // A folder that was there before may be open to others, and a forged record could aim our signals.
      chmodSync(this.#dir, 0o700);
      // Under a new name each time: a file that takes the place of another is written to disk at once on many systems.
      const file = join(this.#dir, `${this.#name}-${++this.#writes}.json`);
      writeFileSync(`${file}.tmp`, JSON.stringify(record), { mode: 0o600 });
      renameSync(`${file}.tmp`, file);
      this.#remove();
      this.#file = file;
      return null;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return `No pid record can be kept in ${this.#dir}, so servers would outlive a hub that is killed: ${reason}`;
    }
  }

  #remove(): void {
    if (this.#file !== undefined) rmSync(this.#file, { force: true });
    this.#file = undefined;
  }
}

interface ReapedOrphan {
  readonly serverId: string;
  /** Of the process that was started as the server. */
  readonly pid: number;
  /** Name of the program, without its arguments. */
  readonly program: string;
  /** False if it is still there after SIGKILL. */
  readonly gone: boolean;
}

const TERM_WAIT_MS = 1500;
const KILL_WAIT_MS = 500;
const POLL_MS = 25;
/** A record from another boot, container or machine is left alone; after this long it cannot be in use. */
const MAX_FOREIGN_AGE_MS = 30 * 24 * 3600 * 1000;
const MAX_DRAFT_AGE_MS = 60_000;

/** Ends the children of dead hubs, and nothing else. */
async function reapRecords(dir: string, table: ProcessTable): Promise<ReapedOrphan[]> {
  const names = await readdir(dir).catch(() => []);
  const reaped = await Promise.all(names.map((name) => reapFile(join(dir, name), table).catch(() => [])));
  return reaped.flat();
}

async function reapFile(path: string, table: ProcessTable): Promise<ReapedOrphan[]> {
  const isDraft = path.endsWith(".json.tmp");
  if (!isDraft && !path.endsWith(".json")) return [];
  const facts = await stat(path);
  if (!facts.isFile()) return [];
  const age = Date.now() - facts.mtimeMs;
  if (isDraft) {
    if (age > MAX_DRAFT_AGE_MS) await rm(path, { force: true });
    return [];
  }
  // A record that others could have written could aim our signals at anything of ours.
  const uid = process.getuid?.();
  if (uid !== undefined && facts.uid !== uid) return [];
  const record = parseRecord(await readFile(path, "utf8"));
  if (record !== null && record.place !== table.place) {
    if (age > MAX_FOREIGN_AGE_MS) await rm(path, { force: true });
    return [];
  }
  if (record !== null && table.find(record.owner.pid)?.startTime === record.owner.startTime) return [];
  const reaped = await Promise.all((record?.children ?? []).map((child) => endOrphan(child, table)));
  await rm(path, { force: true });
  return reaped.filter((orphan) => orphan !== null);
}

async function endOrphan(child: ChildRecord, table: ProcessTable): Promise<ReapedOrphan | null> {
  const found = findSurvivors(child, table);
  if (found === null || found.pgid === table.find(process.pid)?.pgid) return null;
  // Checked again before each signal: the process may be gone and its pid reused.
  const signal = (name: NodeJS.Signals): void => {
    const now = findSurvivors(child, table);
    if (now === null) return;
    if (now.pgid !== null) sendSignal(-now.pgid, name);
    for (const pid of now.pids) sendSignal(pid, name);
  };
  const gone = async (waitMs: number): Promise<boolean> => {
    const members = (): number => found.pids.filter((pid) => table.find(pid) !== null).length + groupSize();
    const groupSize = (): number => (found.pgid === null ? 0 : table.group(found.pgid).length);
    for (let waited = 0; waited < waitMs && members() > 0; waited += POLL_MS) await sleep(POLL_MS);
    return members() === 0;
  };
  signal("SIGTERM");
  let ended = await gone(TERM_WAIT_MS);
  if (!ended) {
    // Where the leader died of SIGTERM, the rest of a group that was proven ours a moment ago still is.
    signal("SIGKILL");
    if (found.pgid !== null && table.find(child.pid) === null) sendSignal(-found.pgid, "SIGKILL");
    ended = await gone(KILL_WAIT_MS);
  }
  return { serverId: child.serverId, pid: child.pid, program: child.program, gone: ended };
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone already, or not ours to signal.
  }
}

/** To be ended: a whole group that is proven ours, and single processes, in it or not. */
interface Survivors {
  readonly pgid: number | null;
  readonly pids: readonly number[];
}

/** The living processes of a recorded child. When in doubt, none: an orphan left is better than a stranger killed. */
export function findSurvivors(child: ChildRecord, table: ProcessTable): Survivors | null {
  const marked = (child.mark === undefined ? [] : (table.marked().get(child.mark) ?? []))
    .map(({ pid }) => pid)
    .filter((pid) => pid !== process.pid);
  const leader = table.find(child.pid);
  if (leader !== null) {
    const ours =
      leader.startTime === child.startTime &&
      leader.pgid === child.pgid &&
      haveCommonWord(child.words.all, commandWords(leader.command).all);
    if (ours) return { pgid: child.pgid, pids: [...new Set([leader.pid, ...marked])] };
    return marked.length === 0 ? null : { pgid: null, pids: marked };
  }
  const group = table.group(child.pgid);
  const isKnown = (member: ProcessFacts): boolean =>
    marked.includes(member.pid) ||
    child.members.some(({ pid, startTime }) => member.pid === pid && member.startTime === startTime);
  if (group.some(isKnown)) return { pgid: child.pgid, pids: [...new Set([...group.map(({ pid }) => pid), ...marked])] };
  if (marked.length > 0) return { pgid: null, pids: marked };
  // The leader is gone and no known process is left. Its group id may have been reused, so each process must look ours.
  const likely = group.filter(
    (member) =>
      startedAfter(member, child) && haveCommonWord(child.words.telling, commandWords(member.command).telling),
  );
  return likely.length === 0 ? null : { pgid: null, pids: likely.map(({ pid }) => pid) };
}

function startedAfter(member: ProcessFacts, child: ChildRecord): boolean {
  const [started, leaderStarted] = [timeOf(member.startTime), timeOf(child.startTime)];
  return started !== null && leaderStarted !== null && started >= leaderStarted;
}

function timeOf(startTime: string): number | null {
  const time = /^\d+$/.test(startTime) ? Number(startTime) : Date.parse(startTime);
  return Number.isFinite(time) ? time : null;
}

/** To kill(), 0, 1 and negative numbers mean our own group, init, or everything. */
const PidSchema = z.int().min(2);
const ProcessMarkSchema = z.object({ pid: PidSchema, startTime: z.string() });

/** A command line as words, by which a process is known again after a launcher renamed or replaced itself. */
const CommandWordsSchema = z.object({
  /** Every word of it. */
  all: z.array(z.string()),
  /** Those that hardly another program has. */
  telling: z.array(z.string()),
});

const ChildRecordSchema = ProcessMarkSchema.extend({
  pgid: PidSchema,
  serverId: z.string(),
  /** Name of the program, for people. */
  program: z.string(),
  /** Of every command line that this process was seen with. */
  words: CommandWordsSchema,
  /** Other processes seen in its group: while one of them lives, the group id cannot have passed to a stranger. */
  members: z.array(ProcessMarkSchema),
  mark: z.string().min(16).optional(),
  // Always a group of the child's own; any other could belong to a stranger.
}).refine(({ pid, pgid }) => pid === pgid);

/** Which process wrote it, and which children it had. */
const PidRecordSchema = z.object({
  version: z.literal(1),
  place: z.string(),
  owner: ProcessMarkSchema,
  children: z.array(ChildRecordSchema),
});

export type ChildRecord = z.output<typeof ChildRecordSchema>;
type CommandWords = z.output<typeof CommandWordsSchema>;
type PidRecord = z.output<typeof PidRecordSchema>;

/** Null for anything that this version did not write. */
function parseRecord(text: string): PidRecord | null {
  try {
    return PidRecordSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Interpreters and launchers: half the processes of a machine have one of these in their command line. */
const COMMON_WORDS = new Set(
  "bash bin bun bunx cmd deno dist docker env exec home index.js local main.js node npm npx pnpm podman python python3 run server sh src start usr uv uvx yarn zsh".split(
    " ",
  ),
);

/** Hashed, because arguments may hold secrets and the words are written to disk. */
export function commandWords(...commands: readonly string[]): CommandWords {
  const all = new Set<string>();
  const telling = new Set<string>();
  for (const part of commands.flatMap((command) => command.split(/\s+/))) {
    for (const word of part.split(/[/\\=:]+/)) if (word.length > 1 && !word.startsWith("-")) all.add(digest(word));
    // Only the last part of a path: the folders above it are shared with strangers.
    const name = part.split(/[/\\]/).at(-1) ?? "";
    if (name.length > 3 && !name.startsWith("-") && !COMMON_WORDS.has(name)) telling.add(digest(name));
  }
  return { all: [...all], telling: [...telling] };
}

function haveCommonWord(left: readonly string[], right: readonly string[]): boolean {
  return left.some((word) => right.includes(word));
}

function digest(word: string): string {
  return hash("sha256", word).slice(0, 16);
}
