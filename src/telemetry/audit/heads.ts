/**
 * `heads.json` beside the files: how far each chain had come. Without it nothing would tell an end that was cut off from
 * a process that was killed, and nobody would miss the newest file.
 */
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject } from "../../model/json.ts";

const NAME = "heads.json";
const VERSION = 1;
/**
 * Older chains need no entry: their ends stand in the headers of chains that began later, and so on up to those that
 * have one. Chains that were not closed go last.
 */
const MOST = 256;
/** Whoever holds the lock does so for a millisecond; one this old was left behind. */
const LEFT_BEHIND_MS = 5000;
const PAUSE_MS = 2;

/** The last record that a chain is known to have had. */
export interface ChainHead {
  /** The file in which it stands. */
  readonly file: string;
  readonly seq: number;
  readonly hash: string;
  readonly closed: boolean;
}

/** By chain, in the order in which they were last written. */
export type Heads = ReadonlyMap<string, ChainHead>;

export function readHeads(dir: string): Heads | "missing" | "damaged" {
  let text: string;
  try {
    text = readFileSync(join(dir, NAME), "utf8");
  } catch (error) {
    return codeOf(error) === "ENOENT" ? "missing" : "damaged";
  }
  try {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value) || value["version"] !== VERSION || !isJsonObject(value["chains"])) return "damaged";
    const chains = Object.entries(value["chains"]);
    const heads = chains.flatMap(([chain, head]): [string, ChainHead][] => (isHead(head) ? [[chain, head]] : []));
    return heads.length === chains.length ? new Map(heads) : "damaged";
  } catch {
    return "damaged";
  }
}

interface HeadsUpdate {
  /** False if another process held the lock for too long. */
  readonly written: boolean;
  /** What was found in the place of the file. */
  readonly before?: "missing" | "damaged" | "good";
}

/**
 * Blocks, because logs are closed while the process exits. Throws what the disk throws.
 *
 * @param waitMs How long to wait for another process that is writing.
 */
export function updateHeads(dir: string, change: (heads: Map<string, ChainHead>) => void, waitMs: number): HeadsUpdate {
  const file = join(dir, NAME);
  const release = takeLock(`${file}.lock`, waitMs);
  if (release === undefined) return { written: false };
  try {
    const found = readHeads(dir);
    const heads = new Map(typeof found === "string" ? [] : found);
    change(heads);
    trim(heads);
    const text = `${JSON.stringify({ version: VERSION, chains: Object.fromEntries(heads) })}\n`;
    // Under the lock nobody else uses this name, and what a crash leaves is overwritten.
    const temporary = `${file}.tmp`;
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, file);
    return { written: true, before: typeof found === "string" ? found : "good" };
  } finally {
    release();
  }
}

function isHead(value: unknown): value is ChainHead {
  if (!isJsonObject(value)) return false;
  const { file, seq, hash, closed } = value;
  return (
    typeof file === "string" && Number.isSafeInteger(seq) && typeof hash === "string" && typeof closed === "boolean"
  );
}

function trim(heads: Map<string, ChainHead>): void {
  const closedFirst = [...heads].toSorted(([, a], [, b]) => Number(b.closed) - Number(a.closed));
  for (const [chain] of closedFirst.slice(0, Math.max(0, heads.size - MOST))) heads.delete(chain);
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
      if (codeOf(error) !== "EEXIST") throw error;
    }
    const held = statSync(path, { throwIfNoEntry: false });
    if (held !== undefined && Date.now() - held.mtimeMs > LEFT_BEHIND_MS) rmSync(path, { force: true });
    else if (performance.now() >= deadline) return undefined;
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
