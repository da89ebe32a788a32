import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { escapeJson, showHidden, terminalJson, terminalLine, terminalText } from "../../src/base/visible-text.ts";

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

/** What may never reach a terminal as it is; newline and tab are layout. */
const HARMFUL: readonly number[] = [
  ...range(0x00, 0x1f).filter((code) => code !== 0x09 && code !== 0x0a),
  ...range(0x7f, 0x9f),
  0x00ad,
  0x061c,
  0x180e,
  ...range(0x200b, 0x200f),
  ...range(0x2028, 0x202e),
  ...range(0x2060, 0x206f),
  0xfeff,
  ...range(0xfe00, 0xfe0f),
  ...range(0xfff9, 0xfffb),
  0x3164,
  ...range(0xe0000, 0xe007f),
  ...range(0xe0100, 0xe01ef),
];
const harmful = new Set(HARMFUL);

const isHarmless = (text: string): boolean =>
  [...text].every((character) => !harmful.has(character.codePointAt(0) ?? 0));

describe("[trust-15a] text for a terminal", () => {
  it("has none of the characters that drive, reorder or hide, whatever is beside them", () => {
    for (const code of HARMFUL) {
      const character = String.fromCodePoint(code);
      for (const text of [character, `a${character}b`, ` ${character}${character} `, `\n${character}`]) {
        expect(isHarmless(terminalText(text)), code.toString(16)).toBe(true);
        expect(isHarmless(terminalLine(text)), code.toString(16)).toBe(true);
        expect(isHarmless(terminalJson(text)), code.toString(16)).toBe(true);
        expect(JSON.parse(terminalJson(text))).toBe(text);
      }
      expect(terminalText(`a${character}b`)).toBe(`a\\u{${code.toString(16).toUpperCase().padStart(4, "0")}}b`);
    }
  });

  it("has no terminal codes for any text, and JSON of any value is that value", () => {
    const piece = fc.oneof(
      fc.constantFrom(...HARMFUL.map((code) => String.fromCodePoint(code))),
      fc.string({ unit: "binary" }),
      fc.constantFrom("\ud800", "\udc00", "👍", "1", "\u20e3", "ی", "م", "\n", "\t", "\r\n"),
    );
    const text = fc.array(piece).map((pieces) => pieces.join(""));
    // Joiners and styles are let through where writing needs them, so they are looked at apart.
    const needed = /\u200c|\u200d|\ufe0e|\ufe0f/gu;
    fc.assert(
      fc.property(text, (given) => {
        expect(isHarmless(terminalText(given).replace(needed, ""))).toBe(true);
        expect(terminalText(terminalText(given))).toBe(terminalText(given));
        expect(terminalLine(given)).not.toMatch(/[\n\t]/);
      }),
      { numRuns: 500 },
    );
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        const shown = terminalJson(value, 2);
        expect(isHarmless(shown)).toBe(true);
        expect(JSON.stringify(JSON.parse(shown))).toBe(JSON.stringify(value));
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    "שלום עולם",
    "العربية ٣ و\u064e",
    "می\u200cخواهم",
    "क्\u200dष और क्ष",
    "日本語のテキスト",
    "e\u0301 ñ Ünïcödé",
    "👨\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 ❤\ufe0f 👍🏽 🇩🇪 1\ufe0f\u20e3",
    "two\n\tlines",
  ])("keeps %j readable", (honest) => {
    expect(terminalText(honest)).toBe(honest);
  });

  it.each([
    ["a\u200d b", "a\\u{200D} b"],
    ["x\ufe0f\u200d🌈", "x\\u{FE0F}\\u{200D}🌈"],
    ["👍\u200d\u200d👍", "👍\\u{200D}\\u{200D}👍"],
    ["ی\u200c\u200cخ", "ی\\u{200C}\\u{200C}خ"],
    ["ی\u200c admin", "ی\\u{200C} admin"],
    ["1\ufe0f2", "1\\u{FE0F}2"],
    ["🏴\u{e0067}\u{e007f}", "🏴\\u{E0067}\\u{E007F}"],
  ])("shows a joiner where nothing needs it: %j", (given, shown) => {
    expect(terminalText(given)).toBe(shown);
  });

  it("is one line in a time that does not grow faster than the text, whatever it has of blanks", { retry: 2 }, () => {
    const cost = (filler: string): number => {
      const start = process.cpuUsage();
      terminalLine(`x${filler.repeat(60_000)}y`);
      const { user, system } = process.cpuUsage(start);
      // Below this it is noise.
      return Math.max(20_000, user + system);
    };
    expect(cost(" ") / cost("x")).toBeLessThan(10);
  });

  it("makes one line of several, and leaves JSON text that is there already as it reads", () => {
    expect(terminalLine("a \r\n  b\tc\n\nd")).toBe("a b c d");
    expect(escapeJson('{\n\t"a": "\u202e"\n}')).toBe('{\n\t"a": "\\u202e"\n}');
    expect(terminalJson(undefined)).toBe("null");
    expect(showHidden("a\r\n❤\ufe0f")).toBe("a\r\n❤\\u{FE0F}");
  });
});
