/** What is added to the log from some moment on, for following it. */
import { type AuditFile, listFiles, read, readPart } from "./files.ts";
import { parseLine } from "./line.ts";
import { type AuditEntry, endOf } from "./read.ts";
import { isStored } from "./record.ts";

/** How much of one file is taken up at once. */
const CHUNK = 4 * 1024 * 1024;

export class AuditTail {
  readonly #dir: string;
  /** By file: everything before this byte has been taken up. */
  readonly #offsets = new Map<string, number>();

  /** @param from The files as they were listed before; what they gained since then is the first thing found. */
  constructor(dir: string, from: readonly AuditFile[]) {
    this.#dir = dir;
    for (const file of from) this.#offsets.set(file.name, endOfLines(file));
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
      const from = offset;
      const bytes = read(file.path, (fd) => readPart(fd, from, from + CHUNK)) ?? Buffer.alloc(0);
      const end = bytes.lastIndexOf(10) + 1;
      // The rest of the line is still to come.
      if (end === 0) break;
      for (const line of bytes.toString("utf8", 0, end).split("\n")) {
        const record = parseLine(line);
        // A call under way shows when it ends.
        if (record === undefined || !isStored(record) || record.type === "start") continue;
        found.push({ file: file.name, chain: file.chain, record });
      }
      offset += end;
    }
    this.#offsets.set(file.name, offset);
    return found;
  }
}

/** The size without a last line that was only half written when the file was listed. */
function endOfLines({ path, size }: AuditFile): number {
  const from = Math.max(0, size - CHUNK);
  const bytes = read(path, (fd) => readPart(fd, from, size)) ?? Buffer.alloc(0);
  return from + bytes.lastIndexOf(10) + 1;
}
