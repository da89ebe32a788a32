import { describe, expect, it } from "vitest";
import type { Check, Results, Status } from "../../conformance/runner/checks.ts";
import { acceptedDifferences } from "../../conformance/runner/accepted.ts";
import { compare } from "../../conformance/runner/compare.ts";
import { SUITES } from "../../conformance/runner/suites.ts";
import { UPSTREAMS } from "../../conformance/runner/upstream.ts";

const check = (id: string, status: Status, errorMessage?: string): Check => ({
  id,
  name: id,
  status,
  errorMessage,
});
const results = (scenario: string, ...checks: Check[]): Results => new Map([[scenario, checks]]);

describe("compare [gate-04a]", () => {
  it("finds nothing where every check comes out alike", () => {
    const direct = results("ping", check("a", "SUCCESS"), check("b", "FAILURE"), check("c", "INFO"));
    expect(compare(direct, direct, [])).toEqual([]);
  });

  it("[whole-26a] names every check that differs, scored or not, for the better too", () => {
    const direct = results("ping", check("a", "FAILURE"), check("b", "INFO"), check("c", "SKIPPED"));
    const through = results("ping", check("a", "SUCCESS"), check("c", "INFO"), check("d", "WARNING", "why"));
    expect(compare(direct, through, [])).toEqual([
      { scenario: "ping", check: "a", direct: "FAILURE", through: "SUCCESS", message: "" },
      { scenario: "ping", check: "b", direct: "INFO", through: "absent", message: "made 0 of 1 times" },
      { scenario: "ping", check: "c", direct: "SKIPPED", through: "INFO", message: "" },
      { scenario: "ping", check: "d", direct: "absent", through: "WARNING", message: "why" },
    ]);
    expect(compare(new Map(), through, [])).toHaveLength(3);
  });

  it("[whole-26a] what is accepted quotes the specification", () => {
    for (const suite of SUITES) {
      for (const upstream of UPSTREAMS) {
        for (const { quote, from } of acceptedDifferences(suite, upstream)) {
          expect(quote.split(" ").length).toBeGreaterThan(5);
          expect(from).toMatch(/specification|SEP-\d+|schema/);
        }
      }
    }
  });

  it.each(["FAILURE", "WARNING", "INFO", "SKIPPED"] as const)(
    "takes %s instead of a pass as a regression",
    (status) => {
      const through = results("ping", check("a", status, "because"));
      expect(compare(results("ping", check("a", "SUCCESS")), through, [])).toEqual([
        { scenario: "ping", check: "a", direct: "SUCCESS", through: status, message: "because" },
      ]);
    },
  );

  it("misses a scenario that was not run, and a check that was made less often", () => {
    const direct = results("ping", check("a", "SUCCESS"), check("a", "SUCCESS"));
    expect(compare(direct, new Map(), []).map(({ through }) => through)).toEqual(["absent"]);
    expect(compare(direct, results("ping", check("a", "SUCCESS")), [])).toEqual([
      { scenario: "ping", check: "a", direct: "SUCCESS", through: "absent", message: "made 1 of 2 times" },
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
    const from = "specification 2025-11-25";
    const accepted = [{ scenario: "ping", check: "a", as: "INFO", reason: "It may be.", quote: "MAY", from }] as const;
    const direct = results("ping", check("a", "SUCCESS"), check("b", "SUCCESS"));
    const through = (a: Status, b: Status): Results => results("ping", check("a", a), check("b", b));
    expect(compare(direct, through("INFO", "SUCCESS"), accepted)).toEqual([
      {
        ...{ scenario: "ping", check: "a", direct: "SUCCESS", through: "INFO", message: "" },
        reason: 'It may be. "MAY" (specification 2025-11-25)',
      },
    ]);
    const reasons = compare(direct, through("FAILURE", "INFO"), accepted).map(({ reason }) => reason);
    expect(reasons).toEqual([undefined, undefined]);
  });
});
