/**
 * Takes the audit journal into the store. The files are written first, by each process for itself, and know nothing of a
 * database; here their lines are copied, and a file goes when it has ended and every byte of it is in the store. Killed
 * anywhere, the next run goes on: a line is in the store or still in its file, or in both.
 */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { withLock } from "../../files/lock-file.ts";
import type { Clock } from "../../base/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Settings, StoredAudit } from "../../store/store.ts";
import { type AuditFile, isInUse, listFiles } from "../../telemetry/audit/files.ts";
import { type Journal, journalKey } from "./journal.ts";
import { endsLine, holdsExactly, type Progress, readLines } from "./journal-file.ts";
import { Retention, type RetentionBounds } from "./retention.ts";
import { storedLine } from "./stored-line.ts";

/** Of one transaction: a few milliseconds of SQLite. */
const LINES_AT_ONCE = 100;
/** Records that are written meanwhile go along. */
const SOON_MS = 250;
/** How often files of other processes are looked at while there are any, and how long to wait after a failure. */
const AGAIN_MS = 5000;
/** Files by age go while nothing is written too. */
const RETENTION_MS = 60 * 60 * 1000;
/** Those who follow the log look into the folder several times a second; nothing may come and go in between. */
const REST_MS = 5000;
/** With one file something may be wrong; with several it is the database. */
const MOST_FAILURES = 3;

export interface IntakeOptions extends RetentionBounds {
  /** Of the journal. */
  readonly dir: string;
  readonly store: StoredAudit;
  /** Knows whether anybody wrote to this journal before. */
  readonly settings: Pick<Settings, "setOnce">;
  readonly journal: Journal;
  readonly clock: Clock;
  /** Told once when something cannot be taken in, and again only after it could be. */
  readonly warn: (message: string) => void;
  /** How long a file that has ended stays in the folder. */
  readonly restMs?: number;
}

/** `own`: what this process wrote. `all`: that of others too, and files go. */
type Scope = "own" | "all";

export class AuditIntake {
  readonly #options: IntakeOptions;
  readonly #retention: Retention;
  readonly #progress = new Map<string, Progress>();
  /**
   * By name, with their size: files that have ended and are not what the store has of them, such as one with a torn last
   * line. They stay until they are too old, as evidence.
   */
  readonly #staying = new Map<string, number>();
  /** By name, with their size: files that end within a line. */
  readonly #torn = new Map<string, number>();
  #running: Promise<void> = Promise.resolve();
  /** The run that waits for the one under way. */
  #next: { readonly scope: Scope; done: Promise<void> } | undefined;
  readonly #timers = new Map<Scope, { readonly due: number; readonly cancel: () => void }>();
  #lastAll = Number.NEGATIVE_INFINITY;
  #knowsBefore = false;
  #isFailing = false;
  #isClosing = false;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#retention = new Retention(options);
  }

  /** Something was written. */
  soon(): void {
    const { clock } = this.#options;
    const scope = clock.now() - this.#lastAll > AGAIN_MS ? "all" : "own";
    this.#schedule(scope, this.#isFailing ? AGAIN_MS : SOON_MS);
  }

  /** Rejects if anything could not be taken in. */
  takeIn(scope: Scope = "all"): Promise<void> {
    // A run that has begun may have passed what was written since; one that waits will see it.
    if (this.#next?.scope === scope || this.#next?.scope === "all") return this.#next.done;
    const next = { scope, done: Promise.resolve() };
    next.done = this.#running.then(() => {
      if (this.#next === next) this.#next = undefined;
      return this.#run(scope);
    });
    this.#next = next;
    this.#running = next.done.catch(() => {});
    return next.done;
  }

  /**
   * Whoever wrote to this journal before left a head behind, also where all its files are in the store by now. To be
   * called before the log is closed.
   */
  async expectHeads(): Promise<void> {
    const { dir, journal, settings } = this.#options;
    if (this.#knowsBefore || journal.currentFile === undefined) return;
    const first = await settings.setOnce(journalKey(dir), journal.chain);
    this.#knowsBefore = true;
    if (first !== journal.chain) journal.expectHeads();
  }

  /** Takes in what this process wrote and nothing else: whoever closes does not wait for the rest. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const { cancel } of this.#timers.values()) cancel();
    this.#timers.clear();
    await this.takeIn("own").catch(() => {});
  }

  #schedule(scope: Scope, ms: number): void {
    const { clock } = this.#options;
    const [due, before] = [clock.now() + ms, this.#timers.get(scope)];
    if (this.#isClosing || (before !== undefined && before.due <= due)) return;
    before?.cancel();
    const cancel = clock.after(ms, () => {
      this.#timers.delete(scope);
      this.takeIn(scope).catch(() => {});
    });
    this.#timers.set(scope, { due, cancel });
  }

  async #run(scope: Scope): Promise<void> {
    try {
      await this.expectHeads();
      const { dir, journal } = this.#options;
      const failures = await this.#takeAll(listFiles(dir).filter((file) => file.chain === journal.chain));
      if (scope === "all" && !this.#isClosing) failures.push(...(await this.#runOthers()));
      if (failures.length > 0) throw failures[0];
      this.#isFailing = false;
    } catch (error) {
      this.#fail(error);
      if (scope === "all") await this.#retainFolder();
      throw error;
    }
  }

  /** One process at a time: files must not go while another one takes them in. */
  async #runOthers(): Promise<unknown[]> {
    const { clock, dir, journal } = this.#options;
    this.#lastAll = clock.now();
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const failures = await underLock(dir, async () => {
      const files = listFiles(dir);
      const others = files.filter((file) => file.chain !== journal.chain && !this.#stays(file));
      await this.#learn(others);
      const failed = await this.#takeAll(others);
      // One file with which something is wrong does not keep the others.
      if (!this.#isClosing && failed.length < MOST_FAILURES) await this.#tidy(files);
      return failed;
    });
    if (failures === undefined) this.#schedule("all", AGAIN_MS);
    return failures ?? [];
  }

  /** Other processes may have taken in files of theirs, or of ours if this one comes after a crash. */
  async #learn(others: readonly AuditFile[]): Promise<void> {
    const { store } = this.#options;
    const grown = others.filter((file) => file.size > (this.#progress.get(file.name)?.bytes ?? 0));
    if (grown.length === 0) return;
    const stored = new Map((await store.files()).map((each) => [each.file, each]));
    for (const { name, path } of grown) {
      const { bytes = 0, lines = 0, lastSeq = -1 } = stored.get(name) ?? {};
      // Otherwise lines are missing in between; all of them are offered again, and those that are there stay as they are.
      const isSound = lastSeq === lines - 1 && (await endsLine(path, bytes));
      this.#progress.set(name, isSound ? { bytes, lines } : { bytes: 0, lines: 0 });
    }
  }

  async #takeAll(files: readonly AuditFile[]): Promise<unknown[]> {
    const failures: unknown[] = [];
    for (const file of files) {
      try {
        await this.#take(file);
      } catch (error) {
        failures.push(error);
        if (failures.length === MOST_FAILURES) break;
      }
    }
    return failures;
  }

  async #take(file: AuditFile): Promise<void> {
    const isOwn = file.chain === this.#options.journal.chain;
    for (;;) {
      if (this.#isClosing && !isOwn) return;
      const { bytes, lines } = this.#progress.get(file.name) ?? { bytes: 0, lines: 0 };
      if (bytes >= file.size) return;
      const read = await readLines(file.path, bytes, LINES_AT_ONCE);
      if (read.lines.length === 0) {
        this.#torn.set(file.name, file.size);
        return;
      }
      await this.#options.store.append(read.lines.map((line, index) => storedLine(file, lines + index, line)));
      this.#progress.set(file.name, { bytes: bytes + read.bytes, lines: lines + read.lines.length });
      this.#retention.add(read.bytes);
      await turn();
    }
  }

  /** Removes what the journal need not hold any more, and keeps the whole log within its bounds. */
  async #tidy(files: readonly AuditFile[]): Promise<void> {
    const { journal } = this.#options;
    this.#forget(files);
    journal.renew();
    const past = files.filter((file) => file.name !== journal.currentFile && !this.#stays(file));
    const ended: AuditFile[] = [];
    for (const file of past) {
      if (!this.#hasRested(file)) continue;
      // Reads both ends of the file.
      if (!isInUse(file, Date.now())) ended.push(file);
      await turn();
    }
    for (const file of ended) if (!this.#isClosing) await this.#remove(file);
    if (!this.#isClosing && this.#retention.isDue()) await this.#retention.apply();
    this.#schedule("all", past.length > ended.length ? AGAIN_MS : RETENTION_MS);
  }

  #hasRested({ modified }: AuditFile): boolean {
    return Date.now() - modified > (this.#options.restMs ?? REST_MS);
  }

  /** What other processes have removed. */
  #forget(files: readonly AuditFile[]): void {
    const names = new Set(files.map((file) => file.name));
    for (const map of [this.#progress, this.#torn, this.#staying]) {
      for (const name of map.keys()) if (!names.has(name)) map.delete(name);
    }
  }

  #stays(file: AuditFile): boolean {
    return this.#staying.get(file.name) === file.size;
  }

  async #remove(file: AuditFile): Promise<void> {
    const { store, warn } = this.#options;
    const isWhole = this.#progress.get(file.name)?.bytes === file.size && file.size > 0;
    if (isWhole && (await holdsExactly(file.path, await store.linesOf(file.name)))) {
      await rm(file.path, { force: true });
      for (const map of [this.#progress, this.#torn, this.#staying]) map.delete(file.name);
    } else if (isWhole || file.size === 0 || this.#torn.get(file.name) === file.size) {
      this.#staying.set(file.name, file.size);
      if (isWhole)
        warn(`${file.path} is not what the store has of it. Both stay as they are; toolcrib audit verify tells more.`);
    }
    await turn();
  }

  async #retainFolder(): Promise<void> {
    const { dir, journal, maxBytes } = this.#options;
    const bytes = listFiles(dir).reduce((sum, file) => sum + file.size, journal.fileBytes);
    // Whatever is wrong here too, the failure that led here is the one to tell of.
    if (bytes > maxBytes) await underLock(dir, () => this.#retention.applyToFolder()).catch(() => {});
  }

  #fail(error: unknown): void {
    this.#schedule("all", AGAIN_MS);
    if (this.#isFailing) return;
    this.#isFailing = true;
    const reason = error instanceof Error ? error.message : String(error);
    this.#options.warn(
      `Audit records could not be put into the store: ${reason}. They stay in ${this.#options.dir} until they can be.`,
    );
  }
}

/** undefined if another process holds it, which does the same work. */
async function underLock<T>(dir: string, task: () => Promise<T>): Promise<T | undefined> {
  try {
    return await withLock(join(dir, "intake"), task, { waitMs: 0 });
  } catch (error) {
    if (error instanceof ToolcribError && error.code === "conflict") return undefined;
    throw error;
  }
}
