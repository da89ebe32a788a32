import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { showHidden } from "../../src/base/visible-text.ts";
import { normalise } from "../../src/base/normalise.ts";

describe("normalise", () => {
  it.each([
    ["Ｆｕｌｌ Ｗｉｄｔｈ", "full width"],
    ["Ïgnörè", "ignore"],
    ["раypal", "paypal"],
    ["ⓘⓖⓝ 🅸🅶🅽", "ign ign"],
    ["a\u200bb\u00adc\u2060d\ufe0f", "abcd"],
    ["\u001b[1;31mred\u001b[0m", "red"],
    ["“quoted” – ‘it’", "\"quoted\" - 'it'"],
    ["ﬁ ½", "fi 1⁄2".replace("⁄", "/")],
  ])("%s becomes %s", (text, plain) => {
    expect(normalise(text).text).toBe(plain);
  });

  it("maps every index back to a rising index of the original", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
        const normal = normalise(text);
        let last = 0;
        for (let index = 0; index <= normal.text.length; index += 1) {
          const original = normal.originalAt(index);
          expect(original).toBeGreaterThanOrEqual(last);
          expect(original).toBeLessThanOrEqual(text.length);
          last = original;
        }
        expect(normal.originalAt(normal.text.length)).toBe(text.length);
      }),
    );
  });
});

describe("originalAt", () => {
  it.each([
    ["a\ufb03b", [0, 1, 1, 1, 2, 3]],
    ["\ufb03\ufb03", [0, 0, 0, 1, 1, 1, 2]],
    ["\u{1d422}\u33af\u200bz", [0, 2, 2, 2, 2, 2, 2, 4, 5]],
  ])("of %s, where one character folds into several", (text, places) => {
    const normal = normalise(text);
    expect(Array.from({ length: normal.text.length + 1 }, (_, index) => normal.originalAt(index))).toEqual(places);
  });
});

describe("showHidden", () => {
  it("writes out what does not show and keeps the rest", () => {
    expect(showHidden("a\u200bb\u202ec\u{e0041}\n😀 é")).toBe("a\\u{200B}b\\u{202E}c\\u{E0041}\n😀 é");
  });
});
