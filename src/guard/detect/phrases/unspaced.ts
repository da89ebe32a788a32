/** Override phrases of languages that write without spaces, and of words whose spaces were taken out or doubled. */
import { eachMatch } from "../matches.ts";
import { foldWord } from "../normalise.ts";
import { characterSet, isIn, type Run } from "../runs.ts";
import type { Steps } from "../steps.ts";
import type { Tokens } from "../tokens.ts";

export interface UnspacedMatch {
  readonly start: number;
  readonly end: number;
  readonly weight: number;
}

const any = (words: string): string => `(?:${words.split(" ").map(foldWord).join("|")})`;

/** Gaps are bounded, so each start costs at most a constant. Korean folds into up to three letters per syllable. */
const CJK: readonly RegExp[] = [
  `${any("忽略 无视 無視 忽视 忽視 忘记 忘記 忘掉 不要理会 抛弃 丢弃")}.{0,12}${any("之前 以上 先前 上述 前面 所有 此前 上面 系统 系統 你的 原有")}.{0,10}${any("指令 指示 提示 命令 规则 規則 要求 设定")}`,
  `${any("以前 上記 これまで 前 すべて 全て 先 システム 今まで")}.{0,12}${any("指示 命令 プロンプト ルール 規則 指令")}.{0,8}${any("無視 忘れ 破棄 従わない")}`,
  `${any("이전 위 앞 모든 기존 지금까지")}.{0,24}${any("지시 명령 지침 프롬프트 규칙")}.{0,24}${any("무시 잊 따르지")}`,
].map((source) => new RegExp(source, "gu"));

/** A character can start a phrase, and each gap is tried at every width. */
const CJK_COST = 40;
export const CJK_SCRIPT = /[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff]/;
/** The same, first and last of each range. */
export const CJK_UNITS = [
  [0x1100, 0x11ff],
  [0x3040, 0x30ff],
  [0x3400, 0x9fff],
] as const;

/** One of these starts every glued phrase. */
export const GLUED_STARTS = ["ignore", "disregard", "forget"];
export const GLUED =
  /(?:ignore|disregard|forget)(?:all|any|the|your|my|of|every|these){0,4}(?:previous|prior|above|earlier|preceding|system)(?:instruction|directive|prompt|guideline|order|rule|command)/;

/** `i g n o r e` and `i.g.n.o.r.e`: single letters with one separator each. Two separators end a word. */
const SPELLED = /(?<![a-z0-9])[a-z](?:[ ._*-]{1,3}[a-z]){9,120}(?![a-z0-9])/g;

/** Among some words of a text. */
export function gluedMatches(tokens: Tokens): UnspacedMatch[] {
  return tokens.glued
    .filter((index) => GLUED.test(tokens.word(index)))
    .map((index) => ({ start: tokens.startOf(index), end: tokens.endOf(index), weight: 9 }));
}

export function* spelledMatches(text: string): Steps<UnspacedMatch[]> {
  const matches: UnspacedMatch[] = [];
  yield text.length;
  for (const { start, end } of separatedLetters(text)) {
    yield end - start;
    SPELLED.lastIndex = 0;
    const part = text.slice(start, end);
    for (let found = SPELLED.exec(part); found !== null; found = SPELLED.exec(part)) {
      if (!GLUED.test(found[0].replace(/[^a-z]/g, ""))) continue;
      matches.push({ start: start + found.index, end: start + found.index + found[0].length, weight: 9 });
    }
  }
  return matches;
}

export function* unspacedMatches(text: string): Steps<UnspacedMatch[]> {
  const matches: UnspacedMatch[] = [];
  if (!CJK_SCRIPT.test(text)) return matches;
  for (const pattern of CJK) {
    yield* eachMatch(
      pattern,
      text,
      (found, start) => {
        matches.push({ start, end: start + found[0].length, weight: 9 });
      },
      { unitCost: CJK_COST },
    );
  }
  return matches;
}

const SPELLING = characterSet("a-z ._*-");
const LETTERS = characterSet("a-z");
/** The shortest spelled word has nineteen characters, so it covers all of one of the windows of this width. */
const WINDOW = 9;

/** Parts where no two letters stand side by side, with one character of their surroundings. */
function* separatedLetters(text: string): Generator<Run> {
  for (let from = 0; from + WINDOW <= text.length; from += WINDOW) {
    if (separatedUntil(text, from, from + WINDOW) < from + WINDOW) continue;
    const end = separatedUntil(text, from, text.length);
    let start = from;
    while (start > 0 && isSeparated(text, start - 1)) start -= 1;
    yield { start: Math.max(0, start - 1), end: Math.min(text.length, end + 1) };
    from = end - WINDOW;
  }
}

function separatedUntil(text: string, from: number, to: number): number {
  let at = from;
  while (at < to && isIn(SPELLING, text.charCodeAt(at)) && (at === from || isSeparated(text, at - 1))) at += 1;
  return at;
}

/** May stand in a spelled word, and is not followed by another letter if it is one. */
function isSeparated(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return isIn(SPELLING, unit) && !(isIn(LETTERS, unit) && isIn(LETTERS, text.charCodeAt(at + 1)));
}
