/** The detectors that a config brings: they read what the built-in rules read, and their findings are joined with those of the rules. */
import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { mapLimit, withTimeout } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import { LruMap } from "../../base/maps.ts";
import { excerptOf } from "../../base/visible-text.ts";
import { type ContentOptions, type ScanContent, scanLargeTexts } from "../../guard/scan-texts.ts";
import type { DetectorEntry } from "../../model/config.ts";
import type { Finding, Place } from "../../model/finding.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { Classifier, Verdict } from "./classifiers.ts";

interface DetectorsOptions {
  readonly clock: Clock;
  /** The value of a reference, which is masked from then on. */
  readonly resolve: (reference: string, baseDir: string) => Promise<string>;
  /** Hides secrets from services. */
  readonly mask: (text: string) => string;
  readonly warn: (message: string) => void;
}

/** Lines that come all the time, and are passed on as they come. */
const RARELY_READ: readonly Place[] = ["progress", "log"];
/** Shorter texts say nothing to a classifier. */
const MIN_LENGTH = 12;
/** Results of many small strings: above this many, short ones are read together. */
const MAX_SINGLE_TEXTS = 32;
const MAX_SHORT_LENGTH = 200;
const GROUP_LENGTH = 1500;
/** Of one result. */
const MAX_GROUPS = 512;
/** Texts that are read alone at a time, after they failed together. */
const MAX_ALONE = 8;
/** Between two warnings about one detector. */
const WARN_MS = 60_000;

type DetectorConfig = Pick<LoadedConfig, "config" | "baseDir">;

/** Opens the detectors of a config, and keeps those that another config has too. */
export class Detectors {
  readonly #options: DetectorsOptions;
  #open: readonly Detector[] = [];

  constructor(options: DetectorsOptions) {
    this.#options = options;
  }

  /** Throws `invalid_config` for one that cannot be used. Those of the current config stay until `keep`. */
  async prepare({ config, baseDir }: DetectorConfig): Promise<void> {
    for (const [index, entry] of config.guard.detectors.entries()) {
      if (this.#find(entry, baseDir) !== undefined) continue;
      const name = entry.name ?? `${entry.type}-${index + 1}`;
      // Loaded where it is needed: most hubs have none.
      const { openClassifier } = await import("./classifiers.ts");
      const classifier = await openClassifier(entry, { name, baseDir, resolve: this.#options.resolve });
      this.#open = [...this.#open, new Detector(name, entry, baseDir, classifier, this.#options)];
    }
  }

  /** This config applies from now on: the detectors of others are closed. */
  keep({ config, baseDir }: DetectorConfig): void {
    const used = config.guard.detectors.flatMap((entry) => this.#find(entry, baseDir) ?? []);
    for (const gone of this.#open.filter((each) => !used.includes(each))) gone.close();
    this.#open = used;
  }

  /** The readers of texts by this config, whose detectors were prepared. One that is only looked at may have none. */
  readersOf({ config, baseDir }: DetectorConfig): { readonly scan: ScanContent; detects(place: Place): boolean } {
    const used = config.guard.detectors.flatMap((entry) => this.#find(entry, baseDir) ?? []);
    if (used.length === 0) return { scan: scanLargeTexts, detects: () => false };
    return {
      detects: (place) => used.some((detector) => detector.reads(place)),
      async scan(texts, options) {
        const all = [...texts];
        const place = options.place ?? "result";
        const [found, ...detected] = await Promise.all([
          scanLargeTexts(all, options),
          ...used.filter((detector) => detector.reads(place)).map((detector) => detector.scan(all, options)),
        ]);
        const joined = new Map(found);
        for (const [text, finding] of detected.flat()) joined.set(text, [...(joined.get(text) ?? []), finding]);
        return joined;
      },
    };
  }

  close(): void {
    for (const detector of this.#open) detector.close();
    this.#open = [];
  }

  #find(entry: DetectorEntry, baseDir: string): Detector | undefined {
    return this.#open.find((each) => each.baseDir === baseDir && isDeepStrictEqual(each.entry, entry));
  }
}

type Verdicts = readonly Verdict[] | undefined;

interface Piece {
  readonly text: string;
  /** The texts that it is made of, where several are read together. */
  readonly of: readonly string[];
}

/** One detector: its cache, its time limit, and what its failures mean. */
class Detector {
  readonly entry: DetectorEntry;
  readonly baseDir: string;
  readonly #name: string;
  readonly #classifier: Classifier;
  readonly #options: DetectorsOptions;
  readonly #places: ReadonlySet<Place> | undefined;
  readonly #known: LruMap<string, readonly Verdict[]>;
  #warnedAt = -Infinity;

  constructor(name: string, entry: DetectorEntry, baseDir: string, classifier: Classifier, options: DetectorsOptions) {
    this.#name = name;
    this.entry = entry;
    this.baseDir = baseDir;
    this.#classifier = classifier;
    this.#options = options;
    this.#places = entry.places && new Set(entry.places);
    this.#known = new LruMap(entry.cacheEntries);
  }

  reads(place: Place): boolean {
    return this.#places?.has(place) ?? !RARELY_READ.includes(place);
  }

  close(): void {
    void this.#classifier.close?.();
  }

  async scan(
    texts: readonly string[],
    { place = "result", mask, onUnread }: ContentOptions,
  ): Promise<[string, Finding][]> {
    const pieces = piecesOf(texts);
    if (pieces.length === 0) return [];
    const { maxCharacters } = this.entry;
    const { fitting = [], others = [] } = Object.groupBy(pieces, ({ text }, index) =>
      text.length <= maxCharacters && index < MAX_GROUPS ? "fitting" : "others",
    );
    if (others.length > 0) this.#warn(`${others.length} texts are longer or more than it reads`);
    const unread = this.entry.onFailure === "closed" ? [FAILED] : [];
    const verdicts = await this.#verdicts(fitting, place, mask);
    if (verdicts.includes(undefined)) onUnread?.();
    return [
      ...others.flatMap((piece) => this.#findings(piece, unread, place)),
      ...fitting.flatMap((piece, index) => this.#findings(piece, verdicts[index] ?? unread, place)),
    ];
  }

  /** Undefined for a text that it failed on: the verdicts on the others count all the same. */
  async #verdicts(pieces: readonly Piece[], place: Place, mask?: (text: string) => string): Promise<Verdicts[]> {
    const leaves = this.entry.type === "http";
    const masked = (text: string): string => this.#options.mask(mask?.(text) ?? text);
    const sent = pieces.map(({ text }) => (leaves ? masked(text) : text));
    const keys = sent.map((text) => hash("sha256", `${place}\0${text}`, "base64"));
    const verdicts = keys.map((key) => this.#known.get(key));
    const missing = [...verdicts.keys()].filter((index) => verdicts[index] === undefined);
    const fresh = await this.#classify(
      missing.map((index) => sent[index] ?? ""),
      place,
    );
    for (const [at, index] of missing.entries()) {
      const given = fresh[at]?.filter(({ score }) => score >= this.entry.threshold);
      verdicts[index] = given;
      if (given !== undefined && this.entry.cacheEntries > 0) this.#known.set(keys[index] ?? "", given);
    }
    // A part of a masked text is another part of the text itself.
    return verdicts.map((given, index) =>
      sent[index] === pieces[index]?.text ? given : given?.map(({ score, code }) => ({ score, code })),
    );
  }

  /** One text that makes it fail must not hide the others: those that fail together are read alone. */
  async #classify(texts: readonly string[], place: Place): Promise<Verdicts[]> {
    const verdicts: Verdicts[] = texts.map(() => undefined);
    const all = [...texts.keys()];
    if (all.length === 0) return verdicts;
    const read = async (indexes: readonly number[], signal: AbortSignal): Promise<void> => {
      const given = await this.#classifier.classify(
        indexes.map((index) => texts[index] ?? ""),
        { place, signal },
      );
      if (signal.aborted) return;
      if (given.length !== indexes.length)
        throw new Error(`it answered ${given.length} texts, and was given ${indexes.length}`);
      for (const [at, index] of indexes.entries()) verdicts[index] = given[at];
    };
    const { timeoutMs } = this.entry;
    const { atOnce } = this.#classifier;
    if (atOnce === undefined) {
      const isDone = await this.#inTime(timeoutMs, (signal) => read(all, signal));
      if (isDone || all.length === 1) return verdicts;
    }
    // Each gets its share of the time that is left, the shortest first: those that it hangs on do not use up that of the others.
    const { clock } = this.#options;
    const until = clock.now() + timeoutMs;
    const slots = atOnce ?? MAX_ALONE;
    let left = all.length;
    const shortestFirst = all.toSorted((a, b) => (texts[a]?.length ?? 0) - (texts[b]?.length ?? 0));
    await mapLimit(shortestFirst, slots, async (index) => {
      const share = Math.max(1, until - clock.now()) / Math.ceil(left / slots);
      left -= 1;
      await this.#inTime(share, (signal) => read([index], signal));
    });
    return verdicts;
  }

  /** False if it failed or took too long, of which a warning tells. */
  async #inTime(ms: number, work: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    const ending = new AbortController();
    const late = (): Error => new Error(`it took longer than ${Math.round(ms)} ms`);
    try {
      await withTimeout(work(ending.signal), { ms, late, clock: this.#options.clock });
      return true;
    } catch (error) {
      this.#warn(error instanceof Error ? error.message : String(error));
      return false;
    } finally {
      ending.abort();
    }
  }

  #findings({ text, of }: Piece, verdicts: readonly Verdict[], place: Place): [string, Finding][] {
    const { threshold } = this.entry;
    return verdicts.flatMap(({ score, code = "detector_match", start: from = 0, end: to = text.length }) =>
      of.map((each): [string, Finding] => {
        const isWhole = each !== text;
        const start = isWhole ? 0 : Math.max(0, Math.min(from, each.length));
        const end = isWhole ? each.length : Math.max(start, Math.min(to, each.length));
        const severity = score >= (1 + threshold) / 2 ? "high" : "medium";
        const rules = [`detector:${this.#name}`];
        const scored = Math.round(Math.min(1, score) * 100) / 10;
        return [
          each,
          { code, severity, start, end, excerpt: excerptOf(each, start, end), score: scored, rules, place },
        ];
      }),
    );
  }

  #warn(reason: string): void {
    const now = this.#options.clock.now();
    if (now - this.#warnedAt < WARN_MS) return;
    this.#warnedAt = now;
    const effect =
      this.entry.onFailure === "open"
        ? "What it did not read is judged by the other detectors alone."
        : "What it did not read counts as suspicious.";
    this.#options.warn(`The detector ${this.#name} of guard.detectors failed: ${reason}. ${effect}`);
  }
}

/** A text that was not read is not considered clean. */
const FAILED: Verdict = { score: 1 };

function piecesOf(texts: readonly string[]): Piece[] {
  const read = texts.filter((text) => text.length >= MIN_LENGTH);
  if (read.length <= MAX_SINGLE_TEXTS) return read.map((text) => ({ text, of: [text] }));
  const pieces: Piece[] = [];
  let group: string[] = [];
  let length = 0;
  const flush = (): void => {
    if (group.length > 0) pieces.push({ text: group.join("\n"), of: group });
    group = [];
    length = 0;
  };
  for (const text of read) {
    if (text.length > MAX_SHORT_LENGTH) {
      pieces.push({ text, of: [text] });
      continue;
    }
    if (length + text.length > GROUP_LENGTH) flush();
    group.push(text);
    length += text.length + 1;
  }
  flush();
  return pieces;
}
