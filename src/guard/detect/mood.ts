/** How the verb of a phrase is used. "Ignore it" commands, "users may ignore it" describes, "never ignore it" forbids. */
import type { Tokens } from "./tokens.ts";

export type Mood = "command" | "plain" | "description" | "negation";

const set = (words: string): ReadonlySet<string> => new Set(words.split(" "));

const FILLERS = set("please now also so just kindly immediately simply instead first next always");
const JOINING = set("and then or but");
const LEVELS = set("info warn warning error debug notice trace fatal critical");
/** With the commonest ones of other languages: none of them is an English word that matters here. */
const NEGATIONS = set(
  "nicht niemals ne n'ignorez non nao nunca niet nie не not never don't doesn't didn't cannot can't won't shouldn't mustn't wouldn't without refuse refuses no",
);
const DESCRIBING = set(
  "can could may might would will they it that which who users attackers we i he she did does do how when what they'll someone people anyone " +
    "models model llm attacker user prompts instructions helps let lets makes make made making causes trying tries try attempt attempts",
);
const DUTY = set("must should shall need");
const READER = set("you assistant ai model agent agents assistants models llm llms");
const OWING = set("you have need required are instructed ordered obligated obliged necessary important want supposed");

const TELLING = set(
  "ask asks asked asking tell tells told telling trick tricks urge urges require requires request requests prompt prompts get gets make makes",
);

const LOOK_BACK = 5;
const CLAUSE = 12;
/** Words before a verb, at the most, that decide how it is used. */
export const MOOD_WORDS = LOOK_BACK + CLAUSE + 2;

/** `first` is the index of the verb. Reads a few words back, in the same sentence. */
export function moodOf(tokens: Tokens, first: number): Mood {
  const sentence = tokens.sentenceOf(first);
  let at = first;
  for (let step = 0; step < LOOK_BACK; step += 1) {
    const before = at - 1;
    // The cell of a table says what something does.
    if (tokens.gapBefore(at).includes("| ")) return "plain";
    if (before < 0 || tokens.sentenceOf(before) !== sentence) return "command";
    // Emphasis does not end a clause; a colon, a bracket or a quotation does.
    const gap = tokens.gapBefore(at);
    const sign = gap.replace(/[\s*_~`)\]]+/g, "");
    // A compound: the second half of "ts-ignore" commands nobody.
    if (gap === "-") return "plain";
    if (sign === ",") return moodOfClause(tokens, before);
    if (sign !== "") return "command";
    const word = tokens.word(before);
    if (NEGATIONS.has(word)) return "negation";
    if (word === "to") return moodOfInfinitive(tokens, before);
    if (DUTY.has(word)) return READER.has(tokens.word(before - 1)) ? "command" : "plain";
    if (DESCRIBING.has(word)) {
      return (word === "can" || word === "will" || word === "may") && tokens.word(before - 1) === "you"
        ? "plain"
        : "description";
    }
    if (READER.has(word)) return "command";
    if (JOINING.has(word)) return moodOfClause(tokens, before);
    // A line of its own, or the text of a log line: whatever stands before, the verb starts something.
    if (gap.includes("\n") || LEVELS.has(word) || /^\d/.test(word)) return "command";
    if (!FILLERS.has(word) && !word.endsWith("ly")) return "plain";
    at = before;
  }
  return "plain";
}

/** The verb follows a comma or an "and": it shares the mood of what came before in the sentence. */
function moodOfClause(tokens: Tokens, last: number): Mood {
  const sentence = tokens.sentenceOf(last);
  for (let at = last; at >= 0 && at > last - CLAUSE && tokens.sentenceOf(at) === sentence; at -= 1) {
    const word = tokens.word(at);
    if (NEGATIONS.has(word)) return "plain";
    // "Make the transfer and …" starts with a verb of its own.
    if (tokens.sentenceOf(at - 1) !== sentence) return "command";
    if (DESCRIBING.has(word) || (word === "to" && moodOfInfinitive(tokens, at) === "description" && at === last))
      return "plain";
  }
  return "command";
}

/** A negation stands a few words before, in the same sentence. */
export function isForbidden(tokens: Tokens, first: number): boolean {
  const sentence = tokens.sentenceOf(first);
  for (let at = first - 1; at >= 0 && at >= first - CLAUSE && tokens.sentenceOf(at) === sentence; at -= 1) {
    if (NEGATIONS.has(tokens.word(at))) return true;
  }
  return false;
}

/** "Send us the number, not your password." */
export function isNegatedWithin(tokens: Tokens, first: number, last: number): boolean {
  for (let at = first + 1; at <= last; at += 1) if (NEGATIONS.has(tokens.word(at))) return true;
  return false;
}

function moodOfInfinitive(tokens: Tokens, to: number): Mood {
  const owed = OWING.has(tokens.word(to - 1));
  for (let at = to - 1; at >= to - 4 && at >= 0; at -= 1) {
    const word = tokens.word(at);
    if (NEGATIONS.has(word)) return "negation";
    if (owed && word === "you") return TELLING.has(tokens.word(at - 1)) ? "description" : "command";
  }
  return "description";
}
