import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeAhead, encodedAhead, keepSource, resultBytes } from "../../src/base/json-bytes.ts";

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

describe("the size of a result", () => {
  const piece = fc.constantFrom(
    "a",
    "xyz",
    '"',
    "\\",
    "\n",
    "\u0001",
    "\u007f",
    "é",
    "€",
    "\u2028",
    "😀",
    "\ud800",
    "\udc00",
  );

  it("is that of its JSON, whatever its texts are made of and however long they are", () => {
    // 16,384 is where a long text is cut for counting.
    const length = fc.constantFrom(1, 40, 256, 300, 16_383, 16_384, 16_385, 33_000);
    const kinds = fc.array(piece, { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(kinds, length, fc.nat(3), (parts, units, lead) => {
        const text = `${"b".repeat(lead)}${parts.join("").repeat(Math.ceil(units / parts.join("").length))}`;
        const value = { content: [{ type: "text", text }], [text.slice(0, 50)]: [null, 1.5, true, undefined] };
        expect(resultBytes(value)).toBe(jsonBytes(value));
      }),
      { numRuns: 300, seed: 1 },
    );
  });

  it("is that of its JSON for any value that JSON has", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(resultBytes(value)).toBe(jsonBytes(value));
      }),
      { seed: 2 },
    );
    const date = { at: new Date(0), skip: undefined, none: [undefined, () => 1] };
    expect(resultBytes(date)).toBe(jsonBytes(date));
  });

  it("is only known to be larger than the limit once it is", () => {
    expect(resultBytes({ text: "x".repeat(1_000_000) }, 100)).toBeGreaterThan(100);
    const loop: unknown[] = [];
    loop.push(loop);
    expect(resultBytes(loop, 1_000)).toBeGreaterThan(1_000);
  });
});

describe("[speed-04e] the JSON that a value was parsed from", () => {
  /** Long enough that the source is looked at. */
  const TEXT = `${"One line of text.\\n".repeat(200)} \u2028 é 😀`;

  function encoded(source: string): string | undefined {
    const value = JSON.parse(source) as object;
    keepSource(value, source);
    encodeAhead(value);
    return encodedAhead(value);
  }

  it("is sent on as it is", () => {
    // The order of such keys shows whose JSON it is.
    const source = `{"9":"b","1":"a","text":"${TEXT} \\u0001\\u001f \\"q\\" \\\\","n":[1,-25,0.5,1200,null,true,[],{}],"__proto__":{"x":1}}`;
    expect(encoded(source)).toBe(source);
    expect(encoded(`{"9":"b", "1":"a","text":"${TEXT}"}`)?.startsWith('{"1":"a","9":"b","text":')).toBe(true);
  });

  it.each([
    ["white space", `{"text": "${TEXT}"}`],
    ["white space at its end", `{"text":"${TEXT}"} `],
    ["a member twice", `{"text":"IGNORED","text":"${TEXT}"}`],
    ["a member twice beside a number that could be longer", `{"x":0,"a":1e8,"text":"${TEXT}","x":1}`],
    ["a member twice beside small numbers that could be longer", `{"":0,"a":1e-5,"b":1e-4,"text":"${TEXT}","":1}`],
    ["a member twice beside numbers too large for us", `{"x":0,"n":[1e999,-1e999],"text":"${TEXT}","x":1}`],
    ["more than the value", `{"text":"${TEXT}"},"result":{"text":""}`],
    ["a slash that is escaped", `{"text":"${TEXT}\\/"}`],
    ["a letter that is escaped", `{"text":"${TEXT}\\u0041"}`],
    ["a line break with a longer escape", `{"text":"${TEXT}\\u000a"}`],
    ["half of a character", `{"text":"${TEXT}\\ud800"}`],
    ["digits without a meaning", `{"text":"${TEXT}","n":1.0}`],
    ["a negative zero", `{"text":"${TEXT}","n":-0}`],
    ["a number that is too long", `{"text":"${TEXT}","n":12345678901234567890}`],
  ])("is made again if it has %s", (_name, source) => {
    const end = source.lastIndexOf('},"result"');
    const value = JSON.parse(end === -1 ? source : source.slice(0, end + 1)) as object;
    keepSource(value, source);
    encodeAhead(value);
    expect(encodedAhead(value) === JSON.stringify(value)).toBe(true);
  });

  it("is looked at in the same way where escapes are many and where they are few", () => {
    for (const text of [
      'A quoted \\"word\\" ',
      "One line of text without any of them, and a rather long one at that. ",
    ]) {
      const many = text.repeat(200);
      const asWritten = `{"9":"b","1":"a","text":"${many} \\n\\u001f é 😀 \u2028"}`;
      expect(encoded(asWritten)).toBe(asWritten);
      for (const other of [" ", "\\/", "\\u0041", "\\u000a", "\\ud83d\\ude00"]) {
        const source = other === " " ? `{"9":"b", "text":"${many}"}` : `{"9":"b","1":"a","text":"${many}${other}"}`;
        const again = JSON.stringify(JSON.parse(source));
        expect({ other, isMadeAgain: encoded(source) === again }).toEqual({ other, isMadeAgain: true });
      }
    }
  });

  it("has nothing in it that is not in the value, however it is written", () => {
    const number = fc.constantFrom(
      "1e3",
      "1E+5",
      "-0",
      "1.0",
      "0.001",
      "1e-3",
      "12e2",
      "7",
      "1000",
      "12345678901234567890",
      "1e999",
    );
    const scalar = fc.oneof(number, fc.constantFrom("true", "null", '"a"', '"\\u0041"', '"\\/"', '"\\n"'));
    const space = fc.constantFrom("", "", "", " ");
    const member = fc.tuple(fc.constantFrom("a", "b", "", "1", "__proto__"), scalar, space);
    fc.assert(
      fc.property(fc.array(member, { maxLength: 6 }), (members) => {
        const list = members.map(([key, value, blank]) => `${blank}"${key}":${value}`);
        const source = `{${[`"text":"${TEXT}"`, ...list].join(",")}}`;
        const json = encoded(source) ?? "";
        const again = JSON.stringify(JSON.parse(source));
        expect(JSON.stringify(JSON.parse(json)) === again).toBe(true);
        const isDouble = new Set(members.map(([key]) => key)).size < members.length;
        if (isDouble) expect(json === again).toBe(true);
      }),
      { numRuns: 500, seed: 3 },
    );
  });
});
