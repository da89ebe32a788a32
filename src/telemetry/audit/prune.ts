/** Keeps the log within its bounds by removing whole files, oldest first. */
import { rmSync } from "node:fs";
import { type AuditFile, isInUse, lastRecord, listFiles } from "./files.ts";
import type { SeenFile } from "./record.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

export interface Bounds {
  readonly maxBytes: number;
  readonly maxFiles: number;
  /** Files that were last written to before that are not kept. */
  readonly maxDays?: number | undefined;
  /** Bytes to be kept free for what is written next. */
  readonly reserve: number;
  readonly now: number;
}

/** How much of a log is too much. Asked for its files one by one, oldest first. */
export class Surplus {
  readonly #bounds: Bounds;
  #bytes: number;
  #count: number;

  constructor(files: readonly Pick<AuditFile, "size">[], bounds: Bounds) {
    this.#bounds = bounds;
    this.#bytes = files.reduce((sum, file) => sum + file.size, 0) + bounds.reserve;
    this.#count = files.length;
  }

  includes({ modified }: Pick<AuditFile, "modified">): boolean {
    const { maxBytes, maxFiles, maxDays, now } = this.#bounds;
    if (this.#bytes > maxBytes || this.#count > maxFiles) return true;
    return maxDays !== undefined && now - modified > maxDays * DAY_MS;
  }

  remove({ size }: Pick<AuditFile, "size">): void {
    this.#bytes -= size;
    this.#count -= 1;
  }
}

/** The files to remove, oldest first. Files that some process still writes to stay, whatever their size. */
export function filesToPrune(files: readonly AuditFile[], own: string, bounds: Bounds): AuditFile[] {
  const surplus = new Surplus(files, bounds);
  const removed: AuditFile[] = [];
  for (const file of files) {
    if (!surplus.includes(file) || file.name === own || isInUse(file, bounds.now)) continue;
    removed.push(file);
    surplus.remove(file);
  }
  return removed;
}

/** More files in one record would make a line that is too long. */
export const PRUNED_PER_RECORD = 200;

/**
 * Removes what is too much from a folder. `mark` comes before the files go, so that a crash in between leaves nothing
 * unexplained.
 */
export function pruneFolder(
  dir: string,
  own: string,
  bounds: Bounds,
  mark: (files: readonly SeenFile[]) => void,
): void {
  const victims = filesToPrune(listFiles(dir), own, bounds);
  for (let from = 0; from < victims.length; from += PRUNED_PER_RECORD) {
    const some = victims.slice(from, from + PRUNED_PER_RECORD);
    mark(some.map(seenFile));
    for (const victim of some) rmSync(victim.path, { force: true });
  }
}

/** How a file is named in another chain, with the last record that it had. */
export function seenFile(file: AuditFile): SeenFile {
  const last = lastRecord(file.path);
  return { file: file.name, seq: last?.seq ?? -1, hash: last?.hash ?? "" };
}
