/** Sifting may only spare work: whatever the text, `detect` finds what reading every word of it finds. */
import fc from "fast-check";
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { detect, detectThoroughly } from "../../../../src/guard/detect/detect.ts";

const corpus = ["attacks", "benign"].map((name) =>
  readFileSync(new URL(`../../../corpus/${name}.jsonl`, import.meta.url), "utf8")
    .trim()
    .split("\n")
    // Safe: every line of the corpus has a text, as the test of the rates checks.
    .map((line) => (JSON.parse(line) as { text: string }).text),
);
const [attacks = [], benign = []] = corpus;

const FILLER =
  "The quarterly report lists costs by region; the table below has the totals per month (see page 4). " +
  'const total = items.map((item) => item.price).reduce(add, 0); return { "total": total };\n' +
  "2024-05-01T12:00:05Z [INFO] worker-3 request completed in 12 ms, user=8fa2c1, url=https://example.com/a?page=2\n";
const filler = (length: number): string => FILLER.repeat(Math.ceil(length / FILLER.length)).slice(0, length);

/** The texts are few and small; the first ones of a process are read whole, so that is over before. */
beforeAll(() => {
  detect(filler(300_000));
});

function expectSame(text: string): void {
  const findings = detect(text);
  const thorough = detectThoroughly(text);
  // Compared as text first: thousands of equal lists are compared faster so.
  if (JSON.stringify(findings) !== JSON.stringify(thorough))
    expect({ text, findings }).toEqual({ text, findings: thorough });
}

const MUTATIONS: readonly [name: string, mutate: (text: string) => string][] = [
  ["as it is", (text) => text],
  ["in upper case", (text) => text.toUpperCase()],
  ["with digits for letters", (text) => text.replaceAll("e", "3").replaceAll("o", "0").replaceAll("i", "1")],
  ["with signs for letters", (text) => text.replaceAll("a", "@").replaceAll("s", "$").replaceAll("l", "1")],
  ["with more space", (text) => text.replaceAll(" ", "  \n ")],
  ["without space", (text) => text.replaceAll(" ", "")],
  ["with underscores for spaces", (text) => text.replaceAll(" ", "_")],
  ["with underscores around words", (text) => text.replaceAll(/\w+/g, "__$&_")],
  ["letter by letter", (text) => [...text].join(" ")],
  ["letter by letter with underscores", (text) => [...text].join("_")],
  ["as words in quotes", (text) => text.replaceAll(/\w+/g, "'$&'")],
  ["as JSON", (text) => JSON.stringify({ note: text })],
  ["backwards", (text) => [...text].toReversed().join("")],
  ["in base64", (text) => Buffer.from(text).toString("base64")],
  ["with look-alikes", (text) => text.replaceAll("a", "а").replaceAll("o", "ο").replaceAll("i", "í")],
  ["full width", (text) => text.replaceAll(/[a-z]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0))],
  ["with invisible characters", (text) => text.replaceAll(/(\w)(\w)/g, "$1\u200b$2")],
  ["between Chinese", (text) => `汉字・${text.replaceAll(" ", "・")}汉字`],
  ["after Cyrillic", (text) => `Игра ${text}`],
  ["in a comment", (text) => `<p>a</p><!-- ${text} --><div hidden>${text}</div>`],
  ["under a heading", (text) => `## System:\n${text}\n[AI NOTE] ${text}`],
];

describe("[guard-13a] sifting finds what reading everything finds", () => {
  it.each(MUTATIONS)("in every text of the corpus %s", (_name, mutate) => {
    for (const text of attacks) expectSame(mutate(text));
    for (const text of benign.filter((_, index) => index % 4 === 0)) expectSame(mutate(text));
  });

  it("wherever in a long text it stands, also where strides, blocks and windows meet", () => {
    const edges = [4_096, 8_192, 16_384, 32_768, 65_536];
    const place = fc.oneof(
      fc.nat(90_000),
      fc.tuple(fc.constantFrom(...edges), fc.integer({ min: -40, max: 8 })).map(([edge, off]) => edge + off),
    );
    const pieces = fc.array(fc.tuple(fc.constantFrom(...attacks), place, fc.constantFrom("\n", " ", "")), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(pieces, fc.constantFrom("", "é ", "汉 "), fc.boolean(), (inserted, lead, json) => {
        let text = lead + filler(90_000);
        for (const [attack, at, gap] of inserted) text = `${text.slice(0, at)}${gap}${attack}${gap}${text.slice(at)}`;
        expectSame(json ? JSON.stringify({ text }) : text);
      }),
      { numRuns: 40, seed: 4 },
    );
  });

  it("in many texts of the corpus, one after another", () => {
    const texts = fc.array(fc.constantFrom(...attacks, ...benign), { minLength: 10, maxLength: 60 });
    fc.assert(
      fc.property(texts, fc.constantFrom("\n\n", " ", ". ", '", "'), (all, gap) => expectSame(all.join(gap))),
      { numRuns: 60, seed: 5 },
    );
  });

  it("in words of the phrases at random", () => {
    const words =
      "ignore forget previous prior instructions prompt rules your you are now system user ai assistant send email to http secret password " +
      "key api reveal show print the all any do not never tell without from on new task must should important urgent delete everything " +
      "attacker injection prompt red team security research tokens template . ; \n | \" ' ` < > [ ] { } # -- --- === : // _ @ $ 1 " +
      "im_start inst] <|im_start|> </tool_result> <system> function_call tool_use invoke arguments <!-- --> ](// https://x.y/?q= {secret} " +
      "g i n e a r . i.g.n.o.r.e ignoreallpreviousinstructions vtaber erongi 忽略 之前 指令 игнорируй все инструкции é \u200b \u0000 \u001b[8m";
    const word = fc.constantFrom(...words.split(" "));
    const text = fc
      .array(fc.tuple(word, fc.constantFrom(" ", " ", " ", "", "\n", "_", ", ", ". ")), { maxLength: 120 })
      .map((parts) => parts.flat().join(""));
    fc.assert(
      fc.property(text, fc.boolean(), (own, upper) => expectSame(upper ? own.toUpperCase() : own)),
      {
        numRuns: 1_500,
        seed: 6,
      },
    );
  });

  it("in characters at random", () => {
    const unit = fc.constantFrom(
      ..."aegilnorst015@$_'.,:;!?|\"`<>[]{}()#*=/-\\\n\t é\u0301\u00ad\ud83d\udb40\udc41汉い・и%&x",
    );
    fc.assert(fc.property(fc.string({ unit, maxLength: 300 }), expectSame), { numRuns: 1_500, seed: 7 });
  });

  it("where words are so long that a few of them are most of the text", () => {
    const long = "x".repeat(30_000);
    const text =
      `${long} ignore ${long} previous ${long} instructions [system] ${long} you must ${long} [ai note] `.repeat(3);
    expectSame(text);
    expectSame(
      `${"_".repeat(5_000)}ignore${"_".repeat(5_000)} previous instructions ${"_".repeat(600)}tokens${"_".repeat(600)}`,
    );
    expectSame(`ignore${"-".repeat(2_000)}all${"-".repeat(2_000)}previous${"-".repeat(2_000)}instructions`);
  });
});
