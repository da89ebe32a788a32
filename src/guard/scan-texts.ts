/** Many texts, few readings; and large ones off the main thread, so that no call waits for another call's document. */
import { availableParallelism } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type ReadPart, readTogether } from "../base/shared-text.ts";
import { lastAtOrBefore } from "../base/sorted.ts";
import { ThreadPool } from "../base/thread-calls.ts";
import { excerptOf } from "../base/visible-text.ts";
import type { Finding } from "../model/finding.ts";
import { passagesOf, type ScanOptions, scanSlice, scanText, slicesOf, unreadable } from "./scan-text.ts";
import { mayForgeCall } from "./structure.ts";

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

/** Memory of a thread for short-lived objects; by default it is several times as much. */
const YOUNG_MB = 8;
/** Above this many units in all, a thread reads them. */
const MAX_UNITS_HERE = 64 * 1024;
/** Texts that are a smaller part of all are read together in one call: no result is to use all the room that the threads have for calls. */
const MIN_SHARE = 1 / 32;
/** All of them read a text that is long by itself: whoever waits for the result has nothing else to do. */
const THREADS = Math.min(2, availableParallelism());

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
  const units = all.reduce((sum, { length }) => sum + length, 0);
  if (units <= MAX_UNITS_HERE) return scanTexts(all, options);
  const least = Math.max(MAX_UNITS_HERE, units * MIN_SHARE);
  try {
    const short = all.filter(({ length }) => length <= least);
    const long = all.filter(({ length }) => length > least).map((text) => scanShared(text, options));
    const found = short.length === 0 ? [] : threads.call<TextFindings>("scan", short, options);
    const parts = await Promise.all([found, ...long]);
    return new Map(parts.flatMap((part) => [...part]));
  } catch {
    const found = scanningHere.then(() => scanHere(all, options));
    scanningHere = found.catch(() => {});
    return found;
  }
}

async function scanShared(text: string, options: ScanOptions): Promise<[string, Finding[]][]> {
  const findings = await readTogether(text, THREADS, (shared) =>
    threads.call<ReadPart<Finding>[]>("shared", shared, options),
  );
  return findings.length === 0 ? [] : [[text, findings]];
}

/** One after another: of many at once, calls would wait for a piece of each in every turn of the event loop. */
let scanningHere: Promise<unknown> = Promise.resolve();

async function scanHere(texts: readonly string[], options: ScanOptions): Promise<TextFindings> {
  const steps = scanInSteps(texts, options);
  let next = steps.next();
  while (next.done !== true) {
    await nextTurn();
    next = steps.next();
  }
  return next.value;
}

/** Up to this many texts are read one by one. */
const MAX_UNBATCHED_TEXTS = 32;
/** Longer ones are read by themselves. */
const MAX_BATCHED_LENGTH = 2_000;
const BATCH_LENGTH = 32 * 1024;
const SEPARATOR = `\n${" ".repeat(22)}\n`;
/** Up to this many texts of batches are read again by themselves; further ones are suspicious as they are. */
const MAX_SECOND_READINGS = 2_000;

/**
 * Pauses after each piece. What a reading costs at the least would make a million tiny strings take long, so short texts
 * are read together first. That reading only says which of them to look at. What follows an order within 24 characters can
 * explain it away, so texts are further apart.
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
    for (const text of suspects(batch)) {
      secondReadings -= 1;
      if (secondReadings >= 0) keep(text, scanText(text, options));
      else keep(text, [unreadable(excerptOf(text, 0, text.length), text.length, options.place ?? "result")]);
    }
    batch = [];
    length = 0;
  };
  for (const text of texts) {
    if (text.length > BATCH_LENGTH) {
      const findings: Finding[] = [];
      for (const { from, to } of slicesOf(text)) {
        findings.push(...scanSlice(text.slice(from, to), from, options));
        yield undefined;
      }
      keep(text, findings);
      continue;
    }
    length += text.length + SEPARATOR.length;
    if (texts.length > MAX_UNBATCHED_TEXTS && text.length <= MAX_BATCHED_LENGTH) batch.push(text);
    else keep(text, scanText(text, options));
    if (length <= BATCH_LENGTH) continue;
    readBatch();
    yield undefined;
  }
  readBatch();
  return found;
}

/** Of a passage in a batch, and of one match in it: what is around a text may be words of others, which explain nothing away. */
const MIN_SCORE = 1.8;
const MIN_WEIGHT = 2.2;

/** The texts of a batch to look at. */
function suspects(batch: readonly string[]): Set<string> {
  const touched = new Set<string>();
  if (batch.length === 0) return touched;
  // A call is written with the marks that are taken out below.
  for (const text of batch) if (mayForgeCall(text)) touched.add(text);
  let length = 0;
  const starts = batch.map((text) => (length += text.length + SEPARATOR.length) - text.length - SEPARATOR.length);
  // Quotation marks and fences would make what follows them a quotation.
  for (const { score, matches } of passagesOf(batch.join(SEPARATOR).replaceAll(/["'`~]/g, " "))) {
    if (score < MIN_SCORE && !matches.some(({ weight }) => weight >= MIN_WEIGHT)) continue;
    for (const match of matches) {
      const { start, end } = match.run ?? match;
      for (let at = Math.max(0, lastAtOrBefore(starts, start)); at < batch.length && (starts[at] ?? 0) < end; at += 1)
        touched.add(batch[at] ?? "");
    }
  }
  return touched;
}

const threads = new ThreadPool({
  most: THREADS,
  // As many texts as threads elsewhere keep calls waiting: each text is a call for every thread.
  maxWaiting: 64 * THREADS,
  start() {
    const { Worker } = process.getBuiltinModule("node:worker_threads");
    // The bundler knows this line by its words.
    return new Worker(new URL("./scan-worker.ts", import.meta.url), {
      name: "toolcrib guard",
      // Nothing of the hub's is for a thread that works on what strangers wrote.
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
  },
});
