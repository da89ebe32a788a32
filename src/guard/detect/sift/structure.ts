/**
 * Words without which no forged role, label or call can stand in a text, and what must stand around them. Each check is
 * wider than the patterns of the detector that it answers for, so "no" is certain.
 */

/** What may stand in a text; see `Sifted`. */
export type Sign = "line" | "label" | "turn" | "call" | "spelled";

/** Of a word in a text, plain or normalised: it may be a sign. */
export type Check = (text: string, start: number, end: number) => boolean;

/** The words of the patterns for starts of lines in role-forging.ts, after what may stand before them there. */
const LINE_WORDS =
  "ai llm agent copilot chatgpt claude assistant system developer instruction new human user admin administrator root openai anthropic end begin start";
/** The words of which one makes a label suspect in role-forging.ts. */
const LABEL_WORDS =
  "ai ais assistant assistants llm llms model models agent agents gpt gpts chatbot chatbots claude claudes copilot copilots bot bots " +
  "system admin administrator root developer priority hidden secret override maintenance debug internal confidential urgent critical " +
  "security privileged new important";

const BEFORE_LINE_WORD = characters("\t\n\u000b\f\r >*_#/=[({-");
const MOST_BEFORE_LINE_WORD = 24;
const IN_LABEL = characters("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ _:'-");
const LABEL_OPENERS = characters("[<{#=*(/!-");
const MOST_IN_LABEL = 64;

function characters(all: string): Uint8Array {
  const set = new Uint8Array(128);
  for (const character of all) set[character.charCodeAt(0)] = 1;
  return set;
}

function has(set: Uint8Array, unit: number): boolean {
  return unit < 128 && set[unit] === 1;
}

/** All starts of lines before a word, with nothing in between but what may stand there. */
export function lineStartsBefore(text: string, start: number): number[] {
  const starts: number[] = [];
  for (let at = start; at >= start - MOST_BEFORE_LINE_WORD; at -= 1) {
    const unit = at === 0 ? 10 : text.charCodeAt(at - 1);
    if (unit === 10 || unit === 13) starts.push(at);
    if (at === 0 || !has(BEFORE_LINE_WORD, unit)) break;
  }
  return starts;
}

const startsLine: Check = (text, start) => {
  for (let at = start; at >= start - MOST_BEFORE_LINE_WORD; at -= 1) {
    if (at === 0) return true;
    const unit = text.charCodeAt(at - 1);
    if (unit === 10 || unit === 13) return true;
    if (!has(BEFORE_LINE_WORD, unit)) return false;
  }
  return false;
};

/** The signs that open a label stand before it, with words of the label and a space in between. */
const isInLabel: Check = (text, start) => {
  let dashes = 0;
  for (let at = start - 1; at >= 0 && at >= start - 1 - MOST_IN_LABEL; at -= 1) {
    const unit = text.charCodeAt(at);
    if (!has(IN_LABEL, unit)) {
      if (has(LABEL_OPENERS, unit)) return true;
      // One space of any kind, or two after a sign of a comment.
      return unit <= 32 && (isOpenerAt(text, at - 1) || (text.charCodeAt(at - 1) <= 32 && isOpenerAt(text, at - 2)));
    }
    dashes = unit === 0x2d ? dashes + 1 : 0;
    if (dashes === 3) return true;
  }
  return false;
};

function isOpenerAt(text: string, at: number): boolean {
  return at >= 0 && has(LABEL_OPENERS, text.charCodeAt(at));
}

/** The pattern, which starts with one of the characters, follows the word. */
const isBefore =
  (characters: string, pattern: RegExp): Check =>
  (text, _start, end) => {
    if (end >= text.length || !characters.includes(text.charAt(end))) return false;
    pattern.lastIndex = end;
    return pattern.test(text);
  };

const TAG_NAME = /<\s?(?:\w{1,12}:)?$/;
const KEY_BEFORE =
  /"(?:tool|tool_name|function|recipient_name|action|name)"\s{0,4}:\s{0,4}"[\w.:-]{1,80}"\s{0,4},\s{0,4}"(?:tool_|action_)?$/i;
const KEY_AFTER = isBefore('"', /"\s{0,4}:/y);

/** The second of two keys that make a call: "arguments" and its kin. */
const isSecondKey: Check = (text, start, end) =>
  KEY_AFTER(text, start, end) && KEY_BEFORE.test(text.slice(Math.max(0, start - 150), start));

const CALL_CHECKS: Readonly<Record<string, Check>> = {
  function: isBefore("_=", /_call|=/iy),
  functioncall: () => true,
  invoke: (text, start) => TAG_NAME.test(text.slice(Math.max(0, start - 15), start)),
  tool: isBefore("_▁", /[_▁][cu]/iy),
  python: isBefore("_", /_tag/iy),
  action: isBefore(" ", / input:/iy),
  arguments: isSecondKey,
  parameters: isSecondKey,
  args: isSecondKey,
  input: isSecondKey,
  kwargs: isSecondKey,
  params: isSecondKey,
};

const TURN_CHECKS: Readonly<Record<string, Check>> = {
  inst: isBefore("]", /\]/y),
  sys: isBefore(">", />>/y),
};

/** Three letters of one of the words around its "g", each by itself, as `spelledMatches` takes them. */
const SPELLED_PART = /i[ ._*-]{1,3}g[ ._*-]{1,3}n|e[ ._*-]{1,3}g[ ._*-]{1,3}a|r[ ._*-]{1,3}g[ ._*-]{1,3}e/i;

const isSpelled: Check = (text, start) => SPELLED_PART.test(text.slice(Math.max(0, start - 4), start + 5));

export interface SignWord {
  readonly sign: Sign;
  readonly check: Check;
}

/** All words, each with what it may be a sign of. Words are runs of letters here: "_" parts them, too. */
export function signWords(): ReadonlyMap<string, readonly SignWord[]> {
  const words = new Map<string, SignWord[]>();
  const add = (word: string, sign: Sign, check: Check): void => {
    words.set(word, [...(words.get(word) ?? []), { sign, check }]);
  };
  for (const word of LINE_WORDS.split(" ")) add(word, "line", startsLine);
  for (const word of LABEL_WORDS.split(" ")) add(word, "label", isInLabel);
  for (const [word, check] of Object.entries(CALL_CHECKS)) add(word, "call", check);
  for (const [word, check] of Object.entries(TURN_CHECKS)) add(word, "turn", check);
  // The letter that all words of GLUED_STARTS have, by itself.
  add("g", "spelled", isSpelled);
  return words;
}
