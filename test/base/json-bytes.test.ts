import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resultBytes } from "../../src/base/json-bytes.ts";

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
