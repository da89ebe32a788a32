import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KnownValues, SecretFilter } from "../../src/secrets/redactor.ts";

function filterOf(...values: string[]): SecretFilter {
  const filter = new SecretFilter();
  for (const value of values) filter.add(value);
  return filter;
}

describe("values are sought in a long text by every fourth byte", () => {
  it("and none is missed, wherever it stands", () => {
    const unit = fc.constantFrom(..."abcXYZ019-_/+=é€😀\ud800\n ");
    const value = fc.string({ unit, minLength: 8, maxLength: 40 });
    const place = fc.oneof(
      fc.nat(40_000),
      fc.integer({ min: 16_340, max: 16_400 }),
      fc.integer({ min: 32_730, max: 32_780 }),
    );
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 4 }),
        place,
        fc.constantFrom("", "é"),
        (values, at, lead) => {
          const filler = lead + "The parcel was sent on Monday. ".repeat(1_400);
          const text = `${filler.slice(0, at)}${values[0] ?? ""}${filler.slice(at)}`;
          expect(filterOf(...values).mayHold(text)).toBe(true);
        },
      ),
      { numRuns: 300, seed: 1 },
    );
  });

  it("and texts without them are passed over, though they begin like one or end in the middle of one", () => {
    const filter = filterOf("canary-secret-value", "another-secret-value");
    expect(filter.mayHold("canary-secret-valuE another secret-value ".repeat(300))).toBe(false);
    expect(filter.mayHold("")).toBe(false);
    // What is cut off may be one: the exact search says.
    expect(filter.mayHold(`${"x".repeat(600)} canary-secret`)).toBe(true);
  });

  it("and masking is the same as without it", () => {
    const known = new KnownValues(8);
    const values = ["canary-secret-value", "p@ss wörd/1", "x".repeat(2_000)];
    for (const own of values) known.add(own);
    for (const own of values) {
      const text = `${"lorem ipsum ".repeat(100)}${own} ${encodeURIComponent(own)} ${JSON.stringify(own)}`;
      const masked = known.mask(text);
      expect(masked).not.toContain(own);
      expect(masked.split("[redacted]").length).toBeGreaterThan(2);
    }
    const clean = "lorem ipsum ".repeat(100_000);
    expect(known.mask(clean)).toBe(clean);
  });
});
