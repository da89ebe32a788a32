/** Ends the children of dead hubs, and nothing else. */
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { survivorsOf } from "./identify.ts";
import type { ProcessTable } from "./process-table.ts";
import { type ChildRecord, type PidRecord, parseRecord } from "./record.ts";

export interface ReapedOrphan {
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
/** A record from another boot, container or machine is left alone; after this long nobody can be using it. */
const FOREIGN_KEPT_MS = 30 * 24 * 3600 * 1000;
const DRAFT_KEPT_MS = 60_000;

export async function reap(dir: string, table: ProcessTable): Promise<ReapedOrphan[]> {
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
    if (age > DRAFT_KEPT_MS) await rm(path, { force: true });
    return [];
  }
  // A record that others could have written could aim our signals at anything of ours.
  const uid = process.getuid?.();
  if (uid !== undefined && facts.uid !== uid) return [];
  const record = parseRecord(await readFile(path, "utf8"));
  if (record !== null && record.place !== table.place) {
    if (age > FOREIGN_KEPT_MS) await rm(path, { force: true });
    return [];
  }
  if (record !== null && ownerLives(record, table)) return [];
  const reaped = await Promise.all((record?.children ?? []).map((child) => endChild(child, table)));
  await rm(path, { force: true });
  return reaped.filter((orphan) => orphan !== null);
}

function ownerLives({ owner }: PidRecord, table: ProcessTable): boolean {
  return table.find(owner.pid)?.startTime === owner.startTime;
}

async function endChild(child: ChildRecord, table: ProcessTable): Promise<ReapedOrphan | null> {
  const found = survivorsOf(child, table);
  if (found === null || found.pgid === table.find(process.pid)?.pgid) return null;
  // Asked anew before each signal: what was ours a moment ago may be gone and its pid given away.
  const signal = (name: NodeJS.Signals): void => {
    const now = survivorsOf(child, table);
    if (now === null) return;
    for (const target of now.pgid === null ? now.pids : [-now.pgid]) send(target, name);
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
    if (found.pgid !== null && table.find(child.pid) === null) send(-found.pgid, "SIGKILL");
    ended = await gone(KILL_WAIT_MS);
  }
  return { serverId: child.serverId, pid: child.pid, program: child.program, gone: ended };
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone already, or not ours to signal.
  }
}
