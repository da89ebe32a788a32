/** Many texts, few readings; and large ones off the main thread, so that no call waits for another call's document. */
import { availableParallelism } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { lastAtOrBefore } from "../base/sorted.ts";
import { excerptOf } from "../base/visible-text.ts";
import type { Finding } from "../model/finding.ts";
import { type ScanOptions, scanSlices, scanText } from "./scan-text.ts";

/** Findings by text; texts without findings are left out. */
export type TextFindings = ReadonlyMap<string, readonly Finding[]>;

/** Reads the texts of a place: by the built-in rules, and by the detectors of the config. */
export type ScanContent = (texts: Iterable<string>, options: ContentOptions) => Promise<TextFindings>;

export interface ContentOptions extends ScanOptions {
  /** Hides secrets from detectors that are elsewhere, besides those that the hub knows. */
  readonly mask?: (text: string) => string;
  /** A detector failed on some of the texts; it may not the next time. */
  readonly onUnread?: () => void;
}

/** Above this many units in all, a thread reads them. */
const MAX_UNITS_HERE = 64 * 1024;

/** For texts that are known to be few or short. */
export function scanTexts(texts: Iterable<string>, options: ScanOptions): TextFindings {
  const steps = scanInSteps([...texts], options);
  let next = steps.next();
  while (next.done !== true) next = steps.next();
  return next.value;
}

/** Large texts are read by a thread, or piece by piece here where no thread can be had. */
export async function scanLargeTexts(
  texts: Iterable<string>,
  { place, sensitivity }: ScanOptions,
): Promise<TextFindings> {
  // Nothing else: a thread takes no functions.
  const options = { place, sensitivity };
  const all = [...texts];
  let units = 0;
  for (const { length } of all) units += length;
  if (units <= MAX_UNITS_HERE) return scanTexts(all, options);
  try {
    return await threads.run({ texts: all, options });
  } catch {
    const steps = scanInSteps(all, options);
    let next = steps.next();
    while (next.done !== true) {
      await nextTurn();
      next = steps.next();
    }
    return next.value;
  }
}

/** Up to this many texts are read one by one. */
const MAX_UNBATCHED_TEXTS = 32;
/** Longer ones are read by themselves. */
const MAX_BATCHED_LENGTH = 2_000;
const BATCH_LENGTH = 32 * 1024;
const SEPARATOR = "\n\n";
/** Up to this many texts of batches are read again by themselves; further ones are suspicious as they are. */
const MAX_SECOND_READINGS = 2_000;

/**
 * Pauses after each piece. What a reading costs at the least would make a million tiny strings take long, so short texts
 * are read together first. That reading only says which of them to look at: texts of different fields are not near each
 * other.
 */
function* scanInSteps(texts: readonly string[], options: ScanOptions): Generator<undefined, TextFindings> {
  const found = new Map<string, readonly Finding[]>();
  const keep = (text: string, findings: readonly Finding[]): void => {
    if (findings.length > 0) found.set(text, findings);
  };
  let batch: string[] = [];
  let length = 0;
  let secondReadings = MAX_SECOND_READINGS;
  const readBatch = (): void => {
    for (const text of suspects(batch, options)) {
      secondReadings -= 1;
      keep(text, secondReadings >= 0 ? scanText(text, options) : [unread(text, options)]);
    }
    batch = [];
    length = 0;
  };
  for (const text of texts) {
    if (text.length > BATCH_LENGTH) {
      const findings: Finding[] = [];
      for (const part of scanSlices(text, options)) {
        findings.push(...part);
        yield undefined;
      }
      keep(text, findings);
    } else if (texts.length <= MAX_UNBATCHED_TEXTS || text.length > MAX_BATCHED_LENGTH) {
      keep(text, scanText(text, options));
      length += text.length;
      if (length > BATCH_LENGTH) {
        length = 0;
        yield undefined;
      }
    } else {
      batch.push(text);
      length += text.length;
      if (length > BATCH_LENGTH) {
        readBatch();
        yield undefined;
      }
    }
  }
  if (batch.length > 0) readBatch();
  return found;
}

/** A text that could not be looked at by itself is not considered clean. */
function unread(text: string, { place = "result" }: ScanOptions): Finding {
  const [start, end] = [0, text.length];
  const excerpt = excerptOf(text, start, end);
  return { code: "hidden_text", severity: "medium", start, end, excerpt, score: 5, rules: ["unreadable"], place };
}

/** The texts of a batch that findings of the whole touch. */
function suspects(batch: readonly string[], options: ScanOptions): Set<string> {
  const touched = new Set<string>();
  // Quotation marks and fences would make what follows them a quotation.
  const findings = scanText(batch.join(SEPARATOR).replaceAll(/["'`~]/g, " "), { ...options, sensitivity: "high" });
  if (findings.length === 0) return touched;
  const starts: number[] = [];
  let length = 0;
  for (const text of batch) {
    starts.push(length);
    length += text.length + SEPARATOR.length;
  }
  for (const { start, end } of findings) {
    for (let at = Math.max(0, lastAtOrBefore(starts, start)); at < batch.length && (starts[at] ?? 0) < end; at += 1)
      touched.add(batch[at] ?? "");
  }
  return touched;
}

// Threads.

export interface ScanJob {
  readonly texts: readonly string[];
  readonly options: ScanOptions;
}

interface WaitingJob {
  readonly job: ScanJob;
  resolve(found: TextFindings): void;
  reject(error: Error): void;
}

/** One thread for a machine of two cores: the other core answers calls. */
const MAX_THREADS = Math.max(1, Math.min(2, availableParallelism() - 1));
/** More jobs than this are not kept waiting: they are read here, which slows down who sends them. */
const MAX_WAITING_JOBS = 64;
const IDLE_MS = 30_000;
/** Memory of a thread for short-lived objects; by default it is several times as much. */
const YOUNG_MB = 8;

class ScanThreads {
  readonly #waiting: WaitingJob[] = [];
  readonly #idle: Worker[] = [];
  readonly #running = new Map<Worker, WaitingJob>();
  #timer: NodeJS.Timeout | undefined;

  run(job: ScanJob): Promise<TextFindings> {
    if (this.#waiting.length >= MAX_WAITING_JOBS) return Promise.reject(new Error("All threads are busy."));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject });
      this.#next();
    });
  }

  #next(): void {
    clearTimeout(this.#timer);
    if (this.#waiting.length === 0) {
      this.#timer = setTimeout(() => this.#endIdle(), IDLE_MS).unref();
      return;
    }
    if (this.#idle.length === 0 && this.#running.size >= MAX_THREADS) return;
    const waiting = this.#waiting.shift();
    if (waiting === undefined) return;
    try {
      const thread = this.#idle.pop() ?? this.#start();
      thread.ref();
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      thread.postMessage(waiting.job);
      this.#running.set(thread, waiting);
    } catch (error) {
      waiting.reject(error instanceof Error ? error : new Error(String(error)));
      // The others wait for the same: each is read by who sent it.
      this.#next();
    }
  }

  #start(): Worker {
    const { Worker } = process.getBuiltinModule("node:worker_threads");
    // The bundler knows this line by its words.
    const thread = new Worker(new URL("./scan-worker.ts", import.meta.url), {
      name: "toolcrib guard",
      // Nothing of the hub's is for a thread that works on what strangers wrote.
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    thread.unref();
    thread.on("message", (found: TextFindings) => {
      const waiting = this.#running.get(thread);
      this.#running.delete(thread);
      thread.unref();
      this.#idle.push(thread);
      waiting?.resolve(found);
      this.#next();
    });
    thread.on("error", (error) => this.#lose(thread, error));
    thread.on("exit", () => this.#lose(thread, new Error("The thread ended.")));
    return thread;
  }

  #lose(thread: Worker, error: unknown): void {
    const waiting = this.#running.get(thread);
    this.#running.delete(thread);
    const at = this.#idle.indexOf(thread);
    if (at !== -1) this.#idle.splice(at, 1);
    waiting?.reject(error instanceof Error ? error : new Error(String(error)));
    if (waiting !== undefined) this.#next();
  }

  #endIdle(): void {
    for (const thread of this.#idle.splice(0)) void thread.terminate();
  }
}

const threads = new ScanThreads();
