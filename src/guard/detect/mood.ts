/** How the verb of a phrase is used. "Ignore it" commands, "users may ignore it" describes, "never ignore it" forbids. */
import type { Tokens } from "./tokens.ts";

export type Mood = "command" | "plain" | "description" | "negation";

const set = (words: string): ReadonlySet<string> => new Set(words.split(" "));

const FILLERS = set("please now also then and so just kindly immediately simply instead first next always completely fully entirely but or");
const NEGATIONS = set("not never don't doesn't didn't cannot can't won't shouldn't mustn't wouldn't without refuse refuses no");
const DESCRIBING = set(
  "can could may might would will they it that which who users attackers we i he she did does do how when what they'll someone people anyone " +
    "models model llm attacker user prompts instructions helps let lets makes make made making causes trying tries try attempt attempts",
);
const DUTY = set("must should shall need");
const READER = set("you assistant ai model agent agents assistants models llm llms");
const OWING = set("you have need required are instructed ordered obligated obliged necessary important want supposed");

const LOOK_BACK = 5;

/** `first` is the index of the verb. Reads a few words back, in the same sentence. */
export function moodOf(tokens: Tokens, first: number): Mood {
  const sentence = tokens.sentenceOf(first);
  let at = first;
  for (let step = 0; step < LOOK_BACK; step += 1) {
    const gap = tokens.gapBefore(at);
    const before = at - 1;
    if (before < 0 || tokens.sentenceOf(before) !== sentence) return "command";
    const word = tokens.word(before);
    const onlySpace = gap.trim() === "" || gap.trim() === ",";
    if (!onlySpace) return "command";
    if (NEGATIONS.has(word)) return "negation";
    if (word === "to") return moodOfInfinitive(tokens, before);
    if (DUTY.has(word)) return READER.has(tokens.word(before - 1)) ? "command" : "plain";
    if (DESCRIBING.has(word)) {
      return (word === "can" || word === "will" || word === "may") && tokens.word(before - 1) === "you" ? "plain" : "description";
    }
    if (word === "you" || READER.has(word)) return "command";
    // A line of its own: whatever ended the line before, the verb starts this one.
    if (gap.includes("\n")) return "command";
    if (!FILLERS.has(word)) return "plain";
    at = before;
  }
  return "plain";
}

function moodOfInfinitive(tokens: Tokens, to: number): Mood {
  const owed = OWING.has(tokens.word(to - 1));
  for (let at = to - 1; at >= to - 4 && at >= 0; at -= 1) {
    const word = tokens.word(at);
    if (NEGATIONS.has(word)) return "negation";
    if (owed && word === "you") return "command";
  }
  return "description";
}
