/** Many texts, few readings: what a reading costs at the least would make a million tiny strings take minutes. */
import type { Finding } from "../model/finding.ts";
import { detect, detectInSteps } from "./detect/detect.ts";

/** Lets others have their turn. */
export type YieldNow = () => Promise<void>;

/** Findings by text; texts without findings are left out. */
export type TextFindings = ReadonlyMap<string, readonly Finding[]>;

/** Up to this many texts are read one by one. */
const MAX_UNBATCHED_TEXTS = 32;
/** Longer ones are read by themselves. */
const MAX_BATCHED_LENGTH = 2_000;
const BATCH_LENGTH = 32 * 1024;
const SEPARATOR = "\n\n";
/** Up to this many texts of batches are read again by themselves. */
const MAX_SECOND_READINGS = 2_000;
/** Units of text between two turns of others. */
const UNITS_PER_TURN = 32 * 1024;

/** For texts that are known to be few or short. */
export function scanTexts(texts: Iterable<string>): TextFindings {
  const readings = planReadings([...texts]);
  let next = readings.next();
  while (next.done !== true) next = readings.next(detect(next.value));
  return next.value;
}

export async function scanTextsInTurns(texts: Iterable<string>, yieldNow: YieldNow): Promise<TextFindings> {
  const all = [...texts];
  // Most results are a few lines: no plan would have them read otherwise, nor in more than one turn.
  if (all.length <= MAX_UNBATCHED_TEXTS && lengthOf(all) <= UNITS_PER_TURN) return scanEach(all);
  const readings = planReadings(all);
  let units = 0;
  let next = readings.next();
  while (next.done !== true) {
    const text = next.value;
    units += text.length;
    if (units > UNITS_PER_TURN) {
      units = text.length;
      await yieldNow();
    }
    next = readings.next(text.length > UNITS_PER_TURN ? await detectInSteps(text, yieldNow) : detect(text));
  }
  return next.value;
}

function lengthOf(texts: readonly string[]): number {
  let sum = 0;
  for (const { length } of texts) sum += length;
  return sum;
}

function scanEach(texts: readonly string[]): TextFindings {
  const found = new Map<string, readonly Finding[]>();
  for (const text of texts) {
    const findings = detect(text);
    if (findings.length > 0) found.set(text, findings);
  }
  return found;
}

/**
 * Yields texts to be read and takes what was found in each. Short texts are read together first. That one reading only
 * says which of them to look at: what stands around a phrase makes it better or worse, and texts of different fields
 * are not around each other.
 */
function* planReadings(texts: readonly string[]): Generator<string, TextFindings, readonly Finding[]> {
  const found = new Map<string, readonly Finding[]>();
  const short: string[] = [];
  for (const text of texts) {
    if (texts.length > MAX_UNBATCHED_TEXTS && text.length <= MAX_BATCHED_LENGTH) {
      short.push(text);
      continue;
    }
    const findings = yield text;
    if (findings.length > 0) found.set(text, findings);
  }
  let secondReadings = MAX_SECOND_READINGS;
  for (const batch of batches(short)) {
    // Quotation marks and fences would make what follows them a quotation.
    const findings = yield batch.join(SEPARATOR).replaceAll(/["'`~]/g, " ");
    for (const [text, roughly] of byText(batch, findings)) {
      secondReadings -= 1;
      const exactly = secondReadings < 0 ? roughly : yield text;
      if (exactly.length > 0) found.set(text, exactly);
    }
  }
  return found;
}

function* batches(texts: readonly string[]): Generator<string[]> {
  let batch: string[] = [];
  let length = 0;
  for (const text of texts) {
    if (length > BATCH_LENGTH) {
      yield batch;
      batch = [];
      length = 0;
    }
    batch.push(text);
    length += text.length + SEPARATOR.length;
  }
  if (batch.length > 0) yield batch;
}

/**
 * Findings of a batch, by the texts that they touch, with offsets of those texts. Findings of one code do not overlap,
 * so that all of them together touch each text a few times at most.
 */
function byText(batch: readonly string[], findings: readonly Finding[]): Map<string, Finding[]> {
  const touched = new Map<string, Finding[]>();
  if (findings.length === 0) return touched;
  const starts: number[] = [];
  let length = 0;
  for (const text of batch) {
    starts.push(length);
    length += text.length + SEPARATOR.length;
  }
  for (const finding of findings) {
    for (let index = lastAtOrBefore(starts, finding.start); index < batch.length; index += 1) {
      const start = starts[index] ?? 0;
      const text = batch[index] ?? "";
      if (start >= finding.end) break;
      if (start + text.length <= finding.start) continue;
      const own = touched.get(text);
      const shifted = {
        ...finding,
        start: Math.max(0, finding.start - start),
        end: Math.min(text.length, finding.end - start),
      };
      if (own === undefined) touched.set(text, [shifted]);
      else own.push(shifted);
    }
  }
  return touched;
}

function lastAtOrBefore(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
