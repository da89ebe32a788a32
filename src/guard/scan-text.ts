/** Reads a text for attacks on the model that is going to read it: words by the table of rules, signs by their structure. */
import { isOneEditAway } from "../base/near-matches.ts";
import { excerptOf } from "../base/visible-text.ts";
import { type Finding, type FindingCode, type Severity } from "../model/finding.ts";
import { WordTable } from "./automaton.ts";
import { type Encoded, encodedParts, respelled, type TurnedWords } from "./decode.ts";
import { composed, normalise, type NormalText } from "./normalise.ts";
import { type Concept, CONCEPTS, type Rule, RULES, TYPO_WORDS } from "./rules.ts";
import { findSigns, hiddenSpans, type Sign, type Span } from "./structure.ts";

/** Where a server put the text. */
export const PLACES = [
  "definition",
  "instructions",
  "result",
  "error",
  "resource",
  "prompt",
  "skill",
  "progress",
  "log",
  "elicitation",
  "sampling",
] as const;

export type Place = (typeof PLACES)[number];

export const SENSITIVITIES = ["low", "normal", "high"] as const;

export type Sensitivity = (typeof SENSITIVITIES)[number];

export interface ScanOptions {
  readonly place?: Place;
  readonly sensitivity?: Sensitivity;
}

/**
 * What is added to the thresholds. Definitions, prompts and skills speak to the model by their nature, and a line of
 * progress or of a log has no reason to.
 */
const BY_PLACE: Readonly<Record<Place, number>> = {
  definition: 0.5,
  instructions: 1,
  prompt: 1,
  skill: 0.5,
  result: 0,
  resource: 0,
  error: 0,
  elicitation: 0,
  sampling: 0.5,
  progress: -0.5,
  log: 0,
};
const BY_SENSITIVITY: Readonly<Record<Sensitivity, number>> = { low: 1.5, normal: 0, high: -1 };
const LOW = 2.5;
const MEDIUM = 4;
const HIGH = 7;

/** Matches of rules further apart than this have nothing to do with each other. */
const PASSAGE_GAP = 200;
const PASSAGE_LENGTH = 700;
/** Matches that are kept of a text, and of a long one a match for so many units. Repeats are left out before more are refused. */
const MAX_MATCHES = 3_000;
const UNITS_PER_MATCH = 12;
/** Of repeats of a rule within so many units the strongest says it all: less than half of what parts two passages. */
const REPEAT_REACH = 64;
/** Of a match that makes a comment an order. */
const MIN_HIDDEN_WEIGHT = 2.5;
const MIN_LECTURE_TOPICS = 5;
const COMPANY_SHARE = 0.5;
const REPEAT_SHARE = 0.1;
/** Encodings are unpacked twice at most, and of each text this much. */
const MAX_DEPTH = 2;
const MAX_DECODED_LENGTH = 256 * 1024;
// oxlint-disable-next-line no-control-regex -- tab and newlines are the controls that need no closer look
const NOT_PLAIN = /[^\t\n\r\u0020-\u007e]/;

/**
 * The suspicious places of a text, in their order. Linear in the length of the text.
 *
 * @example scanText("Ignore all previous instructions.")[0]?.code // "instruction_override"
 */
export function scanText(text: string, { place = "result", sensitivity = "normal" }: ScanOptions = {}): Finding[] {
  const raised = BY_PLACE[place] + BY_SENSITIVITY[sensitivity];
  const findings: Finding[] = [];
  for (const { score, matches } of passagesOf(text)) {
    // What no text has is as odd in one place as in another.
    const severity = severityOf(matches.some(({ plain }) => plain === true) ? score : score - raised);
    if (severity === undefined) continue;
    for (const { kind, start, end, rules } of byKind(matches)) {
      findings.push({ code: kind, severity, start, end, excerpt: excerptOf(text, start, end), score, rules, place });
    }
  }
  return findings;
}

function severityOf(score: number): Severity | undefined {
  if (score >= HIGH) return "high";
  if (score >= MEDIUM) return "medium";
  return score >= LOW ? "low" : undefined;
}

export interface Passage {
  readonly score: number;
  readonly matches: readonly Sign[];
}

/** All that the rules match in a text, suspicious or not. */
export function passagesOf(text: string, depth = 0): Passage[] {
  const reading = new Reading(text);
  const matches = reading.matches();
  if (depth < MAX_DEPTH) matches.push(...encodedMatches(text, reading.turned, depth));
  return groupMatches(matches).map((group) => ({ matches: group, score: reading.scoreOf(group) }));
}

/** Encoded text is suspicious when what it says is, with less than would be enough in the open. */
function encodedMatches(text: string, turned: TurnedWords, depth: number): Sign[] {
  const found: Sign[] = [];
  let room = MAX_DECODED_LENGTH;
  for (const { start, end, text: plain } of decodedParts(text, turned)) {
    room -= plain.length;
    if (room < 0) break;
    const score = Math.max(0, ...passagesOf(plain, depth + 1).map((passage) => passage.score));
    if (score < LOW) continue;
    found.push({ rule: "encoded", kind: "encoded_payload", weight: Math.min(10, score + 3), plain: true, start, end });
    if (found.length >= MAX_MATCHES) break;
  }
  return found;
}

function* decodedParts(text: string, turned: TurnedWords): Generator<Encoded> {
  yield* encodedParts(text);
  yield* respelled(text, turned);
}

function groupMatches(matches: Sign[]): Sign[][] {
  const groups: Sign[][] = [];
  let group: Sign[] = [];
  let end = -Infinity;
  for (const match of matches.toSorted((a, b) => a.start - b.start)) {
    if (match.start - end > PASSAGE_GAP || match.start - (group[0]?.start ?? 0) > PASSAGE_LENGTH) {
      if (group.length > 0) groups.push(group);
      group = [];
      end = match.end;
    }
    group.push(match);
    end = Math.max(end, spanOf(match).end);
  }
  if (group.length > 0) groups.push(group);
  return groups;
}

/** With the repeats that it stands for. */
function spanOf({ start, end, run }: Sign): Span {
  return run ?? { start, end };
}

interface KindSpan extends Span {
  readonly kind: FindingCode;
  readonly rules: readonly string[];
}

/** One finding for each kind in a passage, over all that was found of it. */
function byKind(matches: readonly Sign[]): KindSpan[] {
  const spans = new Map<FindingCode, { kind: FindingCode; start: number; end: number; rules: string[] }>();
  for (const match of matches) {
    const { kind, rule } = match;
    const { start, end } = spanOf(match);
    const own = spans.get(kind);
    if (own === undefined) spans.set(kind, { kind, start, end, rules: [rule] });
    else {
      own.start = Math.min(own.start, start);
      own.end = Math.max(own.end, end);
      if (!own.rules.includes(rule)) own.rules.push(rule);
    }
  }
  return [...spans.values()].toSorted((a, b) => a.start - b.start);
}

// The table of rules, made ready for the automaton.

const NAMES = Object.keys(CONCEPTS) as Concept[];
const TOPIC = NAMES.indexOf("topic");
const ROTATED = NAMES.indexOf("rotated");
const BACKWARDS = NAMES.indexOf("backwards");
const DROP = NAMES.indexOf("drop");
const EARLIER = NAMES.indexOf("earlier");
const ORDERS = NAMES.indexOf("orders");
const DEFAULT_GAP = 30;

/** A rule up to one of its concepts. */
interface Step {
  readonly rule: number;
  /** Index of this step among all, by which its latest match is kept. */
  readonly index: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
  readonly gap: number;
}

interface Compiled {
  readonly finder: WordTable;
  /** By concept, later steps of a rule first, so that one word is not taken for two. */
  readonly steps: readonly (readonly Step[])[];
  /** Per step of a rule: where its words began and ended last in the text that is read, -1 for nowhere. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

let compiled: Compiled | undefined;

function compile(): Compiled {
  const steps: Step[][] = NAMES.map(() => []);
  let count = 0;
  for (const [rule, { id, pattern }] of RULES.entries()) {
    let gap = DEFAULT_GAP;
    const terms: { concept: number; gap: number }[] = [];
    for (const term of pattern.split(" ")) {
      if (/^\d+$/.test(term)) {
        gap = Number(term);
        continue;
      }
      const concept = NAMES.indexOf(term as Concept);
      if (concept === -1) throw new RangeError(`The rule ${id} names an unknown concept: ${term}.`);
      terms.push({ concept, gap });
      gap = DEFAULT_GAP;
    }
    for (const [at, { concept, gap }] of terms.entries()) {
      steps[concept]?.unshift({ rule, index: count, isFirst: at === 0, isLast: at === terms.length - 1, gap });
      count += 1;
    }
  }
  const words = NAMES.flatMap((name, concept) =>
    Object.values(CONCEPTS[name]).map((list: string) => [concept, list] as const),
  );
  return { finder: new WordTable(words), steps, starts: new Int32Array(count), ends: new Int32Array(count) };
}

/** One text, read once. */
class Reading {
  readonly #text: string;
  #matches: Sign[] = [];
  readonly #topics: number[] = [];
  readonly turned = { rotated: [] as number[], backwards: [] as number[] };
  readonly #room: number;
  /** Where the first match lies that there was no room for. */
  #fullAt = Infinity;
  #hidden: readonly Span[] | undefined;
  #fences: readonly number[] | undefined;

  constructor(text: string) {
    this.#text = text;
    this.#room = Math.max(MAX_MATCHES, text.length / UNITS_PER_MATCH);
  }

  matches(): Sign[] {
    const isPlain = !NOT_PLAIN.test(this.#text);
    this.#findWords(this.#text, isPlain, undefined);
    // Letters of other alphabets that fold into several units, or into pairs of them.
    if (!isPlain && /[\u001b\ud835\ufb00-\ufb06\u2474-\u24ff]|\ud83c[\udd30-\udd89]/.test(this.#text)) {
      const normal = normalise(this.#text);
      this.#findWords(normal.text, false, normal);
    }
    if (!isPlain && /[\u1100-\u11ff]/.test(this.#text)) {
      const whole = composed(this.#text);
      this.#findWords(whole.text, false, whole);
    }
    findSigns(this.#text, isPlain, (sign) => this.#add(sign));
    this.#findHiddenOrders();
    // What cannot be read to its end is not considered clean.
    if (this.#fullAt < Infinity) {
      const [start, end] = [this.#fullAt, this.#text.length];
      this.#matches.push({ rule: "unreadable", kind: "hidden_text", weight: 5, plain: true, start, end });
    }
    return this.#matches;
  }

  /** Comments are everywhere; one that gives orders is not. */
  #findHiddenOrders(): void {
    if (!this.#text.includes("<")) return;
    const orders = new Set<Span>();
    for (const { start, weight } of this.#matches) {
      const span = weight >= MIN_HIDDEN_WEIGHT ? this.#hiddenAt(start) : undefined;
      if (span !== undefined) orders.add(span);
    }
    for (const { start, end } of orders)
      this.#add({ rule: "hidden-markup", kind: "hidden_text", weight: 3.5, plain: true, weak: true, start, end });
  }

  #add(sign: Sign): void {
    if (this.#fullAt === Infinity && this.#matches.length >= this.#room) {
      this.#leaveOutRepeats();
      // For less room than this it is not worth looking at all of them again.
      if (this.#matches.length > this.#room * 0.75) this.#fullAt = sign.start;
    }
    if (this.#fullAt === Infinity) this.#matches.push(sign);
    else this.#fullAt = Math.min(this.#fullAt, sign.start);
  }

  #leaveOutRepeats(): void {
    const kept = new Map<string, { sign: Sign; strength: number; run: { start: number; end: number } }>();
    for (const sign of this.#matches) {
      const isHidden = this.#isHidden(sign.start);
      const key = `${sign.rule} ${sign.kind} ${sign.weak === true} ${isHidden} ${Math.floor(sign.start / REPEAT_REACH)}`;
      const { start, end } = spanOf(sign);
      const own = kept.get(key);
      if (own !== undefined) {
        own.run.start = Math.min(own.run.start, start);
        own.run.end = Math.max(own.run.end, end);
        if (own.strength >= sign.weight) continue;
      }
      const strength = sign.plain === true ? sign.weight : sign.weight * this.#contextOf(sign);
      if (own === undefined) kept.set(key, { sign, strength, run: { start, end } });
      else if (strength > own.strength) Object.assign(own, { sign, strength });
    }
    this.#matches = [...kept.values()].map(({ sign, run }) => ({ ...sign, run }));
  }

  #findWords(text: string, isPlain: boolean, folded: Pick<NormalText, "originalAt"> | undefined): void {
    const originalAt = (offset: number): number => folded?.originalAt(offset) ?? offset;
    const { finder, steps, starts, ends } = (compiled ??= compile());
    starts.fill(-1);
    ends.fill(-1);
    let typos = MAX_TYPO_CHECKS;
    const take = (concept: number, start: number, end: number): void => {
      for (const { rule, index, isFirst, isLast, gap } of steps[concept] ?? []) {
        if (isFirst) {
          starts[index] = start;
        } else {
          const before = ends[index - 1] ?? -1;
          if (before < 0 || before > start || start - before > gap) continue;
          starts[index] = starts[index - 1] ?? start;
        }
        ends[index] = end;
        if (isLast) this.#match(RULES[rule], originalAt(starts[index] ?? start), originalAt(end));
      }
    };
    finder.find(text, isPlain, (concept, start, end) => {
      if (concept === TOPIC) this.#topics.push(originalAt(start));
      else if (concept === ROTATED) this.turned.rotated.push(originalAt(start));
      else if (concept === BACKWARDS) this.turned.backwards.push(originalAt(start));
      if ((concept === EARLIER || concept === ORDERS) && typos > 0) {
        typos -= 1;
        const word = typoBefore(text, start, TYPO_WORDS.drop);
        if (word !== undefined) take(DROP, word.start, word.end);
      }
      take(concept, start, end);
      if (concept === EARLIER && typos > 0) {
        const word = typoAfter(text, end, TYPO_WORDS.orders);
        if (word !== undefined) take(ORDERS, word.start, word.end);
      }
      return this.#fullAt < Infinity;
    });
  }

  #match(rule: Rule | undefined, start: number, end: number): void {
    if (rule === undefined) return;
    const { id, kind, weak, verb } = rule;
    const isJudged = verb === true || kind === "instruction_override";
    const weight = isJudged ? rule.weight * moodOf(this.#text, start, end, verb === true) : rule.weight;
    if (weight >= 1) this.#add({ rule: id, kind, weight, start, end, ...(weak === true ? { weak } : {}) });
  }

  /** The strongest kind counts in full and the others for a part; what is weak counts only with another kind. */
  scoreOf(matches: readonly Sign[]): number {
    const best = new Map<FindingCode, { weight: number; weak: boolean }>();
    const rules = new Map<string, number>();
    for (const match of matches) {
      const weight = match.plain === true ? match.weight : match.weight * this.#contextOf(match);
      rules.set(match.rule, Math.max(rules.get(match.rule) ?? 0, weight));
      const own = best.get(match.kind);
      const isWeak = match.weak === true;
      if (own === undefined) best.set(match.kind, { weight, weak: isWeak });
      else {
        if (!isWeak && weight >= 3) own.weak = false;
        own.weight = Math.max(own.weight, weight);
      }
    }
    const kinds = [...best.values()].toSorted((a, b) => b.weight - a.weight);
    const isHidden = matches.some((match) => this.#isHidden(match.start));
    const [first, ...others] = kinds;
    if (first === undefined) return 0;
    let company = 0;
    for (const { weight } of others) company += weight * COMPANY_SHARE;
    // Other rules of the same kinds say the same again.
    for (const weight of rules.values()) company += weight * REPEAT_SHARE;
    for (const { weight } of kinds) company -= weight * REPEAT_SHARE;
    const isWeak = kinds.every(({ weak }) => weak);
    if (isWeak && others.length === 0 && !isHidden) return Math.min(first.weight, LOW + 1);
    const score = first.weight * (isWeak ? 0.9 : 1) + company;
    if (isHidden) return Math.min(10, score * 1.4);
    // A list of attacks has many kinds side by side.
    const isLecture = !matches.some(({ plain }) => plain === true) && this.#topicsAround(matches) >= MIN_LECTURE_TOPICS;
    return Math.min(isLecture ? HIGH - 0.1 : 10, score);
  }

  #topicsAround(matches: readonly Span[]): number {
    return countBetween(this.#topics, (matches[0]?.start ?? 0) - 1_500, (matches.at(-1)?.end ?? 0) + 1_500);
  }

  /** Quotation, code and talk about attacks make a phrase harmless more often than not. */
  #contextOf({ start, end }: Sign): number {
    if (this.#isHidden(start)) return 1;
    const topics = countBetween(this.#topics, start - 600, end + 400);
    let share = 1 / (1 + 0.2 * Math.min(5, topics));
    if (isQuoted(this.#text, start, end)) share *= topics > 0 ? 0.5 : 0.7;
    if (this.#isFenced(start)) share *= 0.7;
    return share;
  }

  #isHidden(offset: number): boolean {
    return this.#hiddenAt(offset) !== undefined;
  }

  #hiddenAt(offset: number): Span | undefined {
    this.#hidden ??= hiddenSpans(this.#text);
    const before = lastStart(this.#hidden, offset);
    return before !== undefined && offset < before.end ? before : undefined;
  }

  #isFenced(offset: number): boolean {
    this.#fences ??= fencesOf(this.#text);
    return countBetween(this.#fences, 0, offset) % 2 === 1;
  }
}

/** Where code begins and ends: lines that start with three backticks. */
function fencesOf(text: string): number[] {
  const fences: number[] = [];
  for (let at = text.indexOf("```"); at !== -1; at = text.indexOf("```", at + 3)) {
    let before = at;
    while (before > 0 && at - before < 8 && /[ \t>]/.test(text[before - 1] ?? "")) before -= 1;
    if (before === 0 || text[before - 1] === "\n") fences.push(at);
  }
  return fences;
}

function lastStart(spans: readonly Span[], offset: number): Span | undefined {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((spans[middle]?.start ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return spans[low - 1];
}

/** Of rising values, how many lie there. */
function countBetween(values: readonly number[], from: number, to: number): number {
  return upTo(values, to) - upTo(values, from);
}

function upTo(values: readonly number[], limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

const MOOD_REACH = 40;
const NEGATED =
  /(?:\b(?:not|never|cannot|without|avoid|nicht|niemals|jamais|nunca|не|nao|non)|n't|n’t)\s+(?:\w+\s+){0,1}$|[不别勿]$/i;
const COMMANDED =
  /\b(?:you|assistant|ai|model|agent|llm)\b[^.!?\n]{0,24}$|\b(?:please|now|then|must|should|and|first|just|immediately|simply|kindly|instead|so|also)\s+$/i;
/** The verb begins something. */
const STARTED = /(?:^|[.!?:;>*"'`([{,#=~|\u2013\u2014-])[\s\\n]*$/;
const DESCRIBED =
  /\b(?:can|could|may|might|would|will|to|they|which|that|it|we|he|she|users?|attackers?|helps?|lets?|who|did|does|if|when|i|people|models|the|a|an|this|of|by|for|automatically|silently|should|or|is|are|be|been|was)\s+$/i;

/** Or the end of a row or an item. */
const SENTENCE_END = /[.!?][\s"')]|[。！？]|\n[ \t]{0,8}(?:\d|[-*|#])/;
/** "… instructions in the page": what a defender writes. */
const DEFENSIVE =
  /^[\s,]{0,2}(?:(?:that|which)\s(?:are\s|is\s|may\s|might\s|appears?\s|be\s){0,3})?(?:(?:found|contained|embedded|given|written|included|hidden|present|appearing|seen|inside)\s)?(?:in|within|inside|from)\s(?:the|this|that|it|them|any|such|external|untrusted|tool|web|user|retrieved|fetched|its|their|these|those|a|an)\b/i;

/** How much of an order the words are: "users may ignore it" describes, "never ignore it" forbids. */
function moodOf(text: string, start: number, end: number, isVerb: boolean): number {
  const share = SENTENCE_END.test(text.slice(start, end - 1))
    ? 0.6
    : DEFENSIVE.test(text.slice(end, end + 60))
      ? 0.5
      : 1;
  if (!isVerb) return share;
  const before = text.slice(Math.max(0, start - MOOD_REACH), start);
  const sentence = before.slice(
    Math.max(before.lastIndexOf(". "), before.lastIndexOf("\n"), before.lastIndexOf("! ")) + 1,
  );
  if (NEGATED.test(sentence)) return 0.2;
  if (COMMANDED.test(sentence)) return share;
  if (DESCRIBED.test(sentence)) return share * 0.5;
  return STARTED.test(sentence) ? share : share * 0.8;
}

const QUOTE_REACH = 300;

/** Between quotation marks or backticks that open and close on its line. */
function isQuoted(text: string, start: number, end: number): boolean {
  const before = text.slice(Math.max(0, start - QUOTE_REACH), start);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const after = text.slice(end, end + QUOTE_REACH).split("\n", 1)[0] ?? "";
  // A value of JSON or of a table is not a quotation.
  if (/(?:[:,;[{\t]\s{0,4}|^\s{0,8})"[^"]*$|"""/.test(line)) return false;
  return (
    [`"`, "`"].some((sign) => line.split(sign).length % 2 === 0 && after.includes(sign)) ||
    // Single quotes are apostrophes too, and a pattern is written between slashes.
    (/(?:^|[\s(=,:[])'(?:[^']|\w'\w){0,80}$/.test(line) && /^[^']{0,120}'(?:$|[\s).,;:!?\]])/.test(after)) ||
    (/(?:^|[\s(=,:[])\/[^/\n]{0,120}$/.test(line) && /^[^/\n]{0,120}\/[a-z]{0,6}\s{0,2}[,;).\]]/.test(after)) ||
    (/[“«「‘][^”»」’]{0,80}$/.test(line) && /^[^“«「]{0,120}[”»」’]/.test(after))
  );
}

const FILLERS = new Set(["all", "any", "the", "your", "my", "of", "alle", "todas", "toutes", "tutte"]);
const MAX_TYPO_CHECKS = 10_000;
const MIN_TYPO = 5;
const MAX_TYPO = 14;

/** The word before, fillers passed over, if it is one of the words with a typing error. */
function typoBefore(text: string, at: number, words: readonly string[]): Span | undefined {
  let end = at;
  for (let count = 0; count < 4; count += 1) {
    const from = end;
    while (end > 0 && from - end < 3 && isGap(text.charCodeAt(end - 1))) end -= 1;
    if (end === from) return undefined;
    let start = end;
    while (start > 0 && end - start <= MAX_TYPO && isAsciiLetter(text.charCodeAt(start - 1))) start -= 1;
    const length = end - start;
    // The letter of an escape such as `\n` belongs to no word.
    if (text[start - 1] === "\\") return undefined;
    if (length >= MIN_TYPO && length <= MAX_TYPO)
      return isTypo(text.slice(start, end), words) ? { start, end } : undefined;
    if (length < 2 || !FILLERS.has(text.slice(start, end).toLowerCase())) return undefined;
    end = start;
  }
  return undefined;
}

function typoAfter(text: string, at: number, words: readonly string[]): Span | undefined {
  let start = at;
  while (start - at < 3 && isGap(text.charCodeAt(start))) start += 1;
  if (start === at) return undefined;
  let end = start;
  while (end - start <= MAX_TYPO && isAsciiLetter(text.charCodeAt(end))) end += 1;
  const length = end - start;
  return length >= MIN_TYPO && length <= MAX_TYPO && isTypo(text.slice(start, end), words) ? { start, end } : undefined;
}

function isGap(unit: number): boolean {
  return unit === 0x20 || unit === 0x5f || unit === 0x2d;
}

function isAsciiLetter(unit: number): boolean {
  return (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a);
}

function isTypo(word: string, words: readonly string[]): boolean {
  const plain = word.toLowerCase();
  return words.some(
    (known) =>
      (known[0] === plain[0] || known[1] === plain[1] || known[0] === plain[1]) &&
      known !== plain &&
      isOneEditAway(known, plain),
  );
}
