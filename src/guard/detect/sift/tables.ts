/** All that a text is sifted for, in tables. Made when the first text is looked at: they cost some milliseconds. */
import { BACKWARDS_PARTS, ROTATED_PARTS } from "../decode.ts";
import { CUE_BOOK } from "../phrases/cue-book.ts";
import { CJK_UNITS, GLUED_STARTS } from "../phrases/unspaced.ts";
import { isNotable } from "../scores.ts";
import { type Anchor, anchorsOf, markedWord } from "./anchors.ts";
import { type Classes, classesOf, MarkMaker, type Marks, pairClasses, type PairClasses, type Range } from "./grams.ts";
import { type SignWord, signWords } from "./structure.ts";
import { type TopicWord, topicWords } from "./topics.ts";

/** What a word may mean for a text. */
export interface WordFacts {
  readonly word: string;
  /** It is looked for inside of words, too. */
  readonly part: boolean;
  readonly anchors: readonly Anchor[];
  readonly topic: TopicWord | undefined;
  readonly signs: readonly SignWord[];
}

export interface SiftTables {
  readonly marks: Marks;
  /** By what the marks find. */
  readonly facts: readonly WordFacts[];
  /** By the number of a word. */
  readonly topics: ReadonlyMap<number, TopicWord>;
  /** For a text as it stands: odd is what normalising changes. */
  readonly plain: Classes;
  /** For a normalised text: odd are letters of scripts that phrases are written in. */
  readonly folded: Classes;
  /** Odd are only those that phrases with spaces have. */
  readonly foreign: Classes;
  /** Nothing is odd. */
  readonly quiet: Classes;
  /** Pairs of ASCII. What is odd of it in a text as it stands is in no other. */
  readonly pairs: PairClasses;
}

let tables: SiftTables | undefined;

export function siftTables(): SiftTables {
  return (tables ??= makeTables());
}

/** All but tab, line breaks and what ASCII prints. */
const NOT_PLAIN: readonly Range[] = [
  [0x00, 0x08],
  [0x0b, 0x0c],
  [0x0e, 0x1f],
  [0x7f, 0xffff],
];

function makeTables(): SiftTables {
  const maker = new MarkMaker();
  const facts: WordFacts[] = [];
  const { vocabulary } = CUE_BOOK;
  const anchors = anchorsOf(CUE_BOOK, isNotable);
  const topics = topicWords(CUE_BOOK);
  const signs = signWords();
  const topicsOf = new Map<string, TopicWord>();
  for (let number = 1; number <= vocabulary.size; number += 1) {
    if (vocabulary.withHash(vocabulary.hash(number)) !== number)
      throw new Error(`${vocabulary.word(number)} has the hash of another word, and words are told by it here.`);
    const topic = topics.get(number);
    const word = markedWord(vocabulary.word(number));
    if (topic === undefined) continue;
    if (word === undefined || topicsOf.has(word)) throw new Error("A topic is written in ASCII, and without a dot.");
    topicsOf.set(word, topic);
  }
  for (const word of new Set([...anchors.keys(), ...topicsOf.keys(), ...signs.keys()])) {
    facts[maker.addWord(word)] = {
      word,
      part: false,
      anchors: anchors.get(word) ?? [],
      topic: topicsOf.get(word),
      signs: signs.get(word) ?? [],
    };
  }
  for (const part of [...ROTATED_PARTS, ...BACKWARDS_PARTS, ...GLUED_STARTS])
    facts[maker.addPart(part)] = { word: part, part: true, anchors: [], topic: undefined, signs: [] };
  const foreign = foreignUnits();
  const plain = classesOf(NOT_PLAIN);
  return {
    marks: maker.make(),
    facts,
    topics,
    plain,
    folded: classesOf([...CJK_UNITS, ...foreign]),
    foreign: classesOf(foreign),
    quiet: classesOf([]),
    pairs: pairClasses(plain),
  };
}

/** Letters of the phrases that folding leaves in another script. */
function foreignUnits(): Range[] {
  const words = Array.from({ length: CUE_BOOK.vocabulary.size }, (_, index) => CUE_BOOK.vocabulary.word(index + 1));
  const units = new Set(Array.from(words.join(""), (character) => character.charCodeAt(0)));
  return [...units].filter((unit) => unit >= 0x80).map((unit) => [unit, unit]);
}
