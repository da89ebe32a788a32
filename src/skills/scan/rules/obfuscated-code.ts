/** Code that is written so that nobody can read it. */
import type { ScannedLine, ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import type { Rule } from "./rule.ts";

const HEX_NAME = /\b_0x[0-9a-f]{4,8}\b/g;
const PACKED = /\beval\(function\(p,a,c,k,e,[dr]\)/;
const CHARACTERS =
  /(?:\bchr\(\s{0,2}(?:0x)?[\da-f]{1,4}\s{0,2}\)\s{0,3}[+.&,]?\s{0,3}){8,}|\bfromcharcode\(\s{0,2}(?:(?:0x)?[\da-f]{1,4}\s{0,2},\s{0,2}){12,}|(?:\[char\]\s{0,2}(?:0x)?[\da-f]{1,4}\s{0,2}\+?\s{0,2}){8,}/;
const ESCAPES = /(?:\\x[0-9a-f]{2}|\\u00[0-9a-f]{2}){40,}/;
const SPLIT_NAME =
  /\b(?:getattr|__import__|globals\(\)|window|global|globalthis|require|this)\s{0,2}[[(].{0,80}["']\s{0,3}\+\s{0,3}["']/;
const REVERSED =
  /\[::-1\].{0,60}\bexec|\bexec\b.{0,120}\[::-1\]|\breverse\(\)\.join\(.{0,120}\b(?:eval|function)\b|\beval\b.{0,120}\breverse\(\)\.join\(/;
const ONLY_SIGNS = /[[\]()!+]{300,}/;
const RUNS =
  /\b(?:eval|exec|new function|child_process|require|execsync|subprocess|os\.system|popen|fetch|xmlhttprequest|urlopen|requests|importlib|__import__|iex|invoke-expression|execscript)\b|(?<![\w.])function\s{0,2}\(/;

export const obfuscatedCode: Rule = {
  hint: /_0x|eval\(|chr\(|fromcharcode|\[char\]|\\x[0-9a-f]{2}|\\u00|::-1|reverse\(\)|!\[\]|getattr|__import__|globals|["']\s{0,3}\+\s{0,3}["']/,
  find,
};

function* find(text: ScannedText): Generator<Sign> {
  if (text.kind === "data") return;
  yield* hexNames(text);
  let runner: boolean | undefined;
  for (const line of text.lines) {
    const { text: words, plain } = line;
    if (PACKED.test(words) || ONLY_SIGNS.test(words) || REVERSED.test(words)) yield sign("refuse", line);
    else if (CHARACTERS.test(words) || ESCAPES.test(words))
      yield sign(RUNS.test(plain) || (runner ??= text.lines.some(isRunner)) ? "refuse" : "warn", line);
    else if (SPLIT_NAME.test(words) && /\b(?:system|exec|eval|popen|child_process|subprocess|spawn)\b/.test(plain))
      yield sign("refuse", line);
  }
}

function isRunner({ plain }: ScannedLine): boolean {
  return /(?:^|[^\w.])(?:exec|eval)\s{0,2}\(|\bos\.system\(|\bchild_process\b|\bsubprocess\.|\bnew function\(|\binvoke-expression\b/.test(
    plain,
  );
}

function* hexNames(text: ScannedText): Generator<Sign> {
  let count = 0;
  let first: ScannedLine | undefined;
  let runs = false;
  for (const line of text.lines) {
    if (line.text.includes("_0x")) {
      first ??= line;
      for (const _ of line.text.matchAll(HEX_NAME)) count += 1;
    }
    runs ||= RUNS.test(line.text);
  }
  if (first !== undefined && count >= 12) yield sign(runs || text.kind === "script" ? "refuse" : "warn", first);
}

function sign(severity: Sign["severity"], line: ScannedLine): Sign {
  return {
    code: "obfuscated_code",
    severity,
    message: "Code is made unreadable, which hides what it does.",
    line,
    concrete: true,
  };
}
