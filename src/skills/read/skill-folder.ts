/**
 * Lists and digests the files of a skill's folder, within limits. Anything but regular files is reported and skipped.
 *
 * The calls are synchronous: a skill is a handful of small files, and asynchronous calls would cost several times as much.
 * The walk pauses between files.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { setImmediate as yieldToOthers } from "node:timers/promises";
import { ToolcribError } from "../../model/errors.ts";
import type { SkillFile } from "../../model/skill.ts";
import { bytesDigest } from "../verified-files.ts";
import { type ReadWarnings, abbreviate } from "./read-warnings.ts";

interface FolderLimits {
  readonly bytes: number;
  readonly files: number;
  readonly totalBytes: number;
}

interface ListedFolder {
  /** Absolute, as it was given. */
  readonly dir: string;
  /** SKILL.md first, then by path. */
  readonly files: readonly SkillFile[];
  /** The bytes of SKILL.md. */
  readonly main: Uint8Array;
}

const MAX_FOLDER_DEPTH = 32;
/** The walk pauses after this many files or bytes. */
const FILES_PER_SLICE = 16;
const BYTES_PER_SLICE = 512 * 1024;
/** Other programs' own, never a part of the skill. */
const IGNORED_ENTRIES = new Set([".git", ".DS_Store", "Thumbs.db"]);

/** @param path The folder, or the SKILL.md in it. */
export async function listFolder(path: string, limits: FolderLimits, warnings: ReadWarnings): Promise<ListedFolder> {
  const dir = folderOf(path);
  const root = realpathSync.native(dir);
  const entries = entriesOf(root, limits.files);
  const mainName = findMain(dir, entries);
  if (mainName !== "SKILL.md") {
    warnings.add("FILE_NAME", `The file should be called SKILL.md, not "${mainName}".`);
  }
  const walk = new FolderWalk(root, mainName, limits, warnings);
  await walk.visitAll(entries, root, "", []);
  if (walk.main === undefined) {
    throw new ToolcribError("invalid_config", `${join(dir, mainName)} is not a regular file inside its folder.`);
  }
  const others = walk.files.filter(({ path: one }) => one !== mainName).toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return { dir, files: [...walk.files.filter(({ path: one }) => one === mainName), ...others], main: walk.main };
}

/** A file that changed this recently may change again without another time: not every file system counts finely. */
const SETTLED_MS = 2000;

/**
 * Changes whenever a file below the folder does, without reading any. Undefined if that cannot be relied on, because of a
 * change in the last moments or a problem that reading the skill will report.
 * @param now Taken before the skill was read that the stamp is to stand for.
 */
export function folderStamp(dir: string, now: number): string | undefined {
  const hash = createHash("sha256");
  const folders = [dir];
  try {
    for (let count = 0; ;) {
      const folder = folders.pop();
      if (folder === undefined) return hash.digest("base64");
      for (const { name } of entriesOf(folder, MAX_STAMPED)) {
        const path = join(folder, name);
        const link = lstatSync(path, { bigint: true });
        const found = link.isSymbolicLink() ? statSync(path, { bigint: true }) : link;
        const changed = Number((found.ctimeNs > found.mtimeNs ? found.ctimeNs : found.mtimeNs) / 1_000_000n);
        if (changed > now - SETTLED_MS || ++count > MAX_STAMPED) return undefined;
        const { ino, size, mode, mtimeNs, ctimeNs } = found;
        hash.update(JSON.stringify([path, ...[ino, size, mode, mtimeNs, ctimeNs, link.ino].map(String)]));
        // A link to a folder leads to one that is visited anyway, or out of the skill.
        if (link.isDirectory() && name !== "node_modules") folders.push(path);
      }
    }
  } catch {
    return undefined;
  }
}

/** More than a skill may have. */
const MAX_STAMPED = 5000;

function folderOf(path: string): string {
  const found = attempt(() => statSync(path));
  if (found === undefined) throw new ToolcribError("not_found", `The folder ${path} does not exist.`);
  if (found.isDirectory()) return path;
  if (found.isFile() && basename(path).toLowerCase() === "skill.md") return dirname(path);
  throw new ToolcribError("invalid_config", `${path} is not a folder with a SKILL.md.`);
}

function findMain(dir: string, entries: readonly Dirent[]): string {
  const names = entries.map(({ name }) => name);
  const main = names.find((name) => name === "SKILL.md") ?? names.find((name) => name.toLowerCase() === "skill.md");
  if (main === undefined) throw new ToolcribError("not_found", `${dir} has no SKILL.md.`);
  return main;
}

/** Entries are counted while they come, so that a folder of millions is given up early. */
function entriesOf(folder: string, maxFiles: number): Dirent[] {
  const entries: Dirent[] = [];
  const open = opendirSync(folder);
  try {
    for (let entry = open.readSync(); entry !== null; entry = open.readSync()) {
      if (IGNORED_ENTRIES.has(entry.name)) continue;
      entries.push(entry);
      if (entries.length > maxFiles) throw tooMany(maxFiles);
    }
  } finally {
    open.closeSync();
  }
  return entries;
}

/** undefined where the system objects. */
function attempt<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    if (error instanceof ToolcribError) throw error;
    return undefined;
  }
}

function tooMany(maxFiles: number): ToolcribError {
  return new ToolcribError("too_large", `The folder has more than ${maxFiles} files.`, {
    hint: "Move files that are not part of the skill out of its folder.",
  });
}

class FolderWalk {
  readonly files: SkillFile[] = [];
  main: Uint8Array | undefined;
  readonly #root: string;
  readonly #mainName: string;
  readonly #limits: FolderLimits;
  readonly #warnings: ReadWarnings;
  #entries = 0;
  #bytes = 0;

  constructor(root: string, mainName: string, limits: FolderLimits, warnings: ReadWarnings) {
    this.#root = root;
    this.#mainName = mainName;
    this.#limits = limits;
    this.#warnings = warnings;
  }

  /** @param above The real paths of the folders around this one, so that links cannot lead in circles. */
  async visitAll(entries: readonly Dirent[], folder: string, prefix: string, above: readonly string[]): Promise<void> {
    this.#entries += entries.length;
    const inside = [...above, folder];
    for (const entry of entries) await this.#visit(entry, folder, `${prefix}${entry.name}`, inside);
  }

  async #enter(folder: string, prefix: string, above: readonly string[]): Promise<void> {
    const entries = attempt(() => entriesOf(folder, this.#limits.files - this.#entries));
    if (entries === undefined) this.#skip("FILE_UNREADABLE", prefix, "cannot be read");
    else await this.visitAll(entries, folder, prefix, above);
  }

  async #visit(entry: Dirent, folder: string, path: string, inside: readonly string[]): Promise<void> {
    // Such names mean something else on other systems, or hide what they are.
    if (/[\\\p{Cc}]/u.test(entry.name)) return this.#skip("FILE_NAME_ODD", path, "has a name that is not safe");
    let real = join(folder, entry.name);
    if (entry.isSymbolicLink()) {
      const target = attempt(() => realpathSync.native(real));
      if (target === undefined) return this.#skip("SYMLINK_BROKEN", path, "is a link to nothing");
      if (!target.startsWith(this.#root + sep)) {
        if (target === this.#root) return this.#skip("SYMLINK_LOOP", path, "is a link to a folder around it");
        return this.#skip("SYMLINK_OUTSIDE", path, "is a link out of the skill's folder");
      }
      real = target;
    }
    // Most entries say what they are.
    const found = entry.isFile() || entry.isDirectory() ? entry : attempt(() => statSync(real));
    if (found?.isDirectory() === true) {
      if (inside.includes(real)) return this.#skip("SYMLINK_LOOP", path, "is a link to a folder around it");
      if (inside.length > MAX_FOLDER_DEPTH)
        return this.#skip("TOO_DEEP", path, `lies more than ${MAX_FOLDER_DEPTH} folders deep`);
      if (entry.name === "node_modules") return this.#skip("FOLDER_LEFT_OUT", path, "contains packages");
      return this.#enter(real, `${path}/`, inside);
    }
    if (found?.isFile() === true) return this.#read(real, path);
    this.#skip(
      found === undefined ? "FILE_UNREADABLE" : "SPECIAL_FILE",
      path,
      "is not a regular file that can be read",
    );
  }

  async #read(real: string, path: string): Promise<void> {
    const isMain = path === this.#mainName;
    const rest = this.#limits.totalBytes - this.#bytes;
    const maxBytes = isMain ? Math.min(this.#limits.bytes, rest) : rest;
    const read = readPlainFile(real, maxBytes, isMain);
    if (read === "unreadable") return this.#skip("FILE_UNREADABLE", path, "cannot be read");
    if (read === "too-large") {
      const what = isMain
        ? `${path} has more than ${maxBytes} bytes`
        : `The files have more than ${this.#limits.totalBytes} bytes`;
      throw new ToolcribError("too_large", `${what}.`);
    }
    this.#bytes += read.size;
    if (this.files.length % FILES_PER_SLICE === FILES_PER_SLICE - 1 || read.size > BYTES_PER_SLICE)
      await yieldToOthers();
    if (isMain) this.main = read.bytes;
    this.files.push({ path, size: read.size, digest: read.digest, executable: read.executable });
  }

  #skip(code: string, path: string, why: string): void {
    this.#warnings.add(code, `"${abbreviate(path)}" ${why} and is ignored.`);
  }
}

// Reading one file within a limit, and nothing that could block: no pipe, no device, no link swapped in meanwhile.

interface PlainFile {
  readonly size: number;
  readonly digest: string;
  readonly executable: boolean;
  /** Only where they were asked for. */
  readonly bytes: Uint8Array | undefined;
}

const CHUNK_BYTES = 256 * 1024;
// Not known on Windows, where they are undefined and count as 0.
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);

function readPlainFile(path: string, maxBytes: number, keep: boolean): PlainFile | "too-large" | "unreadable" {
  let fd: number | undefined;
  try {
    fd = openSync(path, FLAGS);
    const found = fstatSync(fd);
    if (!found.isFile()) return "unreadable";
    if (found.size > maxBytes) return "too-large";
    const read = keep || found.size < CHUNK_BYTES ? readWhole(fd, found.size, maxBytes) : digestLarge(fd, maxBytes);
    if (read === "too-large") return read;
    const executable = process.platform !== "win32" && (found.mode & 0o111) !== 0;
    return { size: read.size, digest: read.digest, executable, bytes: keep ? read.bytes : undefined };
  } catch {
    return "unreadable";
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

interface FileRead {
  readonly size: number;
  readonly digest: string;
  readonly bytes?: Uint8Array;
}

/** One byte more than expected is asked for, to see whether the file has grown. */
function readWhole(fd: number, expected: number, maxBytes: number): FileRead | "too-large" {
  let buffer = new Uint8Array(expected + 1);
  let size = 0;
  for (;;) {
    const got = readSync(fd, buffer, size, buffer.length - size, null);
    size += got;
    if (size > maxBytes) return "too-large";
    if (got === 0) break;
    if (size === buffer.length) {
      const larger = new Uint8Array(Math.min(maxBytes, buffer.length + CHUNK_BYTES) + 1);
      larger.set(buffer);
      buffer = larger;
    }
  }
  const bytes = buffer.slice(0, size);
  return { size, digest: bytesDigest(bytes), bytes };
}

function digestLarge(fd: number, maxBytes: number): FileRead | "too-large" {
  const hash = createHash("sha256");
  const buffer = new Uint8Array(CHUNK_BYTES);
  let size = 0;
  for (;;) {
    const got = readSync(fd, buffer, 0, CHUNK_BYTES, null);
    if (got === 0) return { size, digest: `sha256:${hash.digest("hex")}` };
    size += got;
    if (size > maxBytes) return "too-large";
    hash.update(buffer.subarray(0, got));
  }
}
