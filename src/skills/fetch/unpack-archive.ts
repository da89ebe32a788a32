/** Unpacks tar and zip archives of strangers: within limits, into one folder, as plain files. */
import { createReadStream, type ReadStream } from "node:fs";
import { type FileHandle, mkdir, open, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { ReadEntry } from "tar";
import type { Entry, ZipFile } from "yauzl";
import { ToolcribError, systemErrorCode } from "../../model/errors.ts";

interface UnpackOptions {
  readonly limits?: ArchiveLimits;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number, of: number) => void) | undefined;
}

const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const TAR_FILE_TYPES: ReadonlySet<string> = new Set(["File", "OldFile", "ContiguousFile"]);

/**
 * Unpacks a plain or gzipped tar into `dir`, which must be empty. Unzipping is done here and not by the parser, so that
 * every byte that comes out is counted, even those that belong to no entry.
 */
export async function unpackTar(
  file: string,
  dir: string,
  { limits = ARCHIVE_LIMITS, signal, onProgress }: UnpackOptions = {},
): Promise<void> {
  const { Parser } = await import("tar");
  const { size } = await stat(file);
  const folder = new UnpackedFolder(dir, size, limits);
  const entries = new EntryQueue(folder);
  let failure: unknown;
  const parser = new Parser({ strict: true, onReadEntry: (entry) => entries.take(entry) });
  parser.on("error", (error: unknown) => (failure ??= error));
  const ended = new Promise<void>((resolve) => parser.on("end", resolve));
  try {
    let isFirst = true;
    const { packed, unpacked } = await openTarStream(file);
    for await (const chunk of unpacked) {
      stopIfAborted(signal);
      onProgress?.(packed.bytesRead, size);
      // A stream without an encoding yields buffers.
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

async function openTarStream(file: string): Promise<{ packed: ReadStream; unpacked: Readable }> {
  const head = Buffer.alloc(GZIP.length);
  const handle = await open(file, "r");
  try {
    await handle.read(head, 0, head.length, 0);
  } finally {
    await handle.close();
  }
  const packed = createReadStream(file);
  if (!head.equals(GZIP)) return { packed, unpacked: packed };
  const gunzip = createGunzip();
  // `pipe` does not pass errors on.
  packed.on("error", (error) => gunzip.destroy(error));
  gunzip.on("close", () => packed.destroy());
  return { packed, unpacked: packed.pipe(gunzip) };
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
      if (!TAR_FILE_TYPES.has(entry.type)) throw entryRefused(name, `is not a regular file (${entry.type})`);
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

/** The systems whose zip programs write Unix modes: Unix and macOS. */
const UNIX_MAKERS = new Set([3, 19]);
const TYPE_BITS = 0o170000;
const REGULAR = 0o100000;
const FOLDER = 0o040000;

/** Unpacks into `dir`, which must be empty. The sizes in the headers are not trusted: unpacked bytes are counted. */
export async function unpackZip(
  file: string,
  dir: string,
  { limits = ARCHIVE_LIMITS, signal, onProgress }: UnpackOptions = {},
): Promise<void> {
  const { openPromise } = await import("yauzl");
  const folder = new UnpackedFolder(dir, (await stat(file)).size, limits);
  const zip = await openPromise(file, { strictFileNames: true }).catch((error: unknown) => {
    throw unreadableZip(file, error);
  });
  try {
    if (zip.entryCount > limits.entries) throw tooLarge(`The archive has more than ${limits.entries} entries.`);
    let count = 0;
    for await (const entry of zip.eachEntry()) {
      stopIfAborted(signal);
      onProgress?.(count++, zip.entryCount);
      folder.countEntry();
      await unpackZipEntry(zip, entry, folder, signal);
    }
  } catch (error) {
    stopIfAborted(signal);
    throw error instanceof ToolcribError ? error : explainZipError(file, error);
  } finally {
    zip.close();
  }
}

async function unpackZipEntry(
  zip: ZipFile,
  entry: Entry,
  folder: UnpackedFolder,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { fileName } = entry;
  const mode = UNIX_MAKERS.has(entry.versionMadeBy >> 8) ? entry.externalFileAttributes >>> 16 : 0;
  const type = mode & TYPE_BITS;
  const isFolder = fileName.endsWith("/");
  if (entry.isEncrypted()) throw entryRefused(fileName, "is encrypted, so it cannot be checked before it is installed");
  if (type !== 0 && type !== (isFolder ? FOLDER : REGULAR))
    throw entryRefused(fileName, "is a link or another special file");
  if (isFolder) return folder.addFolder(fileName);
  if (!entry.canDecodeFileData()) throw entryRefused(fileName, "uses a compression method that is not supported");

  const file = await folder.openFile(fileName, { executable: (mode & 0o111) !== 0 });
  try {
    const bytes = await zip.openReadStreamPromise(entry);
    for await (const chunk of bytes) {
      stopIfAborted(signal);
      // A stream without an encoding yields buffers.
      const piece = chunk as Buffer;
      folder.countBytes(piece.length);
      await file.write(piece);
    }
  } finally {
    await file.close().catch(() => undefined);
  }
}

/** yauzl refuses unsafe names itself, before they get here. */
function explainZipError(file: string, error: unknown): ToolcribError {
  const message = error instanceof Error ? error.message : String(error);
  const [, why, name] =
    /^(absolute path|invalid relative path|invalid characters in fileName): (.*)$/s.exec(message) ?? [];
  if (name === undefined) return unreadableZip(file, error);
  return entryRefused(name, why === "absolute path" ? "has an absolute name" : "has a name that leads elsewhere");
}

function unreadableZip(file: string, error: unknown): ToolcribError {
  const reason = printable(error instanceof Error ? error.message : String(error));
  return new ToolcribError("invalid_config", `${file} cannot be read as a zip archive: ${reason}`, { cause: error });
}

// The target folder: plain files only, each written once, every entry and byte counted.

/** A file whose bytes are still coming. */
interface OpenFile {
  write(chunk: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

class UnpackedFolder {
  readonly dir: string;
  readonly #limits: ArchiveLimits;
  readonly #packedBytes: number;
  readonly #seen = new Set<string>();
  #entries = 0;
  #bytes = 0;

  /** `dir` must be empty and private. Writes stay inside it because no link is ever created in it. */
  constructor(dir: string, packedBytes: number, limits: ArchiveLimits) {
    this.dir = dir;
    this.#packedBytes = packedBytes;
    this.#limits = limits;
  }

  /** Called for every entry before anything else, so that endless lists end. */
  countEntry(): void {
    this.#entries += 1;
    if (this.#entries > this.#limits.entries) {
      throw tooLarge(`The archive has more than ${this.#limits.entries} entries.`);
    }
  }

  /** Called with the number of unpacked bytes, also of those that belong to no file. */
  countBytes(bytes: number): void {
    this.#bytes += bytes;
    const { totalBytes, ratio, ratioFrom } = this.#limits;
    if (this.#bytes > totalBytes) throw tooLarge(`The archive unpacks to more than ${megabytes(totalBytes)}.`);
    if (this.#bytes > ratioFrom && this.#bytes > this.#packedBytes * ratio) {
      throw tooLarge(`The archive unpacks to more than ${ratio} times its size.`);
    }
  }

  async addFolder(name: string): Promise<void> {
    const parts = entryPath(name);
    if (parts.length > 0) await this.#makeFolder(name, parts);
  }

  async openFile(name: string, { executable }: { readonly executable: boolean }): Promise<OpenFile> {
    const parts = entryPath(name);
    if (parts.length === 0) throw entryRefused(name, "is a file without a name");
    // Equal for names that are one file on a system that ignores case or the form of accents.
    const key = parts.join("/").normalize("NFC").toLowerCase();
    if (this.#seen.has(key)) throw entryRefused(name, "is in the archive twice");
    this.#seen.add(key);
    await this.#makeFolder(name, parts.slice(0, -1));
    const handle = await this.#create(name, join(this.dir, ...parts), executable ? 0o755 : 0o644);
    return this.#bounded(name, handle);
  }

  async #makeFolder(name: string, parts: readonly string[]): Promise<void> {
    try {
      await mkdir(join(this.dir, ...parts), { recursive: true, mode: 0o755 });
    } catch (error) {
      if (isTaken(error)) throw entryRefused(name, "uses the name of another entry as its folder");
      throw error;
    }
  }

  async #create(name: string, path: string, mode: number): Promise<FileHandle> {
    try {
      return await open(path, "wx", mode);
    } catch (error) {
      if (isTaken(error)) throw entryRefused(name, "is in the archive twice");
      throw error;
    }
  }

  #bounded(name: string, handle: FileHandle): OpenFile {
    let size = 0;
    return {
      write: async (chunk) => {
        size += chunk.length;
        if (size > this.#limits.fileBytes) {
          await handle.close();
          throw tooLarge(`${JSON.stringify(name)} is larger than ${megabytes(this.#limits.fileBytes)}.`);
        }
        await handle.writeFile(chunk);
      },
      close: () => handle.close(),
    };
  }
}

function isTaken(error: unknown): boolean {
  const code = systemErrorCode(error);
  return code === "EEXIST" || code === "ENOTDIR" || code === "EISDIR";
}

export function tooLarge(message: string): ToolcribError {
  return new ToolcribError("too_large", message, { hint: "Unpack it yourself and install from the folder." });
}

function megabytes(bytes: number): string {
  return bytes >= 1024 * 1024 ? `${Math.round(bytes / 1024 / 1024)} MiB` : `${bytes} bytes`;
}

// Names of entries. A name that could leave the folder on any system refuses the whole archive.

const MAX_PATH_LENGTH = 1024;
const MAX_PATH_DEPTH = 32;

/**
 * The parts of an entry's path below the folder, without `.`; empty for the folder itself. Throws `blocked` for a name
 * that is absolute, leads out of the folder, has a drive letter or a backslash, or cannot be a file name.
 */
export function entryPath(name: string, platform: NodeJS.Platform = process.platform): string[] {
  if (name.includes("\\")) throw entryRefused(name, "has a backslash in its name");
  if (name.startsWith("/")) throw entryRefused(name, "has an absolute name");
  if (/^[A-Za-z]:/.test(name)) throw entryRefused(name, "has a drive letter in its name");
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(name)) throw entryRefused(name, "has a control character in its name");
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw entryRefused(name, "leads out of the folder");
  if (name.length > MAX_PATH_LENGTH || parts.length > MAX_PATH_DEPTH)
    throw entryRefused(name, "has a name that is too long or too deep");
  // Windows reads `a:b` as a stream of a, and drops dots and spaces at the end.
  if (platform === "win32" && parts.some((part) => /[<>:"|?*]|[. ]$/.test(part))) {
    throw entryRefused(name, "has a name that Windows does not allow");
  }
  return parts;
}

function entryRefused(name: string, why: string): ToolcribError {
  return new ToolcribError("blocked", `The entry ${JSON.stringify(printable(name))} ${why}; nothing was unpacked.`, {
    hint: "A trustworthy archive has no such entry. Ask its author, or unpack it and check it yourself.",
    details: { entry: printable(name) },
  });
}

/** Limits of an archive, a clone or a package, far above any published collection of skills. */
export interface ArchiveLimits {
  readonly entries: number;
  /** Of one file, unpacked. */
  readonly fileBytes: number;
  /** Of all files together, unpacked. */
  readonly totalBytes: number;
  /** Unpacked bytes for each packed one; counts only above `ratioFrom`, because small texts pack very well. */
  readonly ratio: number;
  readonly ratioFrom: number;
}

const MIB = 1024 * 1024;

export const ARCHIVE_LIMITS: ArchiveLimits = {
  entries: 20_000,
  fileBytes: 64 * MIB,
  totalBytes: 512 * MIB,
  ratio: 200,
  ratioFrom: 8 * MIB,
};

const MAX_PRINTABLE_LENGTH = 200;

/** Untrusted text for a message: one line, no control characters, limited length. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").trim();
  return clean.length > MAX_PRINTABLE_LENGTH ? `${clean.slice(0, MAX_PRINTABLE_LENGTH)}…` : clean;
}

/** `throwIfAborted` would throw whatever the abort came with. */
export function stopIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new ToolcribError("cancelled", "Fetching the skills was interrupted.");
}
