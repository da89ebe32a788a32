/** The audit log that one process writes: a chain of records over one or more files. */
import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../base/clock.ts";
import { ChurnMap } from "../../base/maps.ts";
import type { AuditSink, CallRecord, SentArguments, StartRecord } from "../call-record.ts";
import { type BegunCall, begunCall, type BodyOptions, callBody, decisionBody, eventBody, startBody } from "./body.ts";
import { ChainFiles, type ChainFilesOptions } from "./chain-files.ts";
import { HeadKeeper, type LostHeads } from "./head-keeper.ts";
import { type AuditKeys, NO_KEYS } from "./key.ts";
import { closeOnExit } from "./live-logs.ts";
import { PRUNED_PER_RECORD } from "./prune.ts";
import { type DecisionRecord, type EventRecord, HEADS_LOST, KEYED, type SeenFile, WITHHELD } from "./record.ts";
import { UnseenRecords } from "./unseen-records.ts";
import { WaitingRecords } from "./waiting-records.ts";

/** Waiting records while the disk takes nothing; the oldest go first. */
const MAX_PENDING_BYTES = 4 * 1024 * 1024;
/** Calls under way of which nothing is masked or hashed a second time when they end. */
const MOST_BEGUN = 1000;
const RETRY_MS = 5000;
/** How often, and after how much, it is looked whether the file is still in its place. A look costs as much as a write. */
const LOOK_MS = 100;
const LOOK_AFTER_LENGTH = 256 * 1024;

export interface AuditLogOptions extends ChainFilesOptions {
  /** Runs after records were written. Must not throw. */
  readonly onWritten?: () => void;
  readonly clock?: Clock;
  /** With a current one the chain is keyed. */
  readonly keys?: AuditKeys;
  /** Keeps arguments as text too, masked and cut. */
  readonly keepArguments?: boolean;
  /** Stands in every record: the name of this node, where there are several. */
  readonly node?: string | undefined;
  /** Masks secrets. */
  readonly redact?: (text: string) => string;
  /** Told once when records cannot be written, and again only after they could be. */
  readonly onProblem?: (message: string) => void;
}

/** Nothing here throws at a caller: a call must not fail because its record cannot be kept. */
export class AuditLog implements AuditSink {
  readonly chain = randomBytes(8).toString("hex");
  readonly #dir: string;
  readonly #onWritten: () => void;
  readonly #clock: Clock;
  readonly #body: BodyOptions;
  readonly #onProblem: (message: string) => void;
  readonly #forgetExit: () => void;
  readonly #heads: HeadKeeper;
  readonly #begun = new ChurnMap<string, BegunCall>();
  readonly #files: ChainFiles;
  readonly #pending = new WaitingRecords();
  readonly #unseen = new UnseenRecords();
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
    this.#onWritten = options.onWritten ?? (() => {});
    this.#clock = options.clock ?? systemClock;
    this.#onProblem = options.onProblem ?? (() => {});
    this.#body = {
      salt: randomBytes(16).toString("hex"),
      keepArguments: options.keepArguments ?? false,
      redact: options.redact ?? ((text) => text),
      node: options.node,
    };
    this.#forgetExit = closeOnExit(this);
    this.#heads = new HeadKeeper({
      dir: this.#dir,
      chain: this.chain,
      clock: this.#clock,
      keys: options.keys ?? NO_KEYS,
      onLost: (what) => this.#headsLost(what),
      onKeyed: () => this.#keyed(options.keys?.current?.id),
      onProblem: this.#onProblem,
    });
    this.#files = new ChainFiles(options, {
      chain: this.chain,
      salt: this.#body.salt,
      key: options.keys?.current,
      clock: this.#clock,
      heads: this.#heads,
      onProblem: this.#onProblem,
    });
  }

  /** How many records could not be kept. */
  get lost(): number {
    return this.#lost;
  }

  /** The name of the file that is written to; the others of the chain have ended. */
  get currentFile(): string | undefined {
    return this.#files.current?.name;
  }

  /** How large a file gets. */
  get fileBytes(): number {
    return this.#files.fileBytes;
  }

  /** There are chains from before this process that must have left their heads. */
  expectHeads(): void {
    this.#heads.expectEarlier();
  }

  /** Says that these files go by intention. False if that cannot be written: then they must stay. */
  prune(files: readonly SeenFile[]): boolean {
    if (this.#closed) return false;
    for (let from = 0; from < files.length; from += PRUNED_PER_RECORD) {
      const some = files.slice(from, from + PRUNED_PER_RECORD);
      this.#add(() => JSON.stringify({ type: "pruned", time: this.#now(), files: some }));
    }
    this.flush();
    if (this.#pending.count > 0) return false;
    this.#heads.prune(files.map(({ file }) => file));
    return true;
  }

  /** Begins another file if files go by age and this one is old, so that what it holds can go too. */
  renew(): void {
    if (!this.#files.isOld) return;
    try {
      this.#look();
      // Gone with what it held; a new one begins with the next record.
      if (this.#files.current === undefined) return;
      this.#files.rotate();
      this.#begin();
      this.#files.moveHead({ closed: false });
    } catch (error) {
      this.#fail(error);
    }
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
      if (!this.#closing) this.#files.moveHead({ closed: false });
      this.#onWritten();
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
    // While a record of it can still be written: the heads may have been removed since the last look.
    this.#files.moveHead({ closed: false });
    this.#heads.settle();
    this.#flush();
    this.#closed = true;
    this.#heads.stop();
    this.#cancelRetry();
    this.#cancelLook?.();
    this.#forgetExit();
    this.#drop(this.#pending.count);
    try {
      this.#files.close();
    } catch (error) {
      this.#fail(error);
    }
    this.#onWritten();
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
      if (this.#files.current === undefined) this.#begin();
      const count = this.#files.write(this.#pending);
      if (count > 0) this.#written(this.#pending.take(count));
      else {
        this.#look();
        if (this.#files.current !== undefined) this.#files.rotate();
      }
    }
  }

  #begin(): void {
    this.#files.begin();
    this.#look();
  }

  #written(bodies: readonly string[]): void {
    this.#unseen.add(bodies);
    if (this.#closing) return;
    if (this.#unseen.length > LOOK_AFTER_LENGTH) return this.#look();
    this.#cancelLook ??= this.#clock.after(LOOK_MS, () => {
      this.#cancelLook = undefined;
      this.#look();
      this.#flush();
    });
  }

  /** If the file is gone, what was written to it since the last look waits again, and will begin a new one. */
  #look(): void {
    const { current } = this.#files;
    const isRemoved = current?.isRemoved === true;
    if (isRemoved) {
      this.#onProblem(`The audit file ${current.path} was removed while it was in use; a new one is begun.`);
      this.#files.forget(this.#unseen.since);
    }
    const unseen = this.#unseen.take(this.#files.position);
    if (isRemoved) this.#pending.putFirst(unseen);
  }

  /** They are written anew with our own alone, so this record is all that is left to show it. */
  #headsLost(what: LostHeads): void {
    this.#onProblem(
      `heads.json in ${this.#dir} ${LOST[what]}: of older chains it cannot be told any more whether their ends were cut off.`,
    );
    if (!this.#closed) this.event({ time: this.#now(), event: HEADS_LOST, details: { what } });
  }

  #keyed(key: string | undefined): void {
    if (!this.#closed) this.event({ time: this.#now(), event: KEYED, details: { key } });
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

const LOST: Readonly<Record<LostHeads, string>> = {
  missing: "was removed",
  damaged: "was damaged",
  foreign: "is signed with a key that neither `audit.key` nor `audit.oldKeys` names",
};

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
