/**
 * One part of each phrase is its anchor: no match without one of its words. Beside it, another part of the phrase must
 * stand within a few words. Both are worked out from the phrase book, so a new phrase has its anchor by itself.
 */
import type { ParsedPart, PhraseBook } from "../phrases/book.ts";
import type { CueLabel } from "../phrases/cue.ts";
import type { Vocabulary } from "../vocabulary.ts";

/** How far from an anchor its witness may stand, by the number of the witness. */
export interface Witnesses {
  readonly reach: ReadonlyMap<number, number>;
  readonly furthest: number;
  /** One of them may stand in another sentence. */
  readonly crosses: boolean;
  /** The letters from "a" on with which one of them starts, a bit for each. */
  readonly initials: number;
}

export interface Anchor {
  readonly before: Witnesses | undefined;
  readonly after: Witnesses | undefined;
}

/** A word, as it is looked for, and what it anchors. */
export type Anchors = ReadonlyMap<string, readonly Anchor[]>;

/** Words that every text is full of. They and those below make poor anchors; one that is missing here only costs time. */
const ABUNDANT = new Set(
  (
    "a all an and are as at be but by can do for from has have he i if in is it its may my no not of on or should so that the they this to " +
    "was we were what when which will with you your"
  ).split(" "),
);
/** Words that programs, data and logs repeat all the time. */
const FREQUENT = new Set(
  (
    "add api call client code data debug email file function get http https key message name new null open page path request return set " +
    "string text token true type url use user value warn"
  ).split(" "),
);
const COMMON = new Set(
  (
    "above access account action add after also answer any api arguments assistant auth bash before below break call change check client code " +
    "command commands content contents context create credentials current data debug delete details discuss display document does each email " +
    "end endpoint every file files fill find first folder follow format forget function get given google http https ignore ignored image img " +
    "include input install instead instructions into invalid job key keys last let like link list log login message messages model must name " +
    "never next note nothing now null only open order other out output override package page parameter parameters parse password path place " +
    "please policy post previous print process profile prompt prompts protocol query read reader reference replace report request required " +
    "require reset response rest result results return review role root rule rules run script search secret see send session set share show " +
    "src start step stop string subject summary system table task team tell template terminal text their them then throw token tokens tool " +
    "tools top true type under update updated url us use user users using value view void warn warning who without word words work write"
  ).split(" "),
);

interface Choice {
  readonly anchor: ParsedPart;
  readonly witness: ParsedPart | undefined;
  /** Words from the anchor on to the witness at the most; below zero if it stands before. */
  readonly reach: number;
  readonly crosses: boolean;
}

/** `isNotable` tells the phrases that can become findings by themselves. */
export function anchorsOf(
  { phrases, vocabulary }: PhraseBook<CueLabel>,
  isNotable: (label: CueLabel) => boolean,
): Anchors {
  const costs = Array.from({ length: vocabulary.size + 1 }, (_, number) => costOf(vocabulary.word(number)));
  const choices = new Map<number, Choice[]>();
  for (const { label, parts } of phrases) {
    if (!isNotable(label)) continue;
    const choice = choose(parts, costs);
    for (const number of choice.anchor.words) choices.set(number, [...(choices.get(number) ?? []), choice]);
  }
  // Words of one class anchor the same phrases and share what is known of them.
  const shared = new Map<string, Anchor>();
  const numberOf = new Map([...choices.values()].flat().map((choice, index) => [choice, index]));
  const anchors = new Map<string, readonly Anchor[]>();
  for (const [number, own] of choices) {
    const key = own.map((choice) => numberOf.get(choice)).join(" ");
    const anchor = shared.get(key) ?? {
      before: witnesses(own, -1, vocabulary),
      after: witnesses(own, 1, vocabulary),
    };
    shared.set(key, anchor);
    const word = markedWord(vocabulary.word(number));
    if (word !== undefined) anchors.set(word, [...(anchors.get(word) ?? []), anchor]);
  }
  return anchors;
}

/**
 * How a word is looked for: the dot of ".env" is no letter. Words with letters of other scripts are not looked for at
 * all, since their letters are.
 */
export function markedWord(word: string): string | undefined {
  return /^[\x20-\x7e]*$/.test(word) ? word.replace(/^\./, "") : undefined;
}

function costOf(word: string): number {
  if (ABUNDANT.has(word)) return 400;
  if (FREQUENT.has(word)) return 120;
  if (COMMON.has(word)) return 30;
  return word.length < 4 ? 8 : 2;
}

/** The pair of neighbours that is looked for least often, with the fewest words walked, and is found least often. */
function choose(parts: readonly ParsedPart[], costs: readonly number[]): Choice {
  const needed = parts.filter(({ optional }) => !optional);
  const costOfParts = new Map(
    needed.map((part) => [part, part.words.reduce((sum, number) => sum + (costs[number] ?? 0), 0)]),
  );
  const cost = (part: ParsedPart): number => costOfParts.get(part) ?? 0;
  const [first] = needed;
  if (first === undefined) throw new Error("A phrase has no part that must be there.");
  let best: Choice = { anchor: first, witness: undefined, reach: 0, crosses: false };
  let least = Number.POSITIVE_INFINITY;
  for (const [index, second] of needed.entries()) {
    const before = needed[index - 1];
    if (before === undefined) continue;
    // Optional parts in between may be there.
    const between = parts.slice(parts.indexOf(before) + 1, parts.indexOf(second) + 1);
    const reach = between.reduce((words, { gap }) => words + gap + 1, 0);
    const crosses = between.some((part) => part.crosses);
    for (const [anchor, witness, side] of [
      [before, second, 1],
      [second, before, -1],
    ] as const) {
      const own = cost(anchor) * (2 + reach + cost(witness) * reach * WITNESS_COST);
      if (own < least) [least, best] = [own, { anchor, witness, reach: side * reach, crosses }];
    }
  }
  return best;
}

/** A witness that is found costs as much as many words that are walked; common ones are found more often. */
const WITNESS_COST = 0.004;

/** The bit of a letter; all bits for what may stand for any. */
export function initialOf(unit: number): number {
  const letter = unit | 0x20;
  return letter >= 0x61 && letter <= 0x7a ? 1 << (letter - 0x61) : -1;
}

function witnesses(choices: readonly Choice[], side: -1 | 1, vocabulary: Vocabulary): Witnesses | undefined {
  const reach = new Map<number, number>();
  let furthest = 0;
  let initials = 0;
  let crosses = false;
  for (const choice of choices) {
    const own = choice.reach * side;
    // A phrase of one part is there as soon as its anchor is: every word is a witness.
    if (choice.witness === undefined) return undefined;
    if (own <= 0) continue;
    furthest = Math.max(furthest, own);
    crosses ||= choice.crosses;
    for (const number of choice.witness.words) {
      reach.set(number, Math.max(reach.get(number) ?? 0, own));
      initials |= initialOf(vocabulary.word(number).charCodeAt(0));
    }
  }
  return { reach, furthest, crosses, initials };
}
