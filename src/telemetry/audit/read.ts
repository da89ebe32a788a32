/** Reads the log back: all chains merged into one sequence by the time at which things ended. */
import { setImmediate as turn } from "node:timers/promises";
import { ToolcribError } from "../../model/errors.ts";
import { type AuditFile, type KeptLog, listFiles, readLines } from "./files.ts";
import { parseLine } from "./line.ts";
import { isStored, type StoredRecord, WITHHELD } from "./record.ts";

/** A file is named a moment after its first record ended. */
const SLACK_MS = 1000;
/** How much of a file is read in one turn of the event loop. */
const CHUNK = 1024 * 1024;

export interface AuditEntry {
  readonly file: string;
  readonly chain: string;
  readonly record: StoredRecord;
}

/**
 * Within a chain the order is that of the chain. What is no record, such as the torn last line of a process that was
 * killed, is passed over; `verifyAudit` is the one that judges. Only as many files are open as chains overlap in time.
 *
 * @param files What to read of which files, as `listFiles` or `listLog` gave them; by default all in the folder now.
 * @param kept Has the files that are not in the folder.
 */
export async function* readAudit(
  dir: string,
  filter: AuditFilter = {},
  files: readonly AuditFile[] = listFiles(dir),
  kept?: KeptLog,
): AsyncGenerator<AuditEntry> {
  const waiting = chainReaders(
    files.filter((file) => mayMatch(file, filter)),
    kept,
  );
  const open: ChainReader[] = [];
  for (;;) {
    let next = earliest(open);
    for (let late = waiting[0]; late !== undefined; late = waiting[0]) {
      if (next !== undefined && late.start > next.endedAt + SLACK_MS) break;
      waiting.shift();
      if (await late.advance()) open.push(late);
      next = earliest(open);
    }
    if (next?.entry === undefined) return;
    if (matchesFilter(next.entry.record, filter)) yield next.entry;
    if (!(await next.advance())) open.splice(open.indexOf(next), 1);
  }
}

/** A call is recorded when it ends. */
function endOf({ time, durationMs }: StoredRecord): number {
  return Date.parse(time) + (durationMs ?? 0);
}

/** By the file's age alone. Nothing is said of `until`: a call that began in time may have ended in any later file. */
function mayMatch(file: AuditFile, { since }: AuditFilter): boolean {
  return since === undefined || file.modified >= since - SLACK_MS;
}

class ChainReader {
  readonly start: number;
  endedAt = Number.NEGATIVE_INFINITY;
  entry: AuditEntry | undefined;
  readonly #records: AsyncGenerator<AuditEntry>;

  constructor(files: readonly AuditFile[], kept: KeptLog | undefined) {
    this.start = files[0]?.start ?? 0;
    this.#records = recordsOf(files, kept);
  }

  /** False at the end. */
  async advance(): Promise<boolean> {
    const { value, done } = await this.#records.next();
    if (done === true) return false;
    this.entry = value;
    // A clock that was set back does not change the order of a chain.
    this.endedAt = Math.max(this.endedAt, endOf(value.record));
    return true;
  }
}

function chainReaders(files: readonly AuditFile[], kept: KeptLog | undefined): ChainReader[] {
  const byChain = Map.groupBy(files, (file) => file.chain);
  return [...byChain.values()].map((each) => new ChainReader(each, kept)).toSorted((a, b) => a.start - b.start);
}

function earliest(readers: readonly ChainReader[]): ChainReader | undefined {
  let found: ChainReader | undefined;
  for (const reader of readers) if (found === undefined || reader.endedAt < found.endedAt) found = reader;
  return found;
}

/** Calls that began and did not end come last: as far as the chain knows, they ended with it. */
async function* recordsOf(files: readonly AuditFile[], kept: KeptLog | undefined): AsyncGenerator<AuditEntry> {
  const begun = new Map<string | undefined, AuditEntry>();
  for (const file of files) {
    for await (const line of linesOf(file, kept)) {
      const record = parseLine(line);
      if (record === undefined || !isStored(record)) continue;
      const entry = { file: file.name, chain: file.chain, record };
      if (record.type === "start") begun.set(record.callId, entry);
      else yield entry;
      if (record.type === "call" || record.event === WITHHELD) begun.delete(record.callId);
    }
  }
  for (const entry of begun.values()) yield { ...entry, record: { ...entry.record, outcome: "unfinished" } };
}

async function* linesOf({ name, path, size }: AuditFile, kept: KeptLog | undefined): AsyncGenerator<string> {
  let [from, count] = [0, 0];
  while (from < size) {
    const { lines, bytes } = readLines(path, from, CHUNK, size);
    if (bytes === 0) break;
    yield* lines;
    from += bytes;
    count += lines.length;
    await turn();
  }
  // In the store, from the beginning or from here on; or another process has pruned it since it was listed.
  if (from < size) yield* ((await kept?.linesOf(name)) ?? []).slice(count);
}

/** Which records somebody wants to see. */
export interface AuditFilter {
  /** Milliseconds since 1970, compared with the time at which a call began. */
  readonly since?: number;
  readonly until?: number;
  /** On public names. */
  readonly tool?: (name: string) => boolean;
  /** The beginning of a session's id is enough. */
  readonly session?: string;
  readonly server?: string;
  /** The name of the program that called. */
  readonly client?: string;
  /** Only what policy or the guard refused. */
  readonly denied?: boolean;
}

export function matchesFilter(record: StoredRecord, filter: AuditFilter): boolean {
  const time = Date.parse(record.time);
  if (filter.since !== undefined && time < filter.since) return false;
  if (filter.until !== undefined && time > filter.until) return false;
  if (filter.tool !== undefined && (record.name === undefined || !filter.tool(record.name))) return false;
  if (filter.session !== undefined && record.session?.startsWith(filter.session) !== true) return false;
  if (filter.server !== undefined && record.origin?.source !== filter.server) return false;
  if (filter.client !== undefined && record.client?.name !== filter.client) return false;
  return filter.denied !== true || isRefusal(record);
}

export function isRefusal({ decision, outcome, answer }: StoredRecord): boolean {
  if (decision === "deny" || outcome === "denied" || outcome === "blocked") return true;
  return answer === "no" || answer === "timeout";
}

/** What is added to the log from some moment on, for following it. */
export class AuditTail {
  readonly #dir: string;
  /** By file: everything before this byte has been taken up. */
  readonly #offsets = new Map<string, number>();

  /** @param from The files as they were listed before; what they gained since then is the first thing found. */
  constructor(dir: string, from: readonly AuditFile[]) {
    this.#dir = dir;
    for (const { name, path, size } of from) {
      // Without a last line that was only half written when the file was listed.
      const start = Math.max(0, size - CHUNK);
      this.#offsets.set(name, start + readLines(path, start, CHUNK, size).bytes);
    }
  }

  /** The records written since the last time, in the order in which they ended. */
  poll(): AuditEntry[] {
    const files = listFiles(this.#dir);
    const found = files.flatMap((file) => this.#read(file));
    const names = new Set(files.map((file) => file.name));
    for (const name of this.#offsets.keys()) if (!names.has(name)) this.#offsets.delete(name);
    return found.toSorted((a, b) => endOf(a.record) - endOf(b.record));
  }

  #read(file: AuditFile): AuditEntry[] {
    const found: AuditEntry[] = [];
    let offset = this.#offsets.get(file.name) ?? 0;
    while (offset < file.size) {
      const { lines, bytes } = readLines(file.path, offset, CHUNK);
      // The rest of the line is still to come.
      if (bytes === 0) break;
      for (const line of lines) {
        const record = parseLine(line);
        // A call in progress shows when it ends.
        if (record === undefined || !isStored(record) || record.type === "start") continue;
        found.push({ file: file.name, chain: file.chain, record });
      }
      offset += bytes;
    }
    this.#offsets.set(file.name, offset);
    return found;
  }
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Times as people give them, to `--since`, `--until` and a query: `90s`, `15m`, `2h`, `7d`, `2w` ago, or a date and time as ISO 8601 writes it; a date alone is local midnight. */
export function parseTime(flag: string, text: string, now: number): number {
  const [, amount, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  if (unit !== undefined) return now - Number(amount) * (UNITS[unit] ?? 0);
  const isDate = /^\d{4}-\d\d-\d\d$/.test(text);
  if (isDate || /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(text)) {
    const time = Date.parse(isDate ? `${text}T00:00` : text);
    if (!Number.isNaN(time)) return time;
  }
  throw new ToolcribError("invalid_arguments", `${flag} ${JSON.stringify(text)} is no time.`, {
    hint: "Give a span such as 15m, 2h or 7d, or a time such as 2026-11-15T09:30.",
  });
}
