/** Reads the log back as one list, wherever its files are: in the folder, or in a store. */
import { existsSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import type { AuditBlock, KeptLog } from "../../model/audit-blocks.ts";
import { ToolcribError } from "../../model/errors.ts";
import {
  type AuditFile,
  blockOf,
  headAt,
  lineSpans,
  linesOf,
  listFiles,
  listLog,
  type LogFile,
  readText,
} from "./files.ts";
import { parseLine } from "./line.ts";
import { isStored, type StoredRecord, UNFINISHED, WITHHELD } from "./record.ts";

/** A file may have been written to a moment before its last record says. */
const SLACK_MS = 1000;
/** How much of a file is read in one turn of the event loop. */
const CHUNK = 256 * 1024;

export interface AuditEntry {
  readonly file: string;
  readonly chain: string;
  readonly record: StoredRecord;
}

/** Which records somebody wants to see. */
export interface RecordFilter {
  /** ISO times, compared with the time at which a call began. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** False if no line in this text can be one of them. Quick. */
  mayContain(text: string): boolean;
  matches(record: StoredRecord): boolean;
}

/** The order of entries. */
export type EntryKey = readonly [time: string, file: string, seq: number];

export interface ReadOptions {
  /** `ended`: oldest first, by the time at which calls ended instead of began. */
  readonly order?: "newest" | "oldest" | "ended";
  readonly filter?: RecordFilter;
  /** Only what comes after this one, in another order than `ended`. */
  readonly after?: EntryKey | undefined;
  /** What to read of which files, as `listLog` returned them; by default all that are there now. */
  readonly files?: readonly LogFile[];
  /** Has the files that are not in the folder. */
  readonly kept?: KeptLog | undefined;
}

const EVERYTHING: RecordFilter = { mayContain: () => true, matches: () => true };

/**
 * A call shows as its end, or as unfinished if there is none. What is no record, such as the torn last line of a process that was
 * killed, is passed over; `verifyAudit` is the one that judges. Blocks are read one by one, and none that is not needed for what
 * is taken from the generator.
 */
export async function* readAudit(dir: string, options: ReadOptions = {}): AsyncGenerator<AuditEntry> {
  const { order = "ended", filter = EVERYTHING, after, kept } = options;
  // What was written before it has nothing that comes after it.
  const earliest = order === "newest" ? filter.since : (after?.[0] ?? filter.since);
  const files = options.files ?? (await listLog(dir, kept));
  const all = await blocksOf(files, earliest, kept);
  const entriesOf = entryReader(all, kept);
  const sign = order === "newest" ? -1 : 1;
  const isWanted = ({ firstTime, lastTime }: AuditBlock): boolean => {
    if ((filter.since ?? lastTime) > lastTime || (filter.until ?? firstTime) < firstTime) return false;
    if (after === undefined) return true;
    return order === "newest" ? firstTime <= after[0] : lastTime >= after[0];
  };
  const edges = edgesOf(all.filter(isWanted), order);
  const blocks = [...edges.keys()].toSorted((a, b) => sign * compareText(edges.get(a) ?? "", edges.get(b) ?? ""));
  const lastEnds = new Map<string, string>();
  let count = 0;
  let found: { readonly key: EntryKey; readonly entry: AuditEntry }[] = [];
  for (const [index, block] of blocks.entries()) {
    for (const entry of await entriesOf(block, filter)) {
      const [end, before = end] = [endTime(entry.record), lastEnds.get(entry.chain)];
      // A clock that was set back does not change the order of a chain.
      const last = end > before ? end : before;
      lastEnds.set(entry.chain, last);
      const key: EntryKey = order === "ended" ? [last, "", (count += 1)] : entryKey(entry);
      if (after === undefined || sign * compareKeys(key, after) > 0) found.push({ key, entry });
    }
    found.sort((a, b) => sign * compareKeys(a.key, b.key));
    const next = blocks[index + 1];
    const bound = next && edges.get(next);
    const end = bound === undefined ? -1 : found.findIndex(({ key: [time] }) => sign * compareText(time, bound) >= 0);
    const ready = end === -1 ? found : found.slice(0, end);
    found = end === -1 ? [] : found.slice(end);
    for (const { entry } of ready) yield entry;
    await turn();
  }
}

/** The time that nothing in a block can come before, in this order. */
function edgesOf(blocks: readonly PlacedBlock[], order: ReadOptions["order"]): ReadonlyMap<PlacedBlock, string> {
  if (order === "newest") return new Map(blocks.map((block) => [block, block.lastTime]));
  const edges = new Map(blocks.map((block) => [block, block.firstTime]));
  if (order === "oldest") return edges;
  // A long call begins before others that ended earlier; the blocks of a chain are read in their order all the same.
  const earliest = new Map<string, string>();
  for (const block of blocks.toReversed()) {
    const known = earliest.get(block.chain) ?? block.firstTime;
    const edge = known < block.firstTime ? known : block.firstTime;
    earliest.set(block.chain, edge);
    edges.set(block, edge);
  }
  return edges;
}

export function entryKey({ file, record }: AuditEntry): EntryKey {
  return [record.time, file, record.seq];
}

/** A call is recorded when it ends. */
function endTime({ time, durationMs }: StoredRecord): string {
  const end = new Date(Date.parse(time) + (durationMs ?? 0));
  return Number.isNaN(end.getTime()) ? time : end.toISOString();
}

function compareKeys(a: EntryKey, b: EntryKey): number {
  return compareText(a[0], b[0]) || compareText(a[1], b[1]) || a[2] - b[2];
}

function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** A block that may be in the folder, from this byte of its file on. */
interface PlacedBlock extends AuditBlock {
  readonly inFolder?: { readonly path: string; readonly from: number } | undefined;
}

/** In the order of their files, and of lines in a file. */
async function blocksOf(
  files: readonly LogFile[],
  since: string | undefined,
  kept: KeptLog | undefined,
): Promise<PlacedBlock[]> {
  const stored = Map.groupBy((await kept?.blocks()) ?? [], ({ file }) => file);
  // A time that is none leaves nothing out.
  const oldest = Date.parse(since ?? "") - SLACK_MS || Number.NEGATIVE_INFINITY;
  const blocks: PlacedBlock[] = [];
  for (const file of files) {
    const inFolder: PlacedBlock[] = [];
    const isRead = file.isInFolder && file.modified >= oldest;
    if (isRead) for await (const block of folderBlocks(file)) inFolder.push(block);
    // It may have gone into the store while it was read, or while others were.
    const later = isRead && !existsSync(file.path) ? await kept?.blocks(file.name) : undefined;
    blocks.push(...(later ?? (inFolder.length === 0 ? (stored.get(file.name) ?? []) : inFolder)));
  }
  return blocks;
}

async function* folderBlocks(file: AuditFile): AsyncGenerator<PlacedBlock> {
  const { path, size } = file;
  for (let [from, firstLine] = [0, 0]; from < size;) {
    const { text, bytes } = readText(path, from, CHUNK, size);
    if (bytes === 0) return;
    const { text: _text, ...block } = blockOf(file, firstLine, text);
    yield { ...block, bytes, inFolder: { path, from } };
    from += bytes;
    firstLine += block.lines;
    await turn();
  }
}

/** Returns what reads the entries of a block: in their order, and calls without an end last, because they outlived the others. */
function entryReader(blocks: readonly PlacedBlock[], kept: KeptLog | undefined) {
  const chains = Map.groupBy(blocks, ({ chain }) => chain);
  // Each block is read once for all that began before it.
  const ends = new Map<PlacedBlock, ReadonlySet<string | undefined>>();

  return async (block: PlacedBlock, filter: RecordFilter): Promise<AuditEntry[]> => {
    const { file, chain } = block;
    const text = await textOf(block, kept);
    if (!filter.mayContain(text)) return [];
    const ended = await endsOf(block, text);
    const [entries, begun]: [AuditEntry[], StoredRecord[]] = [[], []];
    for (const [from, end] of lineSpans(text)) {
      const isEnded = headAt(text, from)?.type === "start" && ended.has(callIdIn(text, from, end) ?? "");
      const record = isEnded ? undefined : wantedRecord(text.slice(from, end), filter);
      if (record === undefined) continue;
      if (record.type !== "start") entries.push({ file, chain, record });
      else if (!ended.has(record.callId)) begun.push(record);
    }
    for (const record of await withoutEnd(begun, block))
      entries.push({ file, chain, record: { ...record, outcome: UNFINISHED } });
    return entries;
  };

  /** Those that end in no later block of the chain. */
  async function withoutEnd(begun: readonly StoredRecord[], block: PlacedBlock): Promise<readonly StoredRecord[]> {
    const chain = chains.get(block.chain) ?? [];
    let open = begun;
    for (const later of chain.slice(chain.indexOf(block) + 1)) {
      if (open.length === 0) break;
      const ended = await endsOf(later);
      open = open.filter(({ callId }) => !ended.has(callId));
    }
    return open;
  }

  /** The calls whose end is in a block. */
  async function endsOf(block: PlacedBlock, text?: string): Promise<ReadonlySet<string | undefined>> {
    const ended = ends.get(block) ?? new Set(endedIn(text ?? (await textOf(block, kept))));
    ends.set(block, ended);
    return ended;
  }
}

async function textOf(block: PlacedBlock, kept: KeptLog | undefined): Promise<string> {
  const { file, firstLine, bytes, inFolder } = block;
  const found = inFolder && readText(inFolder.path, inFolder.from, bytes, inFolder.from + bytes);
  if (found?.bytes === bytes) return found.text;
  // Its file has gone from the folder into the store since it was listed, or was pruned. A block in the store may have grown.
  const stored = Buffer.from((await kept?.textOf(file, inFolder ? undefined : firstLine)) ?? "");
  const from = inFolder?.from ?? 0;
  return stored.toString("utf8", from, from + bytes);
}

function wantedRecord(line: string, filter: RecordFilter): StoredRecord | undefined {
  const record = filter.mayContain(line) ? parseLine(line) : undefined;
  if (record === undefined || !isStored(record)) return undefined;
  const { since = record.time, until = record.time } = filter;
  return record.time >= since && record.time <= until && filter.matches(record) ? record : undefined;
}

const CALL_ID = /"callId":"([^"\\\n]*)"/g;

function callIdIn(text: string, from: number, end: number): string | undefined {
  CALL_ID.lastIndex = from;
  const found = CALL_ID.exec(text);
  return found === null || found.index > end ? undefined : found[1];
}

/** The ids of the calls whose end is in this text. */
function* endedIn(text: string): Generator<string | undefined> {
  for (const [from, end] of lineSpans(text)) {
    const type = headAt(text, from)?.type;
    if (type === "start" || type === "decision") continue;
    const callId = type === "call" ? callIdIn(text, from, end) : undefined;
    const record = callId === undefined ? parseLine(text.slice(from, end)) : undefined;
    // As a copy: a part of the text would keep all of it in memory.
    if (callId !== undefined) yield Buffer.from(callId).toString();
    else if (record?.type === "call" || (record?.type === "event" && record.event === WITHHELD)) yield record.callId;
  }
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
      this.#offsets.set(name, start + readText(path, start, CHUNK, size).bytes);
    }
  }

  /** The records written since the last time, in the order in which they ended. */
  poll(filter = EVERYTHING): AuditEntry[] {
    const found = listFiles(this.#dir).flatMap((file) => this.#read(file, filter));
    return found.toSorted((a, b) => compareText(endTime(a.record), endTime(b.record)));
  }

  #read(file: AuditFile, filter: RecordFilter): AuditEntry[] {
    const found: AuditEntry[] = [];
    let offset = this.#offsets.get(file.name) ?? 0;
    while (offset < file.size) {
      const { text, bytes } = readText(file.path, offset, CHUNK);
      // The rest of the line is still to come.
      if (bytes === 0) break;
      for (const line of linesOf(text)) {
        const record = wantedRecord(line, filter);
        // A call in progress shows when it ends.
        if (record === undefined || record.type === "start") continue;
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
  throw new ToolcribError("invalid_arguments", `${flag} ${JSON.stringify(text)} is not a time.`, {
    hint: "Give a span such as 15m, 2h or 7d, or a time such as 2026-11-15T09:30.",
  });
}
