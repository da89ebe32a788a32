/** Keeps the whole log, in the folder and in the store, within its size and age. Whole files go, oldest first. */
import { rm } from "node:fs/promises";
import { setImmediate as turn } from "node:timers/promises";
import type { Clock } from "../../base/clock.ts";
import type { StoredAudit } from "../../store/store.ts";
import { MAX_FILES } from "../../telemetry/audit/chain-files.ts";
import { isInUse, mayGrow } from "../../telemetry/audit/files.ts";
import { parseLine } from "../../telemetry/audit/line.ts";
import { seenFile, Surplus } from "../../telemetry/audit/prune.ts";
import type { SeenFile } from "../../telemetry/audit/record.ts";
import { listLog, type LogFile } from "../../telemetry/audit/whole-log.ts";
import type { Journal } from "./journal.ts";

/** Files that go by age go while nothing is written too. */
const EVERY_MS = 60 * 60 * 1000;

export interface RetentionBounds {
  readonly maxBytes: number;
  readonly maxDays?: number | undefined;
}

export interface RetentionOptions extends RetentionBounds {
  readonly dir: string;
  readonly store: StoredAudit;
  readonly journal: Pick<Journal, "currentFile" | "fileBytes" | "prune">;
  readonly clock: Clock;
}

export class Retention {
  readonly #options: RetentionOptions;
  /** Of the log when it was last looked at, and of what came since from this process. */
  #bytes = Number.POSITIVE_INFINITY;
  #appliedAt = Number.NEGATIVE_INFINITY;

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  /** So much was added to the store. */
  add(bytes: number): void {
    this.#bytes += bytes;
  }

  isDue(): boolean {
    const { clock, journal, maxBytes } = this.#options;
    return this.#bytes + journal.fileBytes > maxBytes || clock.now() - this.#appliedAt > EVERY_MS;
  }

  /** Only while no other process does the same on this folder. */
  async apply(): Promise<void> {
    const { dir, store, clock } = this.#options;
    const left = await this.#prune(await listLog(dir, store));
    this.#bytes = left.reduce((sum, file) => sum + file.size, 0);
    this.#appliedAt = clock.now();
  }

  /** While the store cannot be reached: the folder must not grow without end either. */
  async applyToFolder(): Promise<void> {
    const files = await listLog(this.#options.dir);
    await this.#prune(files);
  }

  /** What is left. */
  async #prune(files: readonly LogFile[]): Promise<LogFile[]> {
    const { maxBytes, maxDays, journal } = this.#options;
    const now = Date.now();
    const bounds = { maxBytes, maxDays, maxFiles: MAX_FILES, reserve: journal.fileBytes, now };
    const surplus = new Surplus(files, bounds);
    const victims = new Map<LogFile, SeenFile>();
    for (const file of files) {
      if (!surplus.includes(file) || file.name === journal.currentFile) continue;
      const seen = await this.#endOf(file, now);
      if (seen === undefined) continue;
      victims.set(file, seen);
      surplus.remove(file);
    }
    // Written before anything goes, so that a crash in between leaves nothing unexplained.
    if (victims.size === 0 || !journal.prune([...victims.values()])) return [...files];
    await this.#remove([...victims.keys()]);
    return files.filter((file) => !victims.has(file));
  }

  /** From the folder first: the other way round, a file could be taken in again. */
  async #remove(files: readonly LogFile[]): Promise<void> {
    for (const file of files) if (file.isInFolder) await rm(file.path, { force: true });
    for (const file of files) {
      if (file.kept === undefined) continue;
      // One by one: a file may have tens of thousands of lines.
      await this.#options.store.removeFiles([file.name]);
      await turn();
    }
  }

  /** The last record; undefined while a process may still write to the file. */
  async #endOf(file: LogFile, now: number): Promise<SeenFile | undefined> {
    if (file.isInFolder) return isInUse(file, now) ? undefined : seenFile(file);
    const lines = await this.#options.store.linesOf(file.name);
    const [header, last] = [lines[0], lines.at(-1)].map((line) => parseLine(line ?? ""));
    if (mayGrow(file, header?.type === "header" ? header : undefined, last, now)) return undefined;
    return { file: file.name, seq: last?.seq ?? -1, hash: last?.hash ?? "" };
  }
}
