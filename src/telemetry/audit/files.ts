/** The files of the log: `<start time>-<pid>-<chain>.jsonl`. They sort by age, and a chain's files share its random id. */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { isProcessAlive } from "../../files/processes.ts";
import type { AuditText, KeptFile, KeptLog } from "../../model/audit-blocks.ts";
import { systemErrorCode } from "../../model/errors.ts";
import { parseLine } from "./line.ts";
import { type AnyRecord, type HeaderRecord, isStoredType, type SeenFile } from "./record.ts";

/** No record is longer; see body.ts for what is cut. */
const MAX_LINE_BYTES = 128 * 1024;
/** The pids of another machine say nothing here; its files count as in use until they have rested this long. */
const FOREIGN_REST_MS = 24 * 60 * 60 * 1000;
/** Far more than it takes a process to write down its head after its first record. */
export const HEAD_MS = 5000;
/** Commands write one small file each. */
export const MAX_FILES = 10_000;
const DAY_MS = 24 * 60 * 60 * 1000;
const NEWLINE = 10;

const NAME = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3})Z-(\d{1,10})-([0-9a-f]{16})\.jsonl$/;

export interface AuditFile {
  readonly name: string;
  readonly path: string;
  readonly chain: string;
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly start: number;
  readonly size: number;
  readonly modified: number;
}

export function fileName(start: number, pid: number, chain: string): string {
  return `${new Date(start).toISOString().replace(/[-:]/g, "")}-${pid}-${chain}.jsonl`;
}

/** undefined for a name that the log does not give. */
export function parseFileName(name: string): Pick<AuditFile, "chain" | "pid" | "start"> | undefined {
  const match = NAME.exec(name);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, pid, chain = ""] = match;
  const start = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return { chain, pid: Number(pid), start };
}

/** Oldest first; none if there is no such folder. Other files in it are passed over. */
export function listFiles(dir: string): AuditFile[] {
  let names: string[];
  try {
    names = readdirSync(dir);
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return [];
    throw error;
  }
  const files: AuditFile[] = [];
  for (const name of names.toSorted()) {
    const named = parseFileName(name);
    if (named === undefined) continue;
    const path = join(dir, name);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined || !stat.isFile()) continue;
    files.push({ ...named, name, path, size: stat.size, modified: stat.mtimeMs });
  }
  return files;
}

/** The first and the last whole record of a file, as far as they can be read. */
export interface FileEnds {
  readonly header?: HeaderRecord | undefined;
  readonly last?: AnyRecord | undefined;
}

export function endsOf(path: string): FileEnds {
  const lines = (from: number, to?: number): string[] => linesOf(readBytes(path, from, to)?.toString("utf8") ?? "");
  return endsIn(lines(0, MAX_LINE_BYTES), lines(-MAX_LINE_BYTES));
}

/** @param last The last lines of the file, if not all of them are given. */
export function endsIn(lines: readonly string[], last = lines): FileEnds {
  const header = parseLine(lines[0] ?? "");
  return {
    header: header?.type === "header" ? header : undefined,
    last: parseLine(last.findLast((line) => line !== "") ?? ""),
  };
}

/**
 * The whole lines that begin at this byte, about so many bytes of them, each with its line break. None for a file that is not
 * there any more, and where no further line is whole.
 */
export function readText(
  path: string,
  from: number,
  length: number,
  to = Number.POSITIVE_INFINITY,
): { readonly text: string; readonly bytes: number } {
  for (let wanted = length; ; wanted *= 2) {
    const bytes = readBytes(path, from, Math.min(from + wanted, to)) ?? Buffer.alloc(0);
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    // Longer than any record, or not written to its end yet.
    if (end === 0 && bytes.length === wanted) continue;
    return { text: bytes.toString("utf8", 0, end), bytes: end };
  }
}

/** Without their line breaks. Split at newlines alone: JSON text may hold other characters that count as line ends elsewhere. */
export function linesOf(text: string): string[] {
  return text.split("\n").slice(0, -1);
}

/** Where each whole line begins, and its line break is. */
export function* lineSpans(text: string): Generator<readonly [from: number, end: number]> {
  for (let from = 0, end = text.indexOf("\n"); end !== -1; from = end + 1, end = text.indexOf("\n", from))
    yield [from, end];
}

/** Whether a line ends at this byte. */
export function endsLine(path: string, at: number): boolean {
  return at === 0 || readBytes(path, at - 1, at)?.[0] === NEWLINE;
}

/**
 * From `from` on, counted from the end if it is negative, up to `to` or the end. undefined for a file that cannot be opened, such
 * as one removed meanwhile.
 */
export function readBytes(path: string, from: number, to = Number.POSITIVE_INFINITY): Buffer | undefined {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return undefined;
  }
  try {
    const { size } = fstatSync(fd);
    const start = from < 0 ? Math.max(0, size + from) : from;
    const buffer = Buffer.alloc(Math.max(0, Math.min(to, size) - start));
    let filled = 0;
    while (filled < buffer.length) {
      const got = readSync(fd, buffer, filled, buffer.length - filled, start + filled);
      if (got === 0) break;
      filled += got;
    }
    return buffer.subarray(0, filled);
  } finally {
    closeSync(fd);
  }
}

/** Whether the file is older than the moment it takes a process to write down its head after its first record. */
export function hasRested(file: AuditFile): boolean {
  return Date.now() - file.modified > HEAD_MS;
}

/** Whether a process may still write to the file. In doubt it may. */
export function isInUse(
  { path, pid, modified }: Pick<AuditFile, "path" | "pid" | "modified">,
  now: number,
  { header, last }: FileEnds = endsOf(path),
): boolean {
  if (last?.type === "closed" || last?.type === "rotated") return false;
  const host = header?.process.host ?? hostname();
  return host === hostname() ? isProcessAlive(pid) : now - modified < FOREIGN_REST_MS;
}

/** How a file is named in another chain, with the last record that it had. */
export function seenFile({ name, path }: Pick<AuditFile, "name" | "path">, { last } = endsOf(path)): SeenFile {
  return { file: name, seq: last?.seq ?? -1, hash: last?.hash ?? "" };
}

interface Bounds {
  readonly maxBytes: number;
  readonly maxFiles: number;
  /** Files that were last written to before that are not kept. */
  readonly maxDays?: number | undefined;
  /** Bytes to be kept free for what is written next. */
  readonly reserve: number;
  readonly now: number;
}

/** How much of a log is too much. Asked for its files one by one, oldest first, and told which of them go. */
export function surplusOf(
  files: readonly AuditFile[],
  { maxBytes, maxFiles, maxDays = Number.POSITIVE_INFINITY, reserve, now }: Bounds,
): { has(file: AuditFile): boolean; remove(file: AuditFile): void } {
  let [bytes, count] = [bytesOf(files) + reserve, files.length];
  return {
    has: ({ modified }) => bytes > maxBytes || count > maxFiles || now - modified > maxDays * DAY_MS,
    remove({ size }) {
      bytes -= size;
      count -= 1;
    },
  };
}

export function bytesOf(files: readonly AuditFile[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** The files to remove, oldest first. Files that some process still writes to stay, whatever their size. */
export function filesToPrune(files: readonly AuditFile[], own: string, bounds: Bounds): AuditFile[] {
  const surplus = surplusOf(files, bounds);
  return files.filter((file) => {
    if (!surplus.has(file) || file.name === own || isInUse(file, bounds.now)) return false;
    surplus.remove(file);
    return true;
  });
}

/** Of a record as the log writes most of them. */
const LINE_HEAD = /\{"seq":\d+,"prev":(?:null|"\w*"),"type":"(start|call|decision|event)","time":"([\w.:-]+)"/y;
/** Somebody may have put anything into a line. */
const MAX_TIME_LENGTH = 200;

/** Type and time of the record that begins here in a text, without parsing it; undefined for others, and for lines of the log itself. */
export function headAt(text: string, from: number): { readonly type: string; readonly time: string } | undefined {
  LINE_HEAD.lastIndex = from;
  const [, type, time] = LINE_HEAD.exec(text) ?? [];
  return type === undefined || time === undefined ? undefined : { type, time };
}

/** @param text Whole lines. */
export function blockOf(
  { name, chain }: Pick<AuditFile, "name" | "chain">,
  firstLine: number,
  text: string,
): AuditText {
  let [lines, firstTime, lastTime] = [0, "9999", ""];
  for (const [from, end] of lineSpans(text)) {
    lines += 1;
    const record = headAt(text, from) ?? parseLine(text.slice(from, end));
    if (record === undefined || !isStoredType(record.type)) continue;
    const time = record.time.slice(0, MAX_TIME_LENGTH);
    if (time < firstTime) firstTime = time;
    if (time > lastTime) lastTime = time;
  }
  return { file: name, chain, firstLine, lines, bytes: Buffer.byteLength(text), firstTime, lastTime, text };
}

/** The log is one set of files, wherever they are: in the folder, in a store, or in both while they are taken in. */
export interface LogFile extends AuditFile {
  readonly isInFolder: boolean;
  readonly kept: KeptFile | undefined;
}

/** Oldest first. What a store holds under names that the log does not give is passed over. */
export async function listLog(dir: string, kept?: Pick<KeptLog, "files">): Promise<LogFile[]> {
  // The folder first: a file goes from there into the store, never the other way.
  const inFolder = listFiles(dir);
  const byName = new Map(((await kept?.files()) ?? []).map((each) => [each.file, each]));
  // A file that is in both counts as the folder has it, because that one is never behind.
  const files = inFolder.map((file): LogFile => ({ ...file, isInFolder: true, kept: byName.get(file.name) }));
  for (const { name } of inFolder) byName.delete(name);
  for (const [name, each] of byName) {
    const named = parseFileName(name);
    if (named === undefined) continue;
    const modified = Date.parse(each.lastTime) || named.start;
    files.push({ ...named, name, path: join(dir, name), size: each.bytes, modified, isInFolder: false, kept: each });
  }
  return files.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
