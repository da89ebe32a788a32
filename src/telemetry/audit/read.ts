/** Reads the log back: all chains merged into one sequence by the time at which things ended. */
import { createReadStream } from "node:fs";
import { type AuditFile, listFiles } from "./files.ts";
import { type AuditFilter, matchesFilter } from "./filter.ts";
import { parseLine } from "./line.ts";
import { isStored, type StoredRecord, WITHHELD } from "./record.ts";
import type { KeptLog } from "./whole-log.ts";

/** A file is named a moment after its first record ended. */
const SLACK_MS = 1000;

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
export function endOf({ time, durationMs }: StoredRecord): number {
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

/** Whole lines, split at newline bytes alone: JSON text may hold other characters that count as line ends elsewhere. */
async function* linesOf({ name, path, size }: AuditFile, kept: KeptLog | undefined): AsyncGenerator<string> {
  if (size === 0) return;
  let rest = Buffer.alloc(0);
  try {
    for await (const chunk of createReadStream(path, { end: size - 1 })) {
      // Without an encoding a stream of a file gives Buffers.
      const bytes = Buffer.concat([rest, chunk as Buffer]);
      let from = 0;
      for (let end = bytes.indexOf(10, from); end !== -1; end = bytes.indexOf(10, from)) {
        yield bytes.toString("utf8", from, end);
        from = end + 1;
      }
      rest = bytes.subarray(from);
    }
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    // In the store, now or from the beginning; or another process has pruned it since it was listed.
    yield* (await kept?.linesOf(name)) ?? [];
  }
}
