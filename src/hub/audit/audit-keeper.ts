/**
 * The slow work on the log, in a thread of its own: answering queries, verifying it, and taking its files into the store. They are
 * written first, by each process for itself, and know nothing of a database; here their lines are copied, and a file goes when it
 * has ended and every byte of it is in the store. Killed anywhere, the next run goes on: a line is in the store or still in its
 * file, or in both.
 */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { withLock } from "../../files/lock-file.ts";
import { systemErrorCode, ToolcribError } from "../../model/errors.ts";
import type { Stats } from "../../contract/stats-schemas.ts";
import type { StoredAudit, StoredSession } from "../../store/store.ts";
import {
  type AuditFile,
  blockOf,
  endsLine,
  isInUse,
  linesOf,
  listFiles,
  listLog,
  type LogFile,
  MAX_FILES,
  mayGrow,
  readText,
  seenFile,
  Surplus,
} from "../../telemetry/audit/files.ts";
import type { AuditKeys } from "../../telemetry/audit/key.ts";
import { parseLine } from "../../telemetry/audit/line.ts";
import type { SeenFile } from "../../telemetry/audit/record.ts";
import { type AuditReport, verifyAudit } from "../../telemetry/audit/verify.ts";
import { type AuditPage, type AuditQuery, pageOf } from "./query.ts";
import { callOfLine, type StatsQuery, statsOf, sumsOfFiles } from "./stats.ts";

/** Of one block, which is one transaction: a thousand lines. */
const BLOCK_BYTES = 512 * 1024;
/** How often files of other processes are looked at while there are any, and how long to wait after a failure. */
const AGAIN_MS = 5000;
/** Files that go by age go while nothing is written too. */
const RETENTION_MS = 60 * 60 * 1000;
const SUM_FOR_MS = 500;
const SUM_PAUSE_MS = 50;
/** Those who follow the log look into the folder several times a second; nothing may come and go in between. */
const REST_MS = 5000;
/** With one file something may be wrong; with several it is the database. */
const MAX_FAILURES = 3;

/** The log that this process writes. */
export interface Journal {
  readonly chain: string;
  /** How large a file gets. */
  readonly fileBytes: number;
  /** Says that files go by intention. False if that cannot be written: then they must stay. */
  prune(files: readonly SeenFile[]): boolean | Promise<boolean>;
  /** Begins another file if this one is old. */
  renew(): void | Promise<void>;
}

export interface AuditKeeperOptions {
  /** Of the files. */
  readonly dir: string;
  /** Undefined for a hub without one: then the files stay, and the log itself keeps them within its bounds. */
  readonly store: StoredAudit | undefined;
  readonly keys: AuditKeys;
  readonly journal: Journal;
  readonly clock: Clock;
  /** Of the whole log, in the folder and in the store. */
  readonly maxBytes: number;
  readonly maxDays?: number | undefined;
  /** Called once when something cannot be taken in, and again only after it could be. */
  readonly warn: (message: string) => void;
  /** How long a file that has ended stays in the folder. */
  readonly restMs?: number;
}

/** `own`: what this process wrote. `all`: that of others too, and files go. `due`: one of them, unless the store is down. */
export type IntakeScope = "own" | "all" | "due";

/** How much of a file has been taken in. */
interface Progress {
  readonly bytes: number;
  readonly lines: number;
}

const NOTHING: Progress = { bytes: 0, lines: 0 };

/** The part that a hub uses, whichever thread it runs in. */
export interface AuditKeeping extends Pick<AuditKeeper, "takeIn" | "query" | "stats" | "verify" | "close"> {
  /** Whether work costs no more than itself; if not, a thread must be started for it. */
  readonly isReady: boolean;
  /** Sessions are written here too, because their records change with each call. False if they are not. */
  putSessions(sessions: readonly StoredSession[]): Promise<boolean>;
}

/** In the thread of its caller. */
export class AuditKeeper {
  readonly isReady = true;
  readonly #options: AuditKeeperOptions;
  readonly #progress = new Map<string, Progress>();
  /**
   * By name, with their size: files that have ended and are not what the store has of them, such as one with a torn last
   * line. They stay until they are too old, as evidence.
   */
  readonly #staying = new Map<string, number>();
  #running: Promise<void> = Promise.resolve();
  /** The run that waits for the one in progress. */
  #next: { readonly isAll: boolean; done: Promise<void> } | undefined;
  #timer: { readonly due: number; readonly cancel: () => void } | undefined;
  #lastAll = Number.NEGATIVE_INFINITY;
  /** Of the log when it was last looked at, and of what came since from this process. */
  #bytes = Number.POSITIVE_INFINITY;
  #retainedAt = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #isMiscounting = false;
  #isClosing = false;

  constructor(options: AuditKeeperOptions) {
    this.#options = options;
  }

  query(query: AuditQuery): Promise<AuditPage> {
    const { dir, store } = this.#options;
    return pageOf(dir, store, query);
  }

  stats(query: StatsQuery): Promise<Stats> {
    const { dir, store } = this.#options;
    return statsOf(query, store?.sums ?? ((wanted) => sumsOfFiles(dir, wanted)));
  }

  /** @param wroteHere As of `verifyAudit`. */
  verify(wroteHere: boolean | undefined): Promise<AuditReport> {
    const { dir, keys, store } = this.#options;
    return verifyAudit(dir, { keys, wroteHere, kept: store });
  }

  async putSessions(): Promise<boolean> {
    return false;
  }

  /** Rejects if anything could not be taken in. */
  takeIn(scope: IntakeScope = "all"): Promise<void> {
    // A database that is down is tried again when its time has come.
    if (this.#options.store === undefined || (scope === "due" && this.#isFailing)) return Promise.resolve();
    const isDue = scope === "due" && this.#options.clock.now() - this.#lastAll > AGAIN_MS;
    const isAll = scope === "all" || isDue;
    // A run that has begun may have passed what was written since; one that waits will see it.
    if (this.#next !== undefined && (this.#next.isAll || !isAll)) return this.#next.done;
    const next = { isAll, done: Promise.resolve() };
    next.done = this.#running.then(() => {
      if (this.#next === next) this.#next = undefined;
      return this.#run(isAll);
    });
    this.#next = next;
    this.#running = next.done.catch(() => {});
    return next.done;
  }

  /** Whether there will be something to do soon that nobody has asked for. */
  get isWaiting(): boolean {
    return this.#timer !== undefined && this.#timer.due - this.#options.clock.now() < RETENTION_MS / 2;
  }

  /** Takes in what this process wrote and nothing else: whoever closes does not wait for the rest. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#timer?.cancel();
    await this.takeIn("own").catch(() => {});
  }

  #again(ms: number): void {
    const { clock } = this.#options;
    const due = clock.now() + ms;
    if (this.#isClosing || (this.#timer !== undefined && this.#timer.due <= due)) return;
    this.#timer?.cancel();
    const cancel = clock.after(ms, () => {
      this.#timer = undefined;
      this.takeIn().catch(() => {});
    });
    this.#timer = { due, cancel };
  }

  async #run(isAll: boolean): Promise<void> {
    const { dir, journal } = this.#options;
    try {
      const own = listFiles(dir).filter((file) => file.chain === journal.chain);
      // A thread before this one may have taken in some of it.
      await this.#learn(own.filter(({ name }) => !this.#progress.has(name)));
      const failures = await this.#takeAll(own);
      if (isAll && !this.#isClosing) failures.push(...(await this.#runOthers()));
      if (failures.length > 0) throw failures[0];
      this.#isFailing = false;
      // Calls are counted with the next run over all files.
      if (!isAll) this.#again(AGAIN_MS);
    } catch (error) {
      this.#fail(error);
      // The folder must not grow without end either. Whatever is wrong here too, the first failure is the one to report.
      if (isAll) await this.#underLock(async () => this.#retain(await listLog(dir))).catch(() => {});
      throw error;
    }
  }

  /** One process at a time: files must not go while another one takes them in. */
  async #runOthers(): Promise<unknown[]> {
    const { clock, dir, journal } = this.#options;
    this.#lastAll = clock.now();
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const failures = await this.#underLock(async () => {
      const files = listFiles(dir);
      const others = files.filter((file) => file.chain !== journal.chain && !this.#stays(file));
      await this.#learn(others);
      const failed = await this.#takeAll(others);
      // One file with which something is wrong does not keep the others.
      if (!this.#isClosing && failed.length < MAX_FAILURES) await this.#tidy(files);
      return failed;
    });
    if (failures !== undefined) return failures;
    // Another process has the lock. It counts too, but whoever asks here wants the calls of this one.
    if (!this.#isClosing) await this.#sumUp();
    this.#again(AGAIN_MS);
    return [];
  }

  /** Other processes may have taken in files of theirs, or of ours if this one comes after a crash. */
  async #learn(others: readonly AuditFile[]): Promise<void> {
    const grown = others.filter((file) => file.size > (this.#progress.get(file.name)?.bytes ?? 0));
    if (grown.length === 0) return;
    const stored = new Map((await this.#store.files()).map((each) => [each.file, each]));
    for (const { name, path, size } of grown) {
      const { bytes, lines } = stored.get(name) ?? NOTHING;
      // Otherwise the store has something else of it, and nothing is put behind that.
      this.#progress.set(name, { bytes: endsLine(path, bytes) ? bytes : size, lines });
    }
  }

  async #takeAll(files: readonly AuditFile[]): Promise<unknown[]> {
    const failures: unknown[] = [];
    for (const file of files) {
      try {
        await this.#take(file);
      } catch (error) {
        failures.push(error);
        if (failures.length === MAX_FAILURES) break;
      }
    }
    return failures;
  }

  async #take(file: AuditFile): Promise<void> {
    const { journal } = this.#options;
    for (;;) {
      if (this.#isClosing && file.chain !== journal.chain) return;
      const { bytes, lines } = this.#progress.get(file.name) ?? NOTHING;
      const read = bytes < file.size ? readText(file.path, bytes, BLOCK_BYTES) : undefined;
      if (read === undefined || read.bytes === 0) return;
      const block = blockOf(file, lines, read.text);
      if (await this.#store.append(block)) {
        this.#progress.set(file.name, { bytes: bytes + read.bytes, lines: lines + block.lines });
        this.#bytes += read.bytes;
        continue;
      }
      // Another process has put some of it there, or has pruned the file.
      await this.#learn([file]);
      if ((this.#progress.get(file.name) ?? NOTHING).lines === lines) return;
    }
  }

  /** Removes what the folder need not hold any more, and keeps the whole log within its bounds. */
  async #tidy(files: readonly AuditFile[]): Promise<void> {
    const { clock, dir, journal, maxBytes, maxDays, restMs = REST_MS } = this.#options;
    const names = new Set(files.map((file) => file.name));
    // What other processes have removed.
    for (const map of [this.#progress, this.#staying]) {
      for (const name of map.keys()) if (!names.has(name)) map.delete(name);
    }
    await journal.renew();
    const now = Date.now();
    const left = files.filter((file) => !this.#stays(file));
    const ended = left.filter((file) => now - file.modified > restMs && !isInUse(file, now));
    for (const file of ended) if (!this.#isClosing) await this.#remove(file);
    // Before files go with calls that are not counted yet.
    await this.#sumUp();
    const isDue = this.#bytes + journal.fileBytes > maxBytes || clock.now() - this.#retainedAt > RETENTION_MS;
    if (isDue && !this.#isClosing) {
      this.#bytes = await this.#retain(await listLog(dir, this.#store));
      this.#retainedAt = clock.now();
      await this.#store.pruneSums(now, maxDays);
    }
    const current = files.findLast((file) => file.chain === journal.chain);
    this.#again(left.every((file) => ended.includes(file) || file === current) ? RETENTION_MS : AGAIN_MS);
  }

  /** For as long as whoever asks may wait; the lines of a large log that an older version took in are counted in several goes. */
  async #sumUp(): Promise<void> {
    const { warn } = this.#options;
    const end = performance.now() + SUM_FOR_MS;
    try {
      while (!this.#isClosing && (await this.#store.sumUpSome(callOfLine, Date.now()))) {
        if (performance.now() > end) return this.#again(SUM_PAUSE_MS);
      }
      this.#isMiscounting = false;
    } catch (error) {
      // The records themselves are in the store.
      const reason = error instanceof Error ? error.message : String(error);
      if (!this.#isMiscounting) warn(`Calls could not be counted for the overview: ${reason}. It is tried again.`);
      this.#isMiscounting = true;
    }
  }

  #stays(file: AuditFile): boolean {
    return this.#staying.get(file.name) === file.size;
  }

  async #remove({ name, path, size }: AuditFile): Promise<void> {
    const { warn } = this.#options;
    const { bytes } = this.#progress.get(name) ?? NOTHING;
    const isWhole = size > 0 && bytes === size;
    // There is more to take in, which failed.
    if (!isWhole && readText(path, bytes, BLOCK_BYTES).bytes > 0) return;
    if (isWhole && isText(path, await this.#store.textOf(name))) {
      rmSync(path, { force: true });
      this.#progress.delete(name);
      return;
    }
    this.#staying.set(name, size);
    if (isWhole)
      warn(`${path} is not what the store has of it. Both stay as they are; toolcrib audit verify tells more.`);
  }

  /** Keeps the log within its size and age: whole files go, oldest first. Resolves with how much is left. */
  async #retain(files: readonly LogFile[]): Promise<number> {
    const { maxBytes, maxDays, journal } = this.#options;
    const now = Date.now();
    const surplus = new Surplus(files, { maxBytes, maxDays, maxFiles: MAX_FILES, reserve: journal.fileBytes, now });
    const victims = new Map<LogFile, SeenFile>();
    for (const file of files) {
      const seen = surplus.includes(file) ? await this.#endOf(file, now) : undefined;
      if (seen === undefined) continue;
      victims.set(file, seen);
      surplus.remove(file);
    }
    const total = files.reduce((sum, { size }) => sum + size, 0);
    // Written before anything goes, so that a crash in between leaves nothing unexplained.
    if (victims.size === 0 || !(await journal.prune([...victims.values()]))) return total;
    // From the folder first: the other way round, a file could be taken in again.
    for (const { path, isInFolder } of victims.keys()) if (isInFolder) rmSync(path, { force: true });
    // One by one: a file may have tens of thousands of lines.
    for (const { name, kept } of victims.keys()) if (kept !== undefined) await this.#store.removeFiles([name]);
    return total - [...victims.keys()].reduce((sum, { size }) => sum + size, 0);
  }

  /** The last record; undefined while a process may still write to the file. */
  async #endOf(file: LogFile, now: number): Promise<SeenFile | undefined> {
    if (file.isInFolder) return isInUse(file, now) ? undefined : seenFile(file);
    const lines = linesOf(await this.#store.textOf(file.name));
    const [header, last] = [lines[0], lines.at(-1)].map((line) => parseLine(line ?? ""));
    if (mayGrow(file, header?.type === "header" ? header : undefined, last, now)) return undefined;
    return { file: file.name, seq: last?.seq ?? -1, hash: last?.hash ?? "" };
  }

  #fail(error: unknown): void {
    this.#again(AGAIN_MS);
    if (this.#isFailing) return;
    this.#isFailing = true;
    const reason = error instanceof Error ? error.message : String(error);
    this.#options.warn(
      `Audit records could not be put into the store: ${reason}. They stay in ${this.#options.dir} until they can be.`,
    );
  }

  /** Nothing that needs it runs where there is none. */
  get #store(): StoredAudit {
    const { store } = this.#options;
    if (store === undefined) throw new Error("there is no store");
    return store;
  }

  /** undefined if another process holds it, which does the same work. */
  async #underLock<T>(task: () => Promise<T>): Promise<T | undefined> {
    try {
      return await withLock(join(this.#options.dir, "intake"), task, { waitMs: 0 });
    } catch (error) {
      if (error instanceof ToolcribError && error.code === "conflict") return undefined;
      throw error;
    }
  }
}

/** Whether this is what the file holds; true of one that is not there any more. */
function isText(path: string, text: string): boolean {
  try {
    return readFileSync(path).equals(Buffer.from(text));
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return true;
    throw error;
  }
}
