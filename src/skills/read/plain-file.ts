/** Reads a plain file within a bound, and nothing that could block: no pipe, no device, no link put there in between. */
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { bytesDigest } from "./digest.ts";

interface PlainFile {
  readonly size: number;
  readonly digest: string;
  readonly executable: boolean;
  /** Only where they were asked for. */
  readonly bytes: Uint8Array | undefined;
}

const CHUNK = 256 * 1024;
// Not known on Windows, where they are undefined and count as 0.
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);

export function readPlainFile(path: string, most: number, keep: boolean): PlainFile | "too-large" | "unreadable" {
  let fd: number | undefined;
  try {
    fd = openSync(path, FLAGS);
    const found = fstatSync(fd);
    if (!found.isFile()) return "unreadable";
    if (found.size > most) return "too-large";
    const read = keep || found.size < CHUNK ? readWhole(fd, found.size, most) : digestLarge(fd, most);
    if (read === "too-large") return read;
    const executable = process.platform !== "win32" && (found.mode & 0o111) !== 0;
    return { size: read.size, digest: read.digest, executable, bytes: keep ? read.bytes : undefined };
  } catch {
    return "unreadable";
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

interface Read {
  readonly size: number;
  readonly digest: string;
  readonly bytes?: Uint8Array;
}

/** One byte more than expected is asked for, to see whether the file has grown. */
function readWhole(fd: number, expected: number, most: number): Read | "too-large" {
  let buffer = new Uint8Array(expected + 1);
  let size = 0;
  for (;;) {
    const got = readSync(fd, buffer, size, buffer.length - size, null);
    size += got;
    if (size > most) return "too-large";
    if (got === 0) break;
    if (size === buffer.length) {
      const larger = new Uint8Array(Math.min(most, buffer.length + CHUNK) + 1);
      larger.set(buffer);
      buffer = larger;
    }
  }
  const bytes = buffer.slice(0, size);
  return { size, digest: bytesDigest(bytes), bytes };
}

function digestLarge(fd: number, most: number): Read | "too-large" {
  const hash = createHash("sha256");
  const buffer = new Uint8Array(CHUNK);
  let size = 0;
  for (;;) {
    const got = readSync(fd, buffer, 0, CHUNK, null);
    if (got === 0) return { size, digest: `sha256:${hash.digest("hex")}` };
    size += got;
    if (size > most) return "too-large";
    hash.update(buffer.subarray(0, got));
  }
}
