/** Keeps the log within its size by removing whole files, oldest first. */
import { type AuditFile, isInUse, lastRecord } from "./files.ts";
import type { SeenFile } from "./record.ts";

export interface Bounds {
  readonly maxBytes: number;
  readonly maxFiles: number;
  /** Bytes to be kept free for what is written next. */
  readonly reserve: number;
  readonly now: number;
}

/** The files to remove, oldest first. Files that some process still writes to stay, whatever their size. */
export function filesToPrune(files: readonly AuditFile[], own: string, bounds: Bounds): AuditFile[] {
  let bytes = files.reduce((sum, file) => sum + file.size, 0) + bounds.reserve;
  let count = files.length;
  const removed: AuditFile[] = [];
  for (const file of files) {
    if (bytes <= bounds.maxBytes && count <= bounds.maxFiles) break;
    if (file.name === own || isInUse(file, bounds.now)) continue;
    removed.push(file);
    bytes -= file.size;
    count -= 1;
  }
  return removed;
}

/** How a file is named in another chain, with the last record that it had. */
export function seenFile(file: AuditFile): SeenFile {
  const last = lastRecord(file.path);
  return { file: file.name, seq: last?.seq ?? -1, hash: last?.hash ?? "" };
}
