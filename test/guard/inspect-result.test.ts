import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inspectResult } from "../../src/guard/inspect-result.ts";
import { resultBytes } from "../../src/guard/result-size.ts";

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? "null");

describe("resultBytes", () => {
  it("is the size of the JSON, for any value", () => {
    const unruly = fc.string({ unit: fc.constantFrom('"', "\\", "\n", "\u0001", "ä", "€", "😀", "\ud800", "a") });
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.dictionary(unruly, unruly), fc.array(unruly)), (value) => {
        expect(resultBytes(value)).toBe(sizeOf(value));
      }),
    );
  });

  it("counts what in-process tools may return as JSON would", () => {
    for (const value of [{ a: undefined, b: [undefined, () => 1] }, [new Date(0)], { x: Number.NaN }, [], {}]) {
      expect(resultBytes(value)).toBe(sizeOf(value));
    }
  });

  it("stops above the limit, even for values that hold themselves or are deep", () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    expect(resultBytes(cycle, 1000)).toBeGreaterThan(1000);
    const deep = JSON.parse("[".repeat(50_000) + "]".repeat(50_000)) as unknown;
    expect(resultBytes(deep)).toBe(100_000);
  });
});

describe("inspectResult", () => {
  const result = { content: [{ type: "text", text: "x".repeat(100) }] };

  it("[spine-17d] passes a result of exactly the limit and rejects one byte more", () => {
    const bytes = sizeOf(result);
    expect(inspectResult(result, { resultBytes: bytes })).toEqual({ verdict: "pass", bytes, findings: [] });
    expect(inspectResult(result, { resultBytes: bytes - 1 })).toMatchObject({
      verdict: "rejected",
      code: "too_large",
      message: expect.stringContaining(`${bytes - 1} B`) as string,
      hint: expect.stringContaining("limits.resultBytes") as string,
    });
  });

  it("[spine-17d] counts every field, not only text", () => {
    const hidden = { content: [], _meta: { a: { b: "x".repeat(5000) } } };
    expect(inspectResult(hidden, { resultBytes: 4000 })).toMatchObject({ verdict: "rejected", code: "too_large" });
  });

  it("fails closed: what cannot be inspected is rejected", () => {
    const trap = {
      get content(): never {
        throw new Error("trap");
      },
    };
    expect(inspectResult(trap, { resultBytes: 1000 })).toMatchObject({ verdict: "rejected", code: "blocked" });
    expect(inspectResult({ n: 1n }, { resultBytes: 1000 })).toMatchObject({ verdict: "rejected", code: "blocked" });
    expect(inspectResult(result, { resultBytes: Number.NaN })).toMatchObject({ verdict: "rejected" });
  });
});
