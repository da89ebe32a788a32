/** The files of the chain that one process writes: begun, filled, ended and linked to one another. */
import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { VERSION } from "../../model/version.ts";
import { fileName, hasRested, listFiles } from "./files.ts";
import type { HeadKeeper } from "./head-keeper.ts";
import type { AuditKey } from "./key.ts";
import { sealLine } from "./line.ts";
import { OpenFile } from "./open-file.ts";
import { pruneFolder } from "./prune.ts";
import { seenFiles } from "./seen.ts";

const DEFAULT_MAX_BYTES = 100 * 1024 * 1024;
/** Files are read whole when they are verified. */
const LARGEST_FILE = 16 * 1024 * 1024;
/** Of files that go into a store soon: each is compared with what is there in one go. */
const LARGEST_JOURNAL_FILE = 4 * 1024 * 1024;
const FILES_PER_LOG = 8;
/** Commands write one small file each. */
export const MAX_FILES = 10_000;
/** Where files go by age, none is written to for longer. */
const LONGEST_FILE_MS = 24 * 60 * 60 * 1000;

export interface ChainFilesOptions {
  /** `$TOOLCRIB_HOME/audit`; made when the first record is written. */
  readonly dir: string;
  /** Of all files together. */
  readonly maxBytes?: number;
  readonly maxFiles?: number;
  /** Files that were last written to before that go. */
  readonly maxDays?: number | undefined;
  /** The files are taken into a store, and whoever does that keeps the log within its bounds. */
  readonly isJournal?: boolean;
  readonly pid?: number;
}

interface ChainParts {
  readonly chain: string;
  readonly salt: string;
  /** Plain if absent. */
  readonly key?: AuditKey | undefined;
  readonly clock: Clock;
  readonly heads: HeadKeeper;
  readonly onProblem: (message: string) => void;
}

/** How far a chain has come. */
export interface ChainPosition {
  readonly seq: number;
  readonly prev: string | null;
}

/** Throws what the disk throws. */
export class ChainFiles {
  /** How large a file gets. */
  readonly fileBytes: number;
  readonly #options: ChainFilesOptions;
  readonly #parts: ChainParts;
  readonly #pid: number;
  readonly #maxBytes: number;
  #file: OpenFile | undefined;
  #recordsInFile = 0;
  #part = 0;
  #position: ChainPosition = { seq: 0, prev: null };
  #lastStart = -1;

  constructor(options: ChainFilesOptions, parts: ChainParts) {
    this.#options = options;
    this.#parts = parts;
    this.#pid = options.pid ?? process.pid;
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
    const largest = options.isJournal === true ? LARGEST_JOURNAL_FILE : LARGEST_FILE;
    this.fileBytes = Math.min(largest, Math.floor(this.#maxBytes / FILES_PER_LOG));
  }

  /** The one that is written to. */
  get current(): OpenFile | undefined {
    return this.#file;
  }

  get position(): ChainPosition {
    return this.#position;
  }

  /** Whether there are records in the current file that should have a chance to go by their age. */
  get isOld(): boolean {
    if (this.#options.maxDays === undefined || this.#recordsInFile === 0) return false;
    return this.#parts.clock.now() - this.#lastStart > LONGEST_FILE_MS;
  }

  /** As many of the records as still belong into the current file, in one write; 0 if it is full. */
  write(bodies: Iterable<string>): number {
    const file = this.#file;
    if (file === undefined || this.isOld) return 0;
    let [{ seq, prev }, text, count] = [this.#position, "", 0];
    for (const body of bodies) {
      const sealed = sealLine(seq, prev, body, this.#parts.key);
      const isFull = file.size + text.length + sealed.line.length > this.fileBytes;
      // A file takes one record at least, however small the log may be.
      if (isFull && (count > 0 || this.#recordsInFile > 0)) break;
      text += sealed.line;
      [seq, prev, count] = [seq + 1, sealed.hash, count + 1];
    }
    if (count === 0) return 0;
    file.append(text);
    this.#position = { seq, prev };
    this.#recordsInFile += count;
    return count;
  }

  begin(): void {
    const { dir, isJournal } = this.#options;
    const { chain, clock, heads, salt, key } = this.#parts;
    // Two files of one chain never share a name, also when the clock stands or goes back.
    const start = Math.max(clock.now(), this.#lastStart + 1);
    const others = listFiles(dir).filter((file) => file.chain !== chain);
    if (others.some((other) => hasRested(other))) heads.expectOthers();
    const file = new OpenFile(join(dir, fileName(start, this.#pid, chain)));
    this.#file = file;
    this.#lastStart = start;
    this.#recordsInFile = 0;
    try {
      this.#append({
        type: "header",
        time: new Date(start).toISOString(),
        chain,
        part: this.#part,
        process: { pid: this.#pid, host: hostname() },
        version: VERSION,
        salt,
        ...(key === undefined ? {} : { key: key.id }),
        seen: seenFiles(dir, chain, others),
      });
    } catch (error) {
      this.#file = undefined;
      file.close();
      rmSync(file.path, { force: true });
      throw error;
    }
    this.#part += 1;
    if (isJournal !== true) this.#prune(file);
  }

  /** Ends the current file; the chain goes on in the next one. */
  rotate(): void {
    this.#append({ type: "rotated", time: this.#now() });
    this.#file?.close();
    this.#file = undefined;
  }

  /** The current file is gone, and with it what was written after `position`. */
  forget(position: ChainPosition): void {
    this.#file?.close();
    this.#file = undefined;
    this.#position = position;
  }

  /** Writes down how far the chain has come. */
  moveHead({ closed }: { readonly closed: boolean }): void {
    const { seq, prev } = this.#position;
    if (this.#file === undefined || prev === null) return;
    const { heads, key } = this.#parts;
    const place = { file: this.#file.name, seq: seq - 1, hash: prev, closed };
    heads.moved(key === undefined ? place : { ...place, key: key.id });
  }

  close(): void {
    const file = this.#file;
    if (file === undefined) return;
    try {
      this.#append({ type: "closed", time: this.#now() });
      this.moveHead({ closed: true });
      file.close();
    } finally {
      this.#file = undefined;
    }
  }

  #prune(file: OpenFile): void {
    const { dir, maxFiles = MAX_FILES, maxDays } = this.#options;
    const { heads, onProblem } = this.#parts;
    try {
      const bounds = { maxBytes: this.#maxBytes, maxFiles, maxDays, reserve: this.fileBytes, now: Date.now() };
      pruneFolder(dir, file.name, bounds, (files) => {
        this.#append({ type: "pruned", time: this.#now(), files });
        heads.prune(files.map((each) => each.file));
      });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      onProblem(`Old audit files could not be removed from ${dir}: ${reason}`);
    }
  }

  #append(record: { readonly type: string; readonly [key: string]: unknown }): void {
    const { seq, prev } = this.#position;
    const sealed = sealLine(seq, prev, JSON.stringify(record), this.#parts.key);
    this.#file?.append(sealed.line);
    this.#position = { seq: seq + 1, prev: sealed.hash };
  }

  #now(): string {
    return new Date(this.#parts.clock.now()).toISOString();
  }
}
