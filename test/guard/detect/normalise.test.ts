import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { normalise } from "../../../src/guard/detect/normalise.ts";
import { showHidden } from "../../../src/guard/detect/show-hidden.ts";
import { unescaped } from "../../../src/guard/detect/unescape.ts";

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

describe("showHidden", () => {
  it("writes out what does not show and keeps the rest", () => {
    expect(showHidden("a\u200bb\u202ec\u{e0041}\n😀 é")).toBe("a\\u{200B}b\\u{202E}c\\u{E0041}\n😀 é");
  });
});

describe("unescaped", () => {
  it("resolves the escapes of a JSON document and knows where they were", () => {
    const text = '{"a":"x\\n\\u0041\\"y"}';
    const plain = unescaped(text);
    expect(plain?.text).toBe('{"a":"x\nA"y"}');
    expect(plain?.originalAt(plain.text.indexOf("A"))).toBe(text.indexOf("\\u0041"));
    expect(plain?.originalAt(plain.text.length)).toBe(text.length);
  });

  it("leaves other texts alone", () => {
    expect(unescaped("C:\\new\\table")).toBeUndefined();
    expect(unescaped('{"a":1}')).toBeUndefined();
  });
});
