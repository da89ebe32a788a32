/** The log as one set of files, wherever they are: in the folder, in a store, or in both while they are taken in. */
import { join } from "node:path";
import { type AuditFile, listFiles, parseFileName } from "./files.ts";

/** A file whose lines are in a store. */
export interface KeptFile {
  readonly file: string;
  /** Of the lines, with their line breaks. */
  readonly bytes: number;
  readonly lines: number;
  /** Lines are numbered from 0. */
  readonly lastSeq: number;
  /** ISO time. */
  readonly lastTime: string;
}

/** What readers need of a store. */
export interface KeptLog {
  files(): Promise<readonly KeptFile[]>;
  /** In their order, without line breaks. */
  linesOf(file: string): Promise<readonly string[]>;
}

export interface LogFile extends AuditFile {
  readonly isInFolder: boolean;
  readonly kept: KeptFile | undefined;
}

/** Oldest first. What a store holds under names that the log does not give is passed over. */
export async function listLog(dir: string, kept?: KeptLog): Promise<LogFile[]> {
  // The folder first: a file goes from there into the store, never the other way.
  const inFolder = listFiles(dir);
  return joinFiles(dir, inFolder, (await kept?.files()) ?? []);
}

/** A file that is in both counts as the folder has it, because that one is never behind. */
export function joinFiles(dir: string, inFolder: readonly AuditFile[], kept: readonly KeptFile[]): LogFile[] {
  const byName = new Map(kept.map((each) => [each.file, each]));
  const files = inFolder.map((file): LogFile => ({ ...file, isInFolder: true, kept: byName.get(file.name) }));
  const names = new Set(inFolder.map((file) => file.name));
  for (const [name, each] of byName) {
    const named = names.has(name) ? undefined : parseFileName(name);
    if (named === undefined) continue;
    const modified = Date.parse(each.lastTime) || named.start;
    files.push({ ...named, name, path: join(dir, name), size: each.bytes, modified, isInFolder: false, kept: each });
  }
  return files.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
