import { describe, expect, it } from "vitest";
import type { Check, Results, Status } from "../../conformance/runner/checks.ts";
import { compare } from "../../conformance/runner/compare.ts";

const check = (id: string, status: Status, errorMessage?: string): Check => ({
  id,
  name: id,
  status,
  errorMessage,
});
const results = (scenario: string, ...checks: Check[]): Results => new Map([[scenario, checks]]);

describe("compare [gate-04a]", () => {
  it("finds nothing where everything that passes directly passes through", () => {
    const direct = results("ping", check("a", "SUCCESS"), check("b", "FAILURE"), check("c", "INFO"));
    expect(compare(direct, results("ping", check("a", "SUCCESS")), [])).toEqual([]);
  });

  it.each(["FAILURE", "WARNING", "INFO", "SKIPPED"] as const)(
    "takes %s instead of a pass as a regression",
    (status) => {
      const through = results("ping", check("a", status, "because"));
      expect(compare(results("ping", check("a", "SUCCESS")), through, [])).toEqual([
        { scenario: "ping", check: "a", through: status, message: "because" },
      ]);
    },
  );

  it("misses a scenario that was not run, and a check that was made less often", () => {
    const direct = results("ping", check("a", "SUCCESS"), check("a", "SUCCESS"));
    expect(compare(direct, new Map(), []).map(({ through }) => through)).toEqual(["absent"]);
    expect(compare(direct, results("ping", check("a", "SUCCESS")), [])).toEqual([
      { scenario: "ping", check: "a", through: "absent", message: "made 1 of 2 times" },
    ]);
  });

  it("sees one failure among several outcomes of the same check", () => {
    const direct = results("ping", check("a", "SUCCESS"), check("a", "SUCCESS"));
    const through = results("ping", check("a", "SUCCESS"), check("a", "FAILURE"));
    expect(compare(direct, through, [])).toHaveLength(1);
  });

  it("tells checks of one id and different names apart", () => {
    const named = (name: string, status: Status): Check => ({ id: "a", name, status });
    const direct = results("ping", named("One", "SUCCESS"), named("Two", "FAILURE"));
    const through = results("ping", named("One", "SUCCESS"), named("Two", "FAILURE"));
    expect(compare(direct, through, [])).toEqual([]);
  });

  it("accepts a difference only as it was described", () => {
    const accepted = [{ scenario: "ping", check: "a", as: "INFO", reason: "It may be." }] as const;
    const direct = results("ping", check("a", "SUCCESS"), check("b", "SUCCESS"));
    const through = (a: Status, b: Status): Results => results("ping", check("a", a), check("b", b));
    expect(compare(direct, through("INFO", "SUCCESS"), accepted)).toEqual([
      { scenario: "ping", check: "a", through: "INFO", message: "", reason: "It may be." },
    ]);
    const reasons = compare(direct, through("FAILURE", "INFO"), accepted).map(({ reason }) => reason);
    expect(reasons).toEqual([undefined, undefined]);
  });
});
