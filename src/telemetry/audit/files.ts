/** The files of the log: `<start time>-<pid>-<chain>.jsonl`. They sort by age, and a chain's files share its random id. */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { parseLine } from "./line.ts";
import type { AnyRecord, HeaderRecord } from "./record.ts";
import { isProcessAlive } from "../../files/processes.ts";

/** No record is longer; see body.ts for what is cut. */
const LONGEST_LINE = 128 * 1024;
/** The pids of another machine say nothing here; its files count as in use until they have rested this long. */
const FOREIGN_REST_MS = 24 * 60 * 60 * 1000;
/** Far more than it takes. */
const HEAD_MS = 5000;

const NAME = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3})Z-(\d{1,10})-([0-9a-f]{16})\.jsonl$/;

/** What the name of a file says. */
interface NamedFile {
  readonly chain: string;
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly start: number;
}

export interface AuditFile extends NamedFile {
  readonly name: string;
  readonly path: string;
  readonly size: number;
  readonly modified: number;
}

export function fileName(start: number, pid: number, chain: string): string {
  return `${new Date(start).toISOString().replace(/[-:]/g, "")}-${pid}-${chain}.jsonl`;
}

/** undefined for a name that the log does not give. */
export function parseFileName(name: string): NamedFile | undefined {
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
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
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

/** The last whole record; undefined where there is none that can be read. */
export function lastRecord(path: string): AnyRecord | undefined {
  return read(path, (fd) => {
    const { size } = fstatSync(fd);
    const text = readPart(fd, Math.max(0, size - LONGEST_LINE), size).toString("utf8");
    // What stands after the last newline is torn.
    const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
    for (const line of lines.toReversed()) if (line !== "") return parseLine(line);
    return undefined;
  });
}

export function headerOf(path: string): HeaderRecord | undefined {
  return read(path, (fd) => {
    const text = readPart(fd, 0, LONGEST_LINE).toString("utf8");
    const end = text.indexOf("\n");
    const record = end === -1 ? undefined : parseLine(text.slice(0, end));
    return record?.type === "header" ? record : undefined;
  });
}

/** The bytes from `from` up to `to`, or to the end of the file. */
export function readPart(fd: number, from: number, to: number): Buffer {
  const buffer = Buffer.alloc(Math.max(0, Math.min(to, fstatSync(fd).size) - from));
  let filled = 0;
  while (filled < buffer.length) {
    const got = readSync(fd, buffer, filled, buffer.length - filled, from + filled);
    if (got === 0) break;
    filled += got;
  }
  return buffer.subarray(0, filled);
}

/** undefined for a file that cannot be opened, such as one removed meanwhile. */
export function read<T>(path: string, use: (fd: number) => T): T | undefined {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return undefined;
  }
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

/** Whether the file is older than the moment it takes a process to write down its head after its first record. */
export function hasRested(file: AuditFile): boolean {
  return Date.now() - file.modified > HEAD_MS;
}

/** Whether a process may still write to the file. In doubt it may. */
export function isInUse(file: AuditFile, now: number): boolean {
  return mayGrow(file, headerOf(file.path), lastRecord(file.path), now);
}

/** As `isInUse`, of a file whose first and last record are known. */
export function mayGrow(
  { pid, modified }: Pick<AuditFile, "pid" | "modified">,
  header: HeaderRecord | undefined,
  last: AnyRecord | undefined,
  now: number,
): boolean {
  if (last?.type === "closed" || last?.type === "rotated") return false;
  const host = header?.process.host ?? hostname();
  return host === hostname() ? isProcessAlive(pid) : now - modified < FOREIGN_REST_MS;
}
