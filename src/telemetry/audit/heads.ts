/**
 * `heads.json` beside the files: how far each chain had come. Without it nothing would tell an end that was cut off from
 * a process that was killed, and nobody would miss the newest file.
 */
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { asToolcribError, systemErrorCode } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { type AuditKeys, NO_KEYS } from "./key.ts";
import { HEADS_LOST, KEYED, type SeenFile } from "./record.ts";

const NAME = "heads.json";
const VERSION = 1;
/**
 * Older chains need no entry: their ends stand in the headers of chains that began later, and so on up to those that
 * have one. Chains that were not closed go last.
 */
const MAX_HEADS = 256;
/** Whoever holds the lock does so for a millisecond; one this old was left behind. */
const LEFT_BEHIND_MS = 5000;
const PAUSE_MS = 2;

/** The last record that a chain is known to have had. */
export interface ChainHead extends SeenFile {
  readonly closed: boolean;
  /** Of a keyed chain: the id of its key. */
  readonly key?: string | undefined;
}

/** By chain, in the order in which they were last written. */
export type Heads = ReadonlyMap<string, ChainHead>;

export interface FoundHeads {
  /** Of the signature of keyed chains' entries: by a key that is not known here, by one that is, or there is none. */
  readonly state: "missing" | "damaged" | "foreign" | "signed" | "plain";
  /** None if they are missing or damaged. */
  readonly heads: Heads;
  /** As it is in the file. */
  readonly signed?: { readonly key: string; readonly signature: string };
}

/** A signature that does not fit counts as damage. */
export function readHeads(dir: string, keys: AuditKeys = NO_KEYS): FoundHeads {
  const damaged: FoundHeads = { state: "damaged", heads: new Map() };
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(join(dir, NAME), "utf8"));
  } catch (error) {
    return systemErrorCode(error) === "ENOENT" ? { ...damaged, state: "missing" } : damaged;
  }
  if (!isJsonObject(value) || value["version"] !== VERSION || !isJsonObject(value["chains"])) return damaged;
  const chains = Object.entries(value["chains"]);
  const heads = new Map(chains.filter((entry): entry is [string, ChainHead] => isHead(entry[1])));
  if (heads.size !== chains.length) return damaged;
  const { key, signature } = value;
  if (key === undefined && signature === undefined) {
    const isStripped = [...heads.values()].some((head) => head.key !== undefined);
    return isStripped ? damaged : { state: "plain", heads };
  }
  if (typeof key !== "string" || typeof signature !== "string") return damaged;
  const known = keys.known.get(key);
  if (known?.hasSignedHeads(signedText(heads), signature) === false) return damaged;
  return { state: known === undefined ? "foreign" : "signed", heads, signed: { key, signature } };
}

/** Entries of plain chains are not part of it: processes without the key change theirs, and must not break it. */
function signedText(heads: Heads): string {
  const keyed = [...heads].filter(([, head]) => head.key !== undefined).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(
    keyed.map(([chain, { file, seq, hash, closed, key }]) => [chain, file, seq, hash, closed, key]),
  );
}

const LOST = {
  missing: "was removed",
  damaged: "was damaged",
  foreign: "is signed with a key that neither `audit.key` nor `audit.oldKeys` names",
} as const;

/** How the file is not what a process of this log with these keys had left there. */
function lossOf({ state }: FoundHeads, keys: AuditKeys): keyof typeof LOST | undefined {
  if (state === "missing" || state === "damaged") return state;
  // Who has no key goes on with what others signed.
  return state === "foreign" && keys.current !== undefined ? state : undefined;
}

/**
 * Blocks, because logs are closed while the process exits. Throws what the disk throws. Returns what was there before; undefined
 * if another process held the lock for too long.
 *
 * @param waitMs How long to wait for another process that is writing.
 * @param keys With a current one the file is signed. Without, what others signed stays as it is.
 */
export function updateHeads(
  dir: string,
  change: (heads: Map<string, ChainHead>) => void,
  waitMs: number,
  keys: AuditKeys = NO_KEYS,
): FoundHeads | undefined {
  const file = join(dir, NAME);
  const release = takeLock(`${file}.lock`, waitMs);
  if (release === undefined) return undefined;
  try {
    const found = readHeads(dir, keys);
    const heads = new Map(lossOf(found, keys) === undefined ? found.heads : []);
    const key = keys.current;
    change(heads);
    trim(heads, key === undefined && found.signed !== undefined);
    const signature = key === undefined ? found.signed : { key: key.id, signature: key.signHeads(signedText(heads)) };
    const text = `${JSON.stringify({ version: VERSION, chains: Object.fromEntries(heads), ...signature })}\n`;
    // Under the lock nobody else uses this name, and what a crash leaves is overwritten.
    const temporary = `${file}.tmp`;
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, file);
    return found;
  } finally {
    release();
  }
}

function isHead(value: unknown): value is ChainHead {
  if (!isJsonObject(value)) return false;
  const { file, seq, hash, closed, key } = value;
  if (key !== undefined && typeof key !== "string") return false;
  return (
    typeof file === "string" && Number.isSafeInteger(seq) && typeof hash === "string" && typeof closed === "boolean"
  );
}

/** @param lacksKey Entries of keyed chains stay: without them the signature would not fit any more. */
function trim(heads: Map<string, ChainHead>, lacksKey: boolean): void {
  const removable = [...heads].filter(([, head]) => !lacksKey || head.key === undefined);
  const closedFirst = removable.toSorted(([, a], [, b]) => Number(b.closed) - Number(a.closed));
  for (const [chain] of closedFirst.slice(0, Math.max(0, heads.size - MAX_HEADS))) heads.delete(chain);
}

/**
 * Were two processes to find the same lock left behind, both could write at once and one entry be older than it might
 * be. An entry that is behind its chain harms nothing, and its process writes it again.
 */
function takeLock(path: string, waitMs: number): (() => void) | undefined {
  const deadline = performance.now() + waitMs;
  for (;;) {
    try {
      closeSync(openSync(path, "wx", 0o600));
      return () => rmSync(path, { force: true });
    } catch (error) {
      if (systemErrorCode(error) !== "EEXIST") throw error;
    }
    const held = statSync(path, { throwIfNoEntry: false });
    if (held !== undefined && Date.now() - held.mtimeMs > LEFT_BEHIND_MS) rmSync(path, { force: true });
    else if (performance.now() >= deadline) return undefined;
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
}

const EVERY_MS = 1000;
/** How long a new file or the end may wait for other processes. Otherwise it is tried again a little later. */
const WAIT_MS = 250;
const RETRY_MS = 50;

interface HeadKeeperOptions {
  readonly dir: string;
  readonly chain: string;
  readonly clock: Clock;
  readonly keys: AuditKeys;
  /** Leaves a record. */
  readonly note: (event: string, details: Readonly<Record<string, unknown>>) => void;
  readonly onProblem: (message: string) => void;
}

/** Writes down how far this process's chain has come: at once for a new file and at the end, else once a second at most. */
export class HeadKeeper {
  readonly #options: HeadKeeperOptions;
  #head: ChainHead | undefined;
  #isExpected = false;
  /** Nobody had left a head when the first one was written, and none was expected. */
  #foundNone = false;
  #pruned: string[] = [];
  #cancel: (() => void) | undefined;
  readonly #told = new Set<string>();

  constructor(options: HeadKeeperOptions) {
    this.#options = options;
  }

  /** There are earlier chains, which must have left their heads. Told late, it is of what the first write found. */
  expectOthers(): void {
    if (this.#foundNone) this.#lose("missing");
    this.#foundNone = false;
    this.#isExpected = true;
  }

  /** These files are gone by intention; written down with the next head. */
  prune(files: readonly string[]): void {
    this.#pruned.push(...files);
  }

  moved(head: ChainHead, atOnce: boolean): void {
    const isNew = head.file !== this.#head?.file;
    this.#head = head;
    if (atOnce || isNew) this.#write(WAIT_MS);
    else this.#cancel ??= this.#options.clock.after(EVERY_MS, () => this.#write(0));
  }

  /** Ends the timer, so that nothing is written any more. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #write(waitMs: number): void {
    this.stop();
    const { dir, chain, clock, keys, note } = this.#options;
    const [head, pruned] = [this.#head, new Set(this.#pruned)];
    if (head === undefined) return;
    try {
      const change = (heads: Map<string, ChainHead>): void => {
        for (const [other, { file, key }] of heads) {
          // Of a keyed chain only who can sign what is left.
          if (pruned.has(file) && (key === undefined || keys.current !== undefined)) heads.delete(other);
        }
        // Last in the order, as the newest.
        heads.delete(chain);
        heads.set(chain, head);
      };
      const found = updateHeads(dir, change, waitMs, keys);
      if (found === undefined) {
        if (!head.closed) this.#cancel = clock.after(RETRY_MS, () => this.#write(0));
        return;
      }
      this.#pruned = [];
      const lost = lossOf(found, keys);
      if (keys.current === undefined && found.signed !== undefined) this.#tellOnce(keylessMessage(dir));
      if (keys.current !== undefined && found.state === "plain" && found.heads.size > 0)
        note(KEYED, { key: keys.current.id });
      if (lost === "missing" && !this.#isExpected) this.#foundNone = true;
      else if (lost !== undefined) this.#lose(lost);
      this.#isExpected = true;
    } catch (error) {
      this.#tellOnce(`It cannot be written down how far the audit log has come: ${asToolcribError(error).message}`);
    }
  }

  /** They are written again with our own alone, so this record is all that is left to show it. */
  #lose(what: keyof typeof LOST): void {
    const { dir, note, onProblem } = this.#options;
    const unknown = "of older chains it cannot be told any more whether their ends were cut off";
    onProblem(`heads.json in ${dir} ${LOST[what]}: ${unknown}.`);
    note(HEADS_LOST, { what });
  }

  #tellOnce(message: string): void {
    if (this.#told.has(message)) return;
    this.#told.add(message);
    this.#options.onProblem(message);
  }
}

function keylessMessage(dir: string): string {
  return `The audit log in ${dir} is keyed, and this process writes to it without a key. Set \`audit.key\` in its config; toolcrib audit verify reports its chain.`;
}
