import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { ReadEntry } from "tar";
import { ToolcribError } from "../../model/errors.ts";
import { ARCHIVE_LIMITS, type ArchiveLimits } from "./archive-limits.ts";
import { refused } from "./entry-path.ts";
import { printable } from "./printable.ts";
import { stopIfAborted } from "./stop-if-aborted.ts";
import { type OpenFile, UnpackedFolder } from "./unpacked-folder.ts";

interface UnpackOptions {
  readonly limits?: ArchiveLimits;
  readonly signal?: AbortSignal | undefined;
}

const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const FILES: ReadonlySet<string> = new Set(["File", "OldFile", "ContiguousFile"]);

/**
 * Unpacks a plain or gzipped tar into `dir`, which must be empty. Unzipping is done here and not by the parser, so that
 * every byte that comes out is counted, also one that belongs to no entry.
 */
export async function unpackTar(
  file: string,
  dir: string,
  { limits = ARCHIVE_LIMITS, signal }: UnpackOptions = {},
): Promise<void> {
  const { Parser } = await import("tar");
  const folder = new UnpackedFolder(dir, (await stat(file)).size, limits);
  const entries = new EntryQueue(folder);
  let failure: unknown;
  const parser = new Parser({ strict: true, onReadEntry: (entry) => entries.take(entry) });
  parser.on("error", (error: unknown) => (failure ??= error));
  const ended = new Promise<void>((resolve) => parser.on("end", resolve));
  try {
    let isFirst = true;
    for await (const chunk of await unzipped(file)) {
      stopIfAborted(signal);
      // A binary stream without an encoding gives buffers.
      const piece = chunk as Buffer;
      if (isFirst && isCompressed(piece)) throw notATar(file, "it is compressed twice, or in another way than gzip");
      isFirst = false;
      folder.countBytes(piece.length);
      parser.write(piece);
      if (failure !== undefined) throw failure;
      await entries.written();
    }
    parser.end();
    if (failure !== undefined) throw failure;
    await ended;
    await entries.written();
  } catch (error) {
    stopIfAborted(signal);
    throw error instanceof ToolcribError
      ? error
      : notATar(file, error instanceof Error ? error.message : String(error));
  } finally {
    await entries.close();
  }
}

async function unzipped(file: string): Promise<Readable> {
  const head = Buffer.alloc(GZIP.length);
  const handle = await open(file, "r");
  try {
    await handle.read(head, 0, head.length, 0);
  } finally {
    await handle.close();
  }
  const packed = createReadStream(file);
  if (!head.equals(GZIP)) return packed;
  const gunzip = createGunzip();
  // `pipe` does not pass errors on.
  packed.on("error", (error) => gunzip.destroy(error));
  gunzip.on("close", () => packed.destroy());
  return packed.pipe(gunzip);
}

function isCompressed(start: Buffer): boolean {
  return start.subarray(0, GZIP.length).equals(GZIP) || start.subarray(0, ZSTD.length).equals(ZSTD);
}

/** The parser hands its entries over synchronously; writing them takes its time, in the same order. */
class EntryQueue {
  readonly #folder: UnpackedFolder;
  #waiting: (() => Promise<void>)[] = [];
  #open: OpenFile | undefined;

  constructor(folder: UnpackedFolder) {
    this.#folder = folder;
  }

  take(entry: ReadEntry): void {
    const name = entry.path;
    this.#waiting.push(async () => {
      this.#folder.countEntry();
      if (entry.type === "Directory") return this.#folder.addFolder(name);
      if (!FILES.has(entry.type)) throw refused(name, `is no plain file (${entry.type})`);
      this.#open = await this.#folder.openFile(name, { executable: ((entry.mode ?? 0) & 0o111) !== 0 });
    });
    entry.on("data", (chunk) => {
      this.#waiting.push(async () => this.#open?.write(chunk));
    });
    entry.on("end", () => {
      this.#waiting.push(() => this.close());
    });
  }

  async written(): Promise<void> {
    const due = this.#waiting;
    this.#waiting = [];
    for (const step of due) await step();
  }

  async close(): Promise<void> {
    const file = this.#open;
    this.#open = undefined;
    await file?.close().catch(() => undefined);
  }
}

function notATar(file: string, reason: string): ToolcribError {
  return new ToolcribError("invalid_config", `${file} cannot be read as a tar archive: ${printable(reason)}`);
}
