/** The audit log that one process writes: a chain of records over one or more files. */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../model/clock.ts";
import { TurnoverMap } from "../../model/turnover.ts";
import { VERSION } from "../../model/version.ts";
import type { AuditSink, CallRecord, SentArguments, StartRecord } from "../call-record.ts";
import { type BegunCall, begunCall, type BodyOptions, callBody, decisionBody, eventBody, startBody } from "./body.ts";
import { fileName, hasRested, listFiles } from "./files.ts";
import { HeadKeeper } from "./head-keeper.ts";
import { sealLine } from "./line.ts";
import { closeOnExit } from "./live-logs.ts";
import { OpenFile } from "./open-file.ts";
import { filesToPrune, seenFile } from "./prune.ts";
import { type DecisionRecord, type EventRecord, WITHHELD } from "./record.ts";
import { WaitingRecords } from "./waiting-records.ts";

const DEFAULT_MAX_BYTES = 100 * 1024 * 1024;
/** Files are read whole when they are verified. */
const LARGEST_FILE = 16 * 1024 * 1024;
const FILES_PER_LOG = 8;
/** Commands write one small file each. */
const MAX_FILES = 10_000;
/** Waiting records while the disk takes nothing; the oldest go first. */
const MAX_PENDING_BYTES = 4 * 1024 * 1024;
/** Calls under way of which nothing is masked or hashed a second time when they end. */
const MOST_BEGUN = 1000;
const RETRY_MS = 5000;
/** How often, and after how much, it is looked whether the file is still in its place. A look costs as much as a write. */
const LOOK_MS = 100;
const LOOK_AFTER_LENGTH = 256 * 1024;
const SEEN_FILES = 8;
/** More would make a line that is too long. */
const PRUNED_PER_RECORD = 200;

export interface AuditLogOptions {
  /** `$TOOLCRIB_HOME/audit`; made when the first record is written. */
  readonly dir: string;
  /** Of all files together. */
  readonly maxBytes?: number;
  readonly maxFiles?: number;
  readonly clock?: Clock;
  readonly pid?: number;
  /** Keeps arguments as text too, masked and cut. */
  readonly keepArguments?: boolean;
  /** Masks secrets. */
  readonly redact?: (text: string) => string;
  /** Told once when records cannot be written, and again only after they could be. */
  readonly onProblem?: (message: string) => void;
}

/** Nothing here throws at a caller: a call must not fail because its record cannot be kept. */
export class AuditLog implements AuditSink {
  readonly chain = randomBytes(8).toString("hex");
  readonly #dir: string;
  readonly #maxBytes: number;
  readonly #maxFiles: number;
  readonly #fileBytes: number;
  readonly #clock: Clock;
  readonly #pid: number;
  readonly #body: BodyOptions;
  readonly #onProblem: (message: string) => void;
  readonly #forgetExit: () => void;
  readonly #heads: HeadKeeper;
  readonly #begun = new TurnoverMap<string, BegunCall>();
  #file: OpenFile | undefined;
  #recordsInFile = 0;
  #part = 0;
  #seq = 0;
  #prev: string | null = null;
  #lastStart = -1;
  readonly #pending = new WaitingRecords();
  /** What was written since the file was last seen in its place, and how far the chain was then. */
  #unseen: string[] = [];
  #unseenLength = 0;
  #seen: { readonly seq: number; readonly prev: string | null } = { seq: 0, prev: null };
  #cancelLook: (() => void) | undefined;
  #timer: NodeJS.Immediate | undefined;
  /** Calls that wait for their begin to be written. */
  #begins: PromiseWithResolvers<void> | undefined;
  #failing = false;
  #retryAt = 0;
  #cancelRetry = (): void => {};
  #lost = 0;
  #lostUntold = 0;
  #closing = false;
  #closed = false;

  constructor(options: AuditLogOptions) {
    this.#dir = options.dir;
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
    this.#maxFiles = options.maxFiles ?? MAX_FILES;
    this.#fileBytes = Math.min(LARGEST_FILE, Math.floor(this.#maxBytes / FILES_PER_LOG));
    this.#clock = options.clock ?? systemClock;
    this.#pid = options.pid ?? process.pid;
    this.#onProblem = options.onProblem ?? (() => {});
    this.#body = {
      salt: randomBytes(16).toString("hex"),
      keepArguments: options.keepArguments ?? false,
      redact: options.redact ?? ((text) => text),
    };
    this.#forgetExit = closeOnExit(this);
    this.#heads = new HeadKeeper({
      dir: this.#dir,
      chain: this.chain,
      clock: this.#clock,
      onLost: (what) => this.#headsLost(what),
      onProblem: this.#onProblem,
    });
  }

  /** How many records could not be kept. */
  get lost(): number {
    return this.#lost;
  }

  /**
   * Written before the caller goes on: what is called next may be what kills this process. Calls that begin in the same
   * turn of the event loop, as they do under load, share one write; the promise resolves after it.
   */
  begin(record: StartRecord, sent?: SentArguments): Promise<void> | undefined {
    const isAlone = this.#begun.size === 0;
    this.#add(() => {
      const begun = begunCall(record, sent, this.#body);
      if (this.#begun.size < MOST_BEGUN) this.#begun.set(record.callId, begun);
      return startBody(begun);
    });
    if (isAlone || this.#closed) {
      this.#flush();
      return undefined;
    }
    this.#flushSoon();
    this.#begins ??= Promise.withResolvers<void>();
    return this.#begins.promise;
  }

  write(record: CallRecord, sent?: SentArguments): void {
    this.#add(() => callBody(record, sent, this.#begun.get(record.callId), this.#body));
    this.#begun.delete(record.callId);
    this.#flushSoon();
  }

  withhold(callId: string): void {
    this.#begun.delete(callId);
    this.event({ time: this.#now(), event: WITHHELD, callId });
  }

  decision(record: DecisionRecord): void {
    this.#add(() => decisionBody(record, this.#body));
    this.#flushSoon();
  }

  event(record: EventRecord): void {
    this.#add(() => eventBody(record, this.#body));
    this.#flushSoon();
  }

  /** Writes what waits, now. Otherwise it is written at the end of the turn of the event loop in which it came. */
  flush(): void {
    this.#flush();
    this.#look();
    this.#flush();
  }

  #flush(): void {
    if (this.#timer !== undefined) clearImmediate(this.#timer);
    this.#timer = undefined;
    this.#writeOut();
    // Whatever became of the write, calls do not wait for the disk to be mended.
    this.#begins?.resolve();
    this.#begins = undefined;
  }

  #writeOut(): void {
    if (this.#pending.count === 0 || (this.#failing && this.#clock.now() < this.#retryAt)) return;
    try {
      if (this.#lostUntold > 0) this.#tellLost();
      this.#writePending();
      this.#failing = false;
      if (!this.#closing) this.#moveHead();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Writes what waits and ends the chain. Safe to call twice. */
  close(): void {
    if (this.#closed) return;
    this.#retryAt = 0;
    this.#closing = true;
    this.#look();
    this.#flush();
    this.#closed = true;
    this.#heads.stop();
    this.#cancelRetry();
    this.#cancelLook?.();
    this.#forgetExit();
    this.#drop(this.#pending.count);
    try {
      if (this.#file !== undefined) {
        this.#append({ type: "closed", time: this.#now() });
        this.#moveHead();
      }
      this.#file?.close();
    } catch (error) {
      this.#fail(error);
    }
    this.#file = undefined;
  }

  /** The text is made at once, because the caller may change its arguments as soon as the call has ended. */
  #add(make: () => string): void {
    if (this.#closed) {
      this.#lost += 1;
      return;
    }
    let body: string;
    try {
      body = make();
    } catch {
      this.#lost += 1;
      this.#lostUntold += 1;
      return;
    }
    this.#pending.add(body);
    if (this.#pending.length > MAX_PENDING_BYTES) {
      this.#flush();
      while (this.#pending.length > MAX_PENDING_BYTES) this.#drop(1);
    }
  }

  #flushSoon(): void {
    if (this.#closed) return;
    this.#timer ??= setImmediate(() => {
      this.#timer = undefined;
      this.#flush();
    });
  }

  /** In batches, one write each. What is not written keeps waiting, and the chain goes on from what is. */
  #writePending(): void {
    while (this.#pending.count > 0) {
      const file = this.#openFile();
      let [seq, prev, text, count] = [this.#seq, this.#prev, "", 0];
      for (const body of this.#pending) {
        const sealed = sealLine(seq, prev, body);
        const isFull = file.size + text.length + sealed.line.length > this.#fileBytes;
        // A file takes one record at least, however small the log may be.
        if (isFull && (count > 0 || this.#recordsInFile > 0)) break;
        text += sealed.line;
        [seq, prev, count] = [seq + 1, sealed.hash, count + 1];
      }
      if (count === 0) {
        this.#look();
        if (this.#file === file) this.#rotate(file);
        continue;
      }
      file.append(text);
      this.#seq = seq;
      this.#prev = prev;
      this.#recordsInFile += count;
      this.#written(this.#pending.take(count));
    }
  }

  #written(bodies: readonly string[]): void {
    for (const body of bodies) {
      this.#unseenLength += body.length;
      this.#unseen.push(body);
    }
    if (this.#closing) return;
    if (this.#unseenLength > LOOK_AFTER_LENGTH) return this.#look();
    this.#cancelLook ??= this.#clock.after(LOOK_MS, () => {
      this.#cancelLook = undefined;
      this.#look();
      this.#flush();
    });
  }

  /** If the file is gone, what was written to it since the last look waits again, and will begin a new one. */
  #look(): void {
    if (this.#file?.isRemoved === true) {
      this.#onProblem(`The audit file ${this.#file.path} was removed while it was in use; a new one is begun.`);
      this.#file.close();
      this.#file = undefined;
      this.#pending.putFirst(this.#unseen);
      ({ seq: this.#seq, prev: this.#prev } = this.#seen);
    }
    this.#unseen = [];
    this.#unseenLength = 0;
    this.#seen = { seq: this.#seq, prev: this.#prev };
  }

  #openFile(): OpenFile {
    if (this.#file !== undefined) return this.#file;
    // Two files of one chain never share a name, also when the clock stands or goes back.
    const start = Math.max(this.#clock.now(), this.#lastStart + 1);
    const others = listFiles(this.#dir).filter((file) => file.chain !== this.chain);
    if (others.some((other) => hasRested(other))) this.#heads.expectOthers();
    const file = new OpenFile(join(this.#dir, fileName(start, this.#pid, this.chain)));
    this.#file = file;
    this.#lastStart = start;
    this.#recordsInFile = 0;
    try {
      this.#append({
        type: "header",
        time: new Date(start).toISOString(),
        chain: this.chain,
        part: this.#part,
        process: { pid: this.#pid, host: hostname() },
        version: VERSION,
        salt: this.#body.salt,
        seen: others.slice(-SEEN_FILES).map(seenFile),
      });
    } catch (error) {
      this.#file = undefined;
      file.close();
      rmSync(file.path, { force: true });
      throw error;
    }
    this.#part += 1;
    this.#prune(file);
    this.#look();
    return file;
  }

  #rotate(file: OpenFile): void {
    this.#append({ type: "rotated", time: this.#now() });
    file.close();
    this.#file = undefined;
  }

  /** The marker is written before the files go, so that a crash in between leaves nothing unexplained. */
  #prune(file: OpenFile): void {
    try {
      const bounds = { maxBytes: this.#maxBytes, maxFiles: this.#maxFiles, reserve: this.#fileBytes, now: Date.now() };
      const victims = filesToPrune(listFiles(this.#dir), file.name, bounds);
      for (let from = 0; from < victims.length; from += PRUNED_PER_RECORD) {
        const some = victims.slice(from, from + PRUNED_PER_RECORD);
        this.#append({ type: "pruned", time: this.#now(), files: some.map(seenFile) });
        for (const victim of some) rmSync(victim.path, { force: true });
        this.#heads.prune(some.map((victim) => victim.name));
      }
    } catch (error) {
      this.#onProblem(`Old audit files could not be removed from ${this.#dir}: ${reasonOf(error)}`);
    }
  }

  #append(record: { readonly type: string; readonly [key: string]: unknown }): void {
    const sealed = sealLine(this.#seq, this.#prev, JSON.stringify(record));
    this.#file?.append(sealed.line);
    this.#seq += 1;
    this.#prev = sealed.hash;
  }

  #moveHead(): void {
    if (this.#file === undefined || this.#prev === null) return;
    this.#heads.moved({ file: this.#file.name, seq: this.#seq - 1, hash: this.#prev, closed: this.#closed });
  }

  /** They are written anew with our own alone, so this record is all that is left to show it. */
  #headsLost(what: "missing" | "damaged"): void {
    this.#onProblem(
      `heads.json in ${this.#dir} ${what === "missing" ? "was removed" : "was damaged"}: of older chains it cannot be told any more whether their ends were cut off.`,
    );
    if (!this.#closed) this.event({ time: this.#now(), event: "audit.heads_lost", details: { what } });
  }

  #tellLost(): void {
    const details = { count: this.#lostUntold };
    this.#pending.putFirst([eventBody({ time: this.#now(), event: "audit.lost", details }, this.#body)]);
    this.#lostUntold = 0;
  }

  #drop(count: number): void {
    const dropped = this.#pending.take(count).length;
    this.#lost += dropped;
    this.#lostUntold += dropped;
  }

  #fail(error: unknown): void {
    this.#retryAt = this.#clock.now() + RETRY_MS;
    this.#cancelRetry();
    if (!this.#closed) this.#cancelRetry = this.#clock.after(RETRY_MS, () => this.#flush());
    if (this.#failing) return;
    this.#failing = true;
    this.#onProblem(`Audit records cannot be written to ${this.#dir}: ${reasonOf(error)}. Calls go on without them.`);
  }

  #now(): string {
    return new Date(this.#clock.now()).toISOString();
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
