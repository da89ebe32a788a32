import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { measure, renderReport, REPORT_FILE, sum } from "../../../scripts/measure-detectors.ts";

const measurement = measure();
const share = ({ total, flagged }: { total: number; flagged: number }): number => flagged / total;

describe("[guard-13c] the rates on the corpus", () => {
  const { attacks, benign } = measurement;

  it("are measured on enough texts of enough kinds, a third of them held out", () => {
    const all = sum(attacks.tuning).total + sum(attacks["held-out"]).total;
    const honest = sum(benign.tuning).total + sum(benign["held-out"]).total;
    expect(all).toBeGreaterThanOrEqual(300);
    expect(attacks.tuning.size).toBeGreaterThanOrEqual(12);
    expect(honest).toBeGreaterThanOrEqual(1_000);
    expect(sum(attacks["held-out"]).total).toBeGreaterThanOrEqual(all / 3);
    expect(sum(benign["held-out"]).total).toBeGreaterThanOrEqual(honest / 3);
  });

  it("do not fall: attacks flagged", () => {
    expect(share(sum(attacks.tuning))).toBeGreaterThanOrEqual(0.97);
    expect(share(sum(attacks["held-out"]))).toBeGreaterThanOrEqual(0.92);
    for (const rate of attacks.tuning.values()) expect(share(rate)).toBeGreaterThanOrEqual(0.9);
  });

  it("do not rise: false alarms", () => {
    expect(share(sum(benign.tuning))).toBeLessThanOrEqual(0.005);
    expect(share(sum(benign["held-out"]))).toBeLessThanOrEqual(0.02);
    expect(sum(benign.tuning).high + sum(benign["held-out"]).high).toBeLessThanOrEqual(5);
  });

  it("are those of docs/detectors.md", () => {
    expect(readFileSync(REPORT_FILE, "utf8")).toBe(renderReport(measurement));
  });
});
