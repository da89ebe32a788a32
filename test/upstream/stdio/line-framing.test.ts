import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keptBytes } from "../kept-bytes.ts";
import { LineSplitter } from "../../../src/upstream/stdio/line-framing.ts";

function split(chunks: readonly Buffer[], maxBytes = 1024): { lines: string[]; oversize: number[] } {
  const lines: string[] = [];
  const oversize: number[] = [];
  const splitter = new LineSplitter({
    maxBytes,
    onLine: (line) => lines.push(line),
    onOversize: (bytes) => oversize.push(bytes),
  });
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return { lines, oversize };
}

/** Cuts bytes at the given places, in the middle of characters too. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...at].map((start, index) => bytes.subarray(start, at[index] ?? bytes.length));
}

const text = fc.string({
  unit: fc.constantFrom("a", "{", '"', " ", "é", "\u2028", "\u2029", "漢", "😀", "\u0085"),
  maxLength: 40,
});

describe("LineSplitter", () => {
  it("[spine-09e] gives the same lines however the bytes are cut", () => {
    const property = fc.property(
      fc.array(text),
      fc.array(fc.nat()),
      fc.constantFrom("\n", "\r\n"),
      (lines, places, end) => {
        const bytes = Buffer.from(lines.map((line) => line + end).join(""));
        expect(split(cut(bytes, places)).lines).toEqual(lines.filter((line) => line !== ""));
      },
    );
    fc.assert(property);
  });

  it("[spine-09e] drops a line above the limit, keeps its neighbours, and says how long it was", () => {
    const property = fc.property(fc.array(fc.nat()), fc.integer({ min: 65, max: 500 }), (places, size) => {
      const bytes = Buffer.from(`before\n${"x".repeat(size)}\nafter\n`);
      const { lines, oversize } = split(cut(bytes, places), 64);
      expect(lines).toEqual(["before", "after"]);
      expect(oversize).toEqual([size]);
    });
    fc.assert(property);
  });

  it("[spine-09e] keeps nothing of a line above the limit while it is still coming", () => {
    const splitter = new LineSplitter({ maxBytes: 1024 * 1024, onLine: () => {}, onOversize: () => {} });
    const kept = keptBytes(() => {
      for (let n = 0; n < 100; n++) splitter.push(Buffer.alloc(1024 * 1024, "x"));
    });
    // Of 100 MiB; the collector frees buffers a little later than it finds them.
    expect(kept).toBeLessThan(50 * 1024 * 1024);
    splitter.end();
  });

  it("takes a line of exactly the limit, and one without a line end at the end of the stream", () => {
    expect(split([Buffer.from(`${"x".repeat(64)}\nrest`)], 64).lines).toEqual(["x".repeat(64), "rest"]);
  });

  it("does not copy a line again for every chunk of it", () => {
    const chunk = Buffer.alloc(1024, "x");
    const { lines } = split([...Array.from({ length: 20_000 }, () => chunk), Buffer.from("\n")], 64 * 1024 * 1024);
    expect(lines.map((line) => line.length)).toEqual([20_000 * 1024]);
  });
});
