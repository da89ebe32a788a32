/** The audit log that one process writes: a chain of records over one or more files, and the one writer that appends to it. */
import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, fstatSync, ftruncateSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../base/clock.ts";
import { ChurnMap } from "../../base/maps.ts";
import { asToolcribError } from "../../model/errors.ts";
import { VERSION } from "../../model/version.ts";
import type { AuditSink, CallContent, CallRecord, StartRecord } from "../call-record.ts";
import { type BegunCall, begunCall, type BodyOptions, callBody, decisionBody, eventBody, startBody } from "./body.ts";
import {
  type AuditFile,
  endsOf,
  fileName,
  filesToPrune,
  hasRested,
  HEAD_MS,
  listFiles,
  MAX_FILES,
  seenFile,
} from "./files.ts";
import { HeadKeeper, readHeads } from "./heads.ts";
import { type AuditKeys, NO_KEYS } from "./key.ts";
import { sealLine } from "./line.ts";
import { type DecisionRecord, type EventRecord, type SeenFile, WITHHELD } from "./record.ts";

const DEFAULTS = {
  maxBytes: 100 * 1024 * 1024,
  maxFiles: MAX_FILES,
  isJournal: false,
  pid: process.pid,
  clock: systemClock,
  keys: NO_KEYS,
  keepsArguments: (): boolean => false,
  keepsResults: (): boolean => false,
  maskCredentials: <Value extends object>(value: Value): Value => value,
  redact: (text: string): string => text,
  onProblem: (): void => {},
};
/** Files are read whole when they are verified, and when they are compared with what a store has of them. */
const MAX_FILE_BYTES = 4 * 1024 * 1024;
const FILES_PER_LOG = 8;
/** Where files go by age, none is written to for longer. */
const MAX_FILE_MS = 24 * 60 * 60 * 1000;
/** More files in one record would make a line that is too long. */
const PRUNED_PER_RECORD = 200;
/** Files of other chains that a header names, of each kind: a header must stay a short line. */
const MAX_SEEN = 8;
/** Waiting records while the disk takes nothing; the oldest go first. */
const MAX_WAITING_LENGTH = 4 * 1024 * 1024;
/** Calls in progress of which nothing is masked or hashed a second time when they end. */
const MAX_BEGUN = 1000;
const RETRY_MS = 5000;
/** How often, and after how many records, it is looked whether the file is still in its place. A look costs half as much as a write. */
const LOOK_MS = 100;
const LOOK_AFTER = 1000;

export interface AuditLogOptions extends Partial<Omit<BodyOptions, "salt">> {
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
  /** Runs after records were written. Must not throw. */
  readonly onWritten?: () => void;
  readonly clock?: Clock;
  /** With a current one the chain is keyed. */
  readonly keys?: AuditKeys;
  /** Called once when records cannot be written, and again only after they could be. */
  readonly onProblem?: (message: string) => void;
}

/** Logs of this process that are not closed. They are when it exits: otherwise `process.exit` would look like a crash. */
const openLogs = new Set<AuditLog>();

/** One listener for all of them: several hubs in one process must not add up to a listener warning. */
function closeLogs(): void {
  for (const log of openLogs) log.close();
}

/** Nothing here throws at a caller: a call must not fail because its record cannot be kept. */
export class AuditLog implements AuditSink {
  readonly chain = randomBytes(8).toString("hex");
  /** How large a file gets. */
  readonly fileBytes: number;
  readonly #options: AuditLogOptions & Required<Pick<AuditLogOptions, keyof typeof DEFAULTS>>;
  readonly #body: BodyOptions;
  readonly #clock: Clock;
  readonly #heads: HeadKeeper;
  readonly #begun = new ChurnMap<string, BegunCall>();
  #file: OpenFile | undefined;
  #part = 0;
  #recordsInFile = 0;
  #lastStart = -1;
  #place: ChainPlace = { seq: 0, prev: null };
  /**
   * Records in their order: first those that were written since the file was last seen in its place, then those that wait.
   * If the file turns out to be gone, all of them wait again.
   */
  #bodies: string[] = [];
  #written = 0;
  #waitingLength = 0;
  /** How far the chain was when the file was last seen. */
  #seen: ChainPlace = this.#place;
  #cancelLook: (() => void) | undefined;
  #immediate: NodeJS.Immediate | undefined;
  /** Whoever waits for the write at the end of this turn of the event loop. */
  #turn: PromiseWithResolvers<void> | undefined;
  #isFailing = false;
  /** After a failure nothing is written for a while. */
  #isPaused = false;
  #lost = 0;
  #lostUntold = 0;
  #isClosing = false;
  #closed = false;
  #hasCalls = false;

  constructor(options: AuditLogOptions) {
    const all = { ...DEFAULTS, ...options };
    const { dir, keys, clock, maxBytes, onProblem } = all;
    this.#options = all;
    this.#clock = clock;
    this.#body = { ...all, salt: randomBytes(16).toString("hex") };
    this.fileBytes = Math.min(MAX_FILE_BYTES, Math.floor(maxBytes / FILES_PER_LOG));
    const note = (event: string, details: Readonly<Record<string, unknown>>): void => {
      if (!this.#closed) this.event({ event, details });
    };
    this.#heads = new HeadKeeper({ dir, chain: this.chain, clock, keys, note, onProblem });
    if (openLogs.size === 0) process.on("exit", closeLogs);
    openLogs.add(this);
  }

  /** How many records could not be kept. */
  get lost(): number {
    return this.#lost;
  }

  /** Whether a call was recorded. */
  get hasCalls(): boolean {
    return this.#hasCalls;
  }

  /** The name of the file that is written to; the others of the chain have ended. */
  get currentFile(): string | undefined {
    return this.#file?.name;
  }

  /** This chain was the first in the folder, so there are heads to be found, unless it began at the same moment as this one. */
  expectHeads(chain: string): void {
    const files = listFiles(this.#options.dir);
    const [first, own] = [chain, this.chain].map((each) => files.find((file) => file.chain === each));
    const isFirstPart = first !== undefined && endsOf(first.path).header?.part === 0;
    if (!isFirstPart || own === undefined || own.start - first.start > HEAD_MS) this.#heads.expectOthers();
  }

  /**
   * Written before the caller goes on: what is called next may be what kills this process. Calls that begin or end in the same
   * turn of the event loop, as they do under load, share one write; the promise resolves after it.
   */
  begin(record: StartRecord, content?: CallContent): Promise<void> | undefined {
    const isAlone = this.#begun.size === 0;
    this.#add(() => {
      const begun = begunCall(record, content, this.#body);
      if (this.#begun.size < MAX_BEGUN) this.#begun.set(record.callId, begun);
      return startBody(begun);
    });
    return this.#settle(isAlone);
  }

  /** Written before the caller goes on too, so that no answer is sent of which there is no record. */
  write(record: CallRecord, content?: CallContent): Promise<void> | undefined {
    const begun = this.#begun.get(record.callId);
    this.#add(() => callBody(record, content, begun, this.#body));
    this.#begun.delete(record.callId);
    return this.#settle(begun !== undefined && this.#begun.size === 0);
  }

  keepsResults(source: string | null): boolean {
    return this.#body.keepsResults(source);
  }

  withhold(callId: string): void {
    this.#begun.delete(callId);
    this.event({ event: WITHHELD, callId });
  }

  decision(record: DecisionRecord): void {
    this.#add(() => decisionBody(record, this.#body));
    this.#flushSoon();
  }

  event(record: EventRecord): void {
    this.#add(() => eventBody(record, this.#now(), this.#body));
    this.#flushSoon();
  }

  /** Says that these files go by intention. False if that cannot be written: then they must stay. */
  prune(files: readonly SeenFile[]): boolean {
    if (this.#closed) return false;
    for (let from = 0; from < files.length; from += PRUNED_PER_RECORD) {
      const some = files.slice(from, from + PRUNED_PER_RECORD);
      this.#add(() => JSON.stringify({ type: "pruned", time: this.#now(), files: some }));
    }
    this.flush();
    if (this.#bodies.length > this.#written) return false;
    this.#heads.prune(files.map(({ file }) => file));
    return true;
  }

  /** Begins another file if files go by age and this one is old, so that what it holds can go too. */
  renew(): void {
    if (!this.#isOld) return;
    try {
      this.#look();
      // Gone with what it held; a new one begins with the next record.
      if (this.#file === undefined) return;
      this.#rotate();
      this.#beginFile();
      this.#moveHead();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Writes what waits, now, and looks after the file. */
  flush(): void {
    this.#flush();
    this.#look();
    this.#flush();
  }

  /** Writes what waits and ends the chain. Safe to call twice. */
  close(): void {
    if (this.#closed) return;
    this.#isPaused = false;
    this.#isClosing = true;
    this.#look();
    this.#flush();
    // While a record of it can still be written: the heads may have been removed since the last look.
    this.#moveHead({ atOnce: true });
    this.#flush();
    this.#closed = true;
    this.#heads.stop();
    this.#cancelLook?.();
    openLogs.delete(this);
    if (openLogs.size === 0) process.off("exit", closeLogs);
    this.#drop(this.#bodies.length - this.#written);
    try {
      this.#endChain();
    } catch (error) {
      this.#fail(error);
    }
    this.#options.onWritten?.();
  }

  /** The text is made at once, because the caller may change its arguments as soon as the call has ended. */
  #add(make: () => string): void {
    let body: string | undefined;
    try {
      body = this.#closed ? undefined : make();
    } catch {
      this.#lostUntold += 1;
    }
    if (body === undefined) {
      this.#lost += 1;
      return;
    }
    this.#bodies.push(body);
    this.#waitingLength += body.length;
    if (this.#waitingLength > MAX_WAITING_LENGTH) {
      this.#flush();
      while (this.#waitingLength > MAX_WAITING_LENGTH) this.#drop(1);
    }
  }

  /** Whoever is alone is written at once: nothing else would come in this turn. */
  #settle(isAlone: boolean): Promise<void> | undefined {
    this.#hasCalls = true;
    if (isAlone || this.#closed) {
      this.#flush();
      return undefined;
    }
    this.#flushSoon();
    this.#turn ??= Promise.withResolvers<void>();
    return this.#turn.promise;
  }

  #flushSoon(): void {
    if (!this.#closed) this.#immediate ??= setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    if (this.#immediate !== undefined) clearImmediate(this.#immediate);
    this.#immediate = undefined;
    if (this.#bodies.length > this.#written && !this.#isPaused) {
      try {
        this.#writeWaiting();
        this.#isFailing = false;
        if (!this.#isClosing) this.#moveHead();
        this.#options.onWritten?.();
      } catch (error) {
        this.#fail(error);
      }
    }
    // Whatever became of the write, calls do not wait for the disk to be mended.
    this.#turn?.resolve();
    this.#turn = undefined;
  };

  /** In batches, one write each. What is not written keeps waiting, and the chain goes on from what is. */
  #writeWaiting(): void {
    if (this.#lostUntold > 0) {
      const details = { count: this.#lostUntold };
      const body = eventBody({ event: "audit.lost", details }, this.#now(), this.#body);
      this.#bodies.splice(this.#written, 0, body);
      this.#waitingLength += body.length;
      this.#lostUntold = 0;
    }
    while (this.#bodies.length > this.#written) {
      if (this.#file === undefined) this.#beginFile();
      if (this.#writeBatch()) continue;
      this.#look();
      if (this.#file !== undefined) this.#rotate();
    }
  }

  /** As many of the records as still belong into the current file; false if it is full. */
  #writeBatch(): boolean {
    const file = this.#file;
    if (file === undefined || this.#isOld) return false;
    let [{ seq, prev }, text, end, length] = [this.#place, "", this.#written, 0];
    for (; end < this.#bodies.length; end += 1) {
      const body = this.#bodies[end] ?? "";
      const sealed = sealLine(seq, prev, body, this.#options.keys.current);
      const isFull = file.size + text.length + sealed.line.length > this.fileBytes;
      // A file takes one record at least, however small the log may be.
      if (isFull && (text !== "" || this.#recordsInFile > 0)) break;
      text += sealed.line;
      length += body.length;
      [seq, prev] = [seq + 1, sealed.hash];
    }
    if (text === "") return false;
    file.append(text);
    this.#place = { seq, prev };
    this.#recordsInFile += end - this.#written;
    this.#written = end;
    this.#waitingLength -= length;
    if (this.#written > LOOK_AFTER) this.#look();
    else this.#cancelLook ??= this.#clock.after(LOOK_MS, this.#lookLater);
    return true;
  }

  readonly #lookLater = (): void => {
    this.#cancelLook = undefined;
    this.#look();
    this.#flush();
  };

  #look(): void {
    if (this.#file?.isRemoved === true) {
      this.#options.onProblem(`The audit file ${this.#file.path} was removed while it was in use; a new one is begun.`);
      this.#file.close();
      this.#file = undefined;
      this.#place = this.#seen;
      this.#waitingLength = this.#bodies.reduce((sum, { length }) => sum + length, 0);
    } else {
      this.#seen = this.#place;
      this.#bodies.splice(0, this.#written);
    }
    this.#written = 0;
  }

  #beginFile(): void {
    const { dir, isJournal, keys, pid } = this.#options;
    // Two files of one chain never share a name, also when the clock stands or goes back.
    const start = Math.max(this.#clock.now(), this.#lastStart + 1);
    const others = listFiles(dir).filter((file) => file.chain !== this.chain);
    if (this.#part === 0 && others.some((other) => hasRested(other))) this.#heads.expectOthers();
    const file = new OpenFile(dir, fileName(start, pid, this.chain));
    this.#file = file;
    this.#lastStart = start;
    this.#recordsInFile = 0;
    try {
      this.#append({
        type: "header",
        time: new Date(start).toISOString(),
        chain: this.chain,
        part: this.#part,
        process: { pid, host: hostname() },
        version: VERSION,
        salt: this.#body.salt,
        key: keys.current?.id,
        seen: seenFiles(dir, this.chain, others),
      });
    } catch (error) {
      this.#file = undefined;
      file.close();
      rmSync(file.path, { force: true });
      throw error;
    }
    this.#part += 1;
    if (!isJournal) this.#pruneFolder(file);
    this.#look();
  }

  /** Ends the current file; the chain goes on in the next one. */
  #rotate(): void {
    this.#append({ type: "rotated", time: this.#now() });
    this.#file?.close();
    this.#file = undefined;
  }

  #endChain(): void {
    const file = this.#file;
    if (file === undefined) return;
    try {
      this.#append({ type: "closed", time: this.#now() });
      this.#moveHead({ atOnce: true, closed: true });
      file.close();
    } finally {
      this.#file = undefined;
    }
  }

  /** Whether there are records in the current file that should have a chance to go by their age. */
  get #isOld(): boolean {
    if (this.#options.maxDays === undefined || this.#recordsInFile === 0) return false;
    return this.#clock.now() - this.#lastStart > MAX_FILE_MS;
  }

  /** The record comes before the files go, so that a crash in between leaves nothing unexplained. */
  #pruneFolder(own: OpenFile): void {
    const { dir, maxBytes, maxFiles, maxDays, onProblem } = this.#options;
    try {
      const bounds = { maxBytes, maxFiles, maxDays, reserve: this.fileBytes, now: Date.now() };
      const victims = filesToPrune(listFiles(dir), own.name, bounds);
      for (let from = 0; from < victims.length; from += PRUNED_PER_RECORD) {
        const some = victims.slice(from, from + PRUNED_PER_RECORD);
        this.#append({ type: "pruned", time: this.#now(), files: some.map((victim) => seenFile(victim)) });
        this.#heads.prune(some.map(({ name }) => name));
        for (const victim of some) rmSync(victim.path, { force: true });
      }
    } catch (error) {
      onProblem(`Old audit files could not be removed from ${dir}: ${asToolcribError(error).message}`);
    }
  }

  /** Writes a line of the log itself. */
  #append(record: { readonly type: string; readonly [key: string]: unknown }): void {
    const { seq, prev } = this.#place;
    const sealed = sealLine(seq, prev, JSON.stringify(record), this.#options.keys.current);
    this.#file?.append(sealed.line);
    this.#place = { seq: seq + 1, prev: sealed.hash };
  }

  /** Writes down how far the chain has come. */
  #moveHead({ atOnce = false, closed = false } = {}): void {
    const { seq, prev } = this.#place;
    if (this.#file === undefined || prev === null) return;
    const head = { file: this.#file.name, seq: seq - 1, hash: prev, closed, key: this.#options.keys.current?.id };
    this.#heads.moved(head, atOnce);
  }

  #drop(count: number): void {
    const dropped = this.#bodies.splice(this.#written, count);
    for (const body of dropped) this.#waitingLength -= body.length;
    this.#lost += dropped.length;
    this.#lostUntold += dropped.length;
  }

  #fail(error: unknown): void {
    if (!this.#isPaused && !this.#closed)
      this.#clock.after(RETRY_MS, () => {
        this.#isPaused = false;
        this.#flush();
      });
    this.#isPaused = true;
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#options.onProblem(
      `Audit records cannot be written to ${this.#options.dir}: ${asToolcribError(error).message}. Calls go on without them.`,
    );
  }

  #now(): string {
    return new Date(this.#clock.now()).toISOString();
  }
}

/** How far a chain has come. */
interface ChainPlace {
  readonly seq: number;
  readonly prev: string | null;
}

/** The newest files in the folder, and the chains that were written to last: their files may be in a store by now. */
function seenFiles(dir: string, chain: string, others: readonly AuditFile[]): SeenFile[] {
  const names = new Set(others.map((file) => file.name));
  const elsewhere = [...readHeads(dir).heads]
    .filter(([other, { file }]) => other !== chain && !names.has(file))
    .slice(-MAX_SEEN)
    .map(([, { file, seq, hash }]) => ({ file, seq, hash }));
  return [...elsewhere, ...others.slice(-MAX_SEEN).map((other) => seenFile(other))];
}

/** A file that this process appends to. */
class OpenFile {
  readonly path: string;
  readonly name: string;
  readonly #fd: number;
  size = 0;

  /** Throws if the file is there already or cannot be made. */
  constructor(dir: string, name: string) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    // A folder that was there before may be open to others.
    chmodSync(dir, 0o700);
    this.path = join(dir, name);
    this.name = name;
    this.#fd = openSync(this.path, "ax", 0o600);
  }

  /** True once somebody removed it: what is written from then on would be lost. */
  get isRemoved(): boolean {
    try {
      return fstatSync(this.#fd).nlink === 0;
    } catch {
      // A file system of another machine knows nothing any more of a file that was removed there.
      return true;
    }
  }

  /** Writes all of it or nothing, and throws if nothing. */
  append(text: string): void {
    const bytes = Buffer.from(text);
    try {
      for (let written = 0; written < bytes.length;) written += writeSync(this.#fd, bytes, written);
    } catch (error) {
      this.#undo();
      throw error;
    }
    this.size += bytes.length;
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** A full disk takes the beginning of a batch; half a line in the middle of a chain would look like an attack. */
  #undo(): void {
    try {
      ftruncateSync(this.#fd, this.size);
    } catch {
      // Then the torn line stays, and is reported by whoever verifies.
    }
  }
}
