import { stat } from "node:fs/promises";
import type { Entry, ZipFile } from "yauzl";
import { ToolcribError } from "../../model/errors.ts";
import { ARCHIVE_LIMITS, type ArchiveLimits } from "./archive-limits.ts";
import { refused } from "./entry-path.ts";
import { printable } from "./printable.ts";
import { stopIfAborted } from "./stop-if-aborted.ts";
import { tooLarge, UnpackedFolder } from "./unpacked-folder.ts";

/** The systems whose zip programs write Unix modes: Unix and macOS. */
const UNIX_MAKERS = new Set([3, 19]);
const TYPE_BITS = 0o170000;
const REGULAR = 0o100000;
const FOLDER = 0o040000;

interface UnpackOptions {
  readonly limits?: ArchiveLimits;
  readonly signal?: AbortSignal | undefined;
}

/** Unpacks into `dir`, which must be empty. Sizes in the headers count for nothing: what comes out is counted. */
export async function unpackZip(
  file: string,
  dir: string,
  { limits = ARCHIVE_LIMITS, signal }: UnpackOptions = {},
): Promise<void> {
  const { openPromise } = await import("yauzl");
  const folder = new UnpackedFolder(dir, (await stat(file)).size, limits);
  const zip = await openPromise(file, { strictFileNames: true }).catch((error: unknown) => {
    throw unreadable(file, error);
  });
  try {
    if (zip.entryCount > limits.entries) throw tooLarge(`The archive has more than ${limits.entries} entries.`);
    for await (const entry of zip.eachEntry()) {
      stopIfAborted(signal);
      folder.countEntry();
      await unpackEntry(zip, entry, folder, signal);
    }
  } catch (error) {
    stopIfAborted(signal);
    throw error instanceof ToolcribError ? error : explained(file, error);
  } finally {
    zip.close();
  }
}

async function unpackEntry(
  zip: ZipFile,
  entry: Entry,
  folder: UnpackedFolder,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { fileName } = entry;
  const mode = UNIX_MAKERS.has(entry.versionMadeBy >> 8) ? entry.externalFileAttributes >>> 16 : 0;
  const type = mode & TYPE_BITS;
  const isFolder = fileName.endsWith("/");
  if (entry.isEncrypted()) throw refused(fileName, "is encrypted, so nobody can look into it before it is installed");
  if (type !== 0 && type !== (isFolder ? FOLDER : REGULAR)) throw refused(fileName, "is a link or no plain file");
  if (isFolder) return folder.addFolder(fileName);
  if (!entry.canDecodeFileData()) throw refused(fileName, "is packed in a way that is not understood");

  const file = await folder.openFile(fileName, { executable: (mode & 0o111) !== 0 });
  try {
    const bytes = await zip.openReadStreamPromise(entry);
    for await (const chunk of bytes) {
      stopIfAborted(signal);
      // A binary stream without an encoding gives buffers.
      const piece = chunk as Buffer;
      folder.countBytes(piece.length);
      await file.write(piece);
    }
  } finally {
    await file.close().catch(() => undefined);
  }
}

/** yauzl refuses unsafe names itself, before they get here. */
function explained(file: string, error: unknown): ToolcribError {
  const message = error instanceof Error ? error.message : String(error);
  const [, why, name] =
    /^(absolute path|invalid relative path|invalid characters in fileName): (.*)$/s.exec(message) ?? [];
  if (name === undefined) return unreadable(file, error);
  return refused(name, why === "absolute path" ? "has an absolute name" : "has a name that leads elsewhere");
}

function unreadable(file: string, error: unknown): ToolcribError {
  const reason = printable(error instanceof Error ? error.message : String(error));
  return new ToolcribError("invalid_config", `${file} cannot be read as a zip archive: ${reason}`, { cause: error });
}
