/**
 * The slow work on the log, in a thread of its own: answering queries, verifying it, and taking its files into the store. They are
 * written first, by each process for itself, and know nothing of a database; here their lines are copied, and a file goes when it
 * has ended and every byte of it is in the store. Several processes may do this at once, and killed anywhere, the next run goes on:
 * a line is in the store or still in its file, or in both.
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { OutputOf } from "../../contract/operations.ts";
import type { Stats } from "../../contract/stats-schemas.ts";
import { asSentence, asToolcribError, type ErrorObject } from "../../model/errors.ts";
import type { StoredAudit } from "../../store/store.ts";
import {
  type AuditFile,
  blockOf,
  bytesOf,
  endsIn,
  endsLine,
  endsOf,
  isInUse,
  linesOf,
  listFiles,
  listLog,
  MAX_FILES,
  readBytes,
  readText,
  seenFile,
  surplusOf,
} from "../../telemetry/audit/files.ts";
import type { AuditKeys } from "../../telemetry/audit/key.ts";
import type { SeenFile } from "../../telemetry/audit/record.ts";
import { type AuditReport, verifyAudit } from "../../telemetry/audit/verify.ts";
import { type AuditQuery, pageOf } from "./query.ts";
import { callOfLine, type StatsQuery, statsOf, sumsOfFiles } from "./stats.ts";

/** Of one block, which is one transaction: a thousand lines. */
const BLOCK_BYTES = 512 * 1024;
/** How often files of other processes are looked at while there are any. */
const AGAIN_MS = 5000;
/** Files that go by age go while nothing is written too. */
const RETENTION_MS = 60 * 60 * 1000;
/** Who asks for figures does not wait for all lines of a large log that nobody has counted. */
const SUM_FOR_MS = 2000;
/** Those who follow the log look into the folder several times a second; nothing may come and go in between. */
const REST_MS = 5000;
/** With one file something may be wrong; with several it is the database. */
const MAX_FAILURES = 3;

export interface AuditKeeperOptions {
  /** Of the files. */
  readonly dir: string;
  /** Undefined for a hub without a store: then the files stay, and the log itself keeps them within its bounds. */
  readonly store: (() => Promise<StoredAudit>) | undefined;
  readonly keys: AuditKeys;
  /** Of the log that this process writes. */
  readonly chain: string;
  /** How large a file gets. */
  readonly fileBytes: number;
  /** Of the whole log, in the folder and in the store. */
  readonly maxBytes: number;
  readonly maxDays?: number | undefined;
  readonly clock: Clock;
  /** How long a file that has ended stays in the folder. */
  readonly restMs?: number;
}

/** `all`: files of every process. `last`: only what this one wrote, because it ends. */
export type IntakeScope = "all" | "last";

/** The result of taking in, for its caller to act on. */
export interface Intake {
  /** Nothing is left to do for so long. */
  readonly againMs: number;
  /** Files of which there are too many, or that are too old. They go with `remove`, once the log says so. */
  readonly surplus: readonly SeenFile[];
  readonly warnings: readonly string[];
  /** Why not everything could be taken in. */
  readonly failure: ErrorObject | undefined;
}

export class AuditKeeper {
  readonly #options: AuditKeeperOptions;
  /**
   * By name, with their size: files that have ended and are not what the store has of them, such as one with a torn last
   * line. They stay until they are too old, as evidence.
   */
  readonly #staying = new Map<string, number>();
  #running: Promise<unknown> = Promise.resolve();
  #warnings: string[] = [];
  /** Of the log when it was last looked at, and of what came since from here. */
  #bytes = Number.POSITIVE_INFINITY;
  #retainedAt = Number.NEGATIVE_INFINITY;
  #isMiscounting = false;
  #isClosing = false;

  constructor(options: AuditKeeperOptions) {
    this.#options = options;
  }

  async query(query: AuditQuery): Promise<OutputOf<"listAudit">> {
    const { dir, store } = this.#options;
    return pageOf(dir, await store?.(), query);
  }

  async stats(query: StatsQuery): Promise<Stats> {
    const { dir } = this.#options;
    const store = await this.#options.store?.();
    if (store === undefined) return statsOf(query, (wanted) => sumsOfFiles(dir, wanted));
    await this.#sumUp(store, SUM_FOR_MS);
    return statsOf(query, store.sums);
  }

  /** @param wroteHere As of `verifyAudit`. */
  async verify(wroteHere: boolean | undefined): Promise<AuditReport> {
    const { dir, keys, store } = this.#options;
    return verifyAudit(dir, { keys, wroteHere, kept: await store?.() });
  }

  /** One after the other. */
  takeIn(scope: IntakeScope): Promise<Intake> {
    if (scope === "last") this.#isClosing = true;
    const run = this.#running.then(() => this.#run());
    this.#running = run;
    return run;
  }

  /** From the folder first: the other way round, a file could be taken in again. */
  async remove(names: readonly string[]): Promise<void> {
    const { dir, store } = this.#options;
    for (const name of names) rmSync(join(dir, name), { force: true });
    // One by one: a file may have tens of thousands of lines.
    for (const name of names) await (await store?.())?.removeFiles([name]);
  }

  /** Told with the next intake. */
  warn(message: string): void {
    this.#warnings.push(message);
  }

  async #run(): Promise<Intake> {
    const failures: unknown[] = [];
    let [againMs, surplus]: [number, SeenFile[]] = [AGAIN_MS, []];
    let store: StoredAudit | undefined;
    try {
      store = await this.#options.store?.();
      if (store === undefined) throw new Error("there is no store");
      const isQuiet = await this.#takeAll(store, failures);
      if (isQuiet) againMs = RETENTION_MS;
    } catch (error) {
      failures.push(error);
    }
    try {
      // The folder must not grow without end either.
      if (!this.#isClosing) surplus = await this.#retain(store, failures.length > 0);
    } catch (error) {
      failures.push(error);
    }
    const failure = failures.length === 0 ? undefined : asToolcribError(failures[0]).toObject();
    return { againMs, surplus, warnings: this.#warnings.splice(0), failure };
  }

  /** Whether nothing will come of these files but what this process writes. */
  async #takeAll(store: StoredAudit, failures: unknown[]): Promise<boolean> {
    const { chain, dir, restMs = REST_MS } = this.#options;
    const listed = listFiles(dir).filter(({ name, size }) => this.#staying.get(name) !== size);
    const files = listed.filter((file) => file.chain === chain || !this.#isClosing);
    const current = files.findLast((file) => file.chain === chain);
    const stored = await store.files(files.map(({ name }) => name));
    const known = new Map(stored.map((each) => [each.file, each]));
    const now = Date.now();
    let isQuiet = true;
    for (const file of files) {
      try {
        await this.#take(store, file, known.get(file.name));
        const hasEnded = !this.#isClosing && now - file.modified > restMs && !isInUse(file, now);
        if (hasEnded) await this.#remove(store, file);
        isQuiet &&= hasEnded || file === current;
      } catch (error) {
        if (failures.push(error) === MAX_FAILURES) break;
      }
    }
    return isQuiet;
  }

  /** @param kept What the store has of it already. */
  async #take(store: StoredAudit, file: AuditFile, kept = { bytes: 0, lines: 0 }): Promise<void> {
    const { name, path, size } = file;
    let { bytes, lines } = kept;
    // Where no line ends, the store has something else of it, and nothing is put behind that.
    while (bytes < size && endsLine(path, bytes) && !(this.#isClosing && file.chain !== this.#options.chain)) {
      const read = readText(path, bytes, BLOCK_BYTES);
      const block = blockOf(file, lines, read.text);
      // If it is not added, another process does the same.
      if (read.bytes === 0 || !(await store.append(block))) break;
      bytes += read.bytes;
      lines += block.lines;
      this.#bytes += read.bytes;
    }
    if (bytes === kept.bytes || existsSync(path)) return;
    // It is in the store as a whole, or it was pruned: then what was added since would stay as a file without its end.
    const [stored] = await store.files([name]);
    if (stored !== undefined && stored.bytes < size) await store.removeFiles([name]);
  }

  /** Of a file that has ended. Nothing goes that the store does not have byte for byte. */
  async #remove(store: StoredAudit, { name, path, size }: AuditFile): Promise<void> {
    const text = readBytes(path, 0);
    const stored = Buffer.from(await store.textOf(name));
    // Removed by another process.
    if (text === undefined) return;
    const rest = text.subarray(stored.length);
    if (!text.subarray(0, stored.length).equals(stored))
      this.warn(`${path} is not what the store has of it. Both stay as they are; toolcrib audit verify tells more.`);
    else if (rest.length === 0 && size > 0) return rmSync(path, { force: true });
    // Another process takes it in.
    else if (rest.includes("\n")) return;
    this.#staying.set(name, size);
  }

  /** The records themselves are in the store, so a failure is not one of the intake. */
  async #sumUp(store: StoredAudit, forMs = Number.POSITIVE_INFINITY): Promise<void> {
    const end = performance.now() + forMs;
    try {
      let isMore = true;
      while (isMore && !this.#isClosing && performance.now() < end)
        isMore = await store.sumUpSome(callOfLine, Date.now());
      this.#isMiscounting = false;
    } catch (error) {
      const { message } = asToolcribError(error);
      if (!this.#isMiscounting)
        this.warn(`Calls could not be counted for the overview: ${asSentence(message)} It is tried again.`);
      this.#isMiscounting = true;
    }
  }

  /** The log stays within its size and age: whole files go, oldest first. */
  async #retain(store: StoredAudit | undefined, isFailing: boolean): Promise<SeenFile[]> {
    const { clock, dir, fileBytes: reserve, maxBytes, maxDays } = this.#options;
    const isDue = this.#bytes + reserve > maxBytes || clock.now() - this.#retainedAt > RETENTION_MS;
    if (!isDue && !isFailing) return [];
    // What goes was counted.
    if (store !== undefined && !isFailing) await this.#sumUp(store);
    // What cannot be asked now is looked at the next time.
    const files = await listLog(dir, store).catch(() => listLog(dir));
    const now = Date.now();
    const surplus = surplusOf(files, { maxBytes, maxDays, maxFiles: MAX_FILES, reserve, now });
    const victims: SeenFile[] = [];
    for (const file of files) {
      if (!surplus.has(file)) continue;
      const { isInFolder, name, path } = file;
      const ends = isInFolder ? endsOf(path) : endsIn(linesOf((await store?.textOf(name)) ?? ""));
      if (isInUse(file, now, ends)) continue;
      victims.push(seenFile(file, ends));
      surplus.remove(file);
    }
    this.#bytes = bytesOf(files);
    if (!isFailing) {
      this.#retainedAt = clock.now();
      await store?.pruneSums(now, maxDays);
      for (const name of this.#staying.keys()) if (!existsSync(join(dir, name))) this.#staying.delete(name);
    }
    return victims;
  }
}
