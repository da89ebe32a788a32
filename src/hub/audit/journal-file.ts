/** Reads the whole lines of a journal file from some byte on, a bounded number at a time. */
import { open } from "node:fs/promises";
import { setImmediate as turn } from "node:timers/promises";

const NEWLINE = 10;
const CHUNK = 256 * 1024;
/** Compared in one turn of the event loop. */
const LINES_AT_ONCE = 1000;

/** How much of a file has been taken in. */
export interface Progress {
  readonly bytes: number;
  readonly lines: number;
}

export interface JournalLines {
  readonly lines: readonly string[];
  /** With the line breaks. */
  readonly bytes: number;
}

const NONE: JournalLines = { lines: [], bytes: 0 };

/** Nothing for a file that is not there any more, and where no further line is whole. */
export async function readLines(path: string, from: number, most: number): Promise<JournalLines> {
  for (let length = CHUNK; ; length *= 2) {
    const bytes = await readBytes(path, from, length);
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    if (end > 0) return split(bytes.subarray(0, end), most);
    // Longer than any record, or not written to its end yet.
    if (bytes.length < length) return NONE;
  }
}

/** Whether a line ends at this byte. */
export async function endsLine(path: string, at: number): Promise<boolean> {
  return at === 0 || (await readBytes(path, at - 1, 1))[0] === NEWLINE;
}

/** Whether these lines, and nothing else, are what the file holds; true of one that is not there any more. */
export async function holdsExactly(path: string, lines: readonly string[]): Promise<boolean> {
  let handle;
  try {
    handle = await open(path, "r");
  } catch (error) {
    if (isAbsence(error)) return true;
    throw error;
  }
  try {
    let at = 0;
    for (let first = 0; first < lines.length; first += LINES_AT_ONCE) {
      const some = lines.slice(first, first + LINES_AT_ONCE);
      const expected = Buffer.from(some.map((line) => `${line}\n`).join(""), "utf8");
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(expected.length), 0, expected.length, at);
      if (!expected.equals(buffer.subarray(0, bytesRead))) return false;
      at += bytesRead;
      await turn();
    }
    return (await handle.stat()).size === at;
  } finally {
    await handle.close();
  }
}

async function readBytes(path: string, from: number, length: number): Promise<Buffer> {
  let handle;
  try {
    handle = await open(path, "r");
  } catch (error) {
    if (isAbsence(error)) return Buffer.alloc(0);
    throw error;
  }
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, from);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

function split(bytes: Buffer, most: number): JournalLines {
  const lines: string[] = [];
  let from = 0;
  while (from < bytes.length && lines.length < most) {
    const end = bytes.indexOf(NEWLINE, from);
    lines.push(bytes.toString("utf8", from, end));
    from = end + 1;
  }
  return { lines, bytes: from };
}

function isAbsence(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
