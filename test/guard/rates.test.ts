import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ownSamples, ownSection, rates, REPORT_FILE, withSection } from "../../scripts/measure-detectors.ts";

describe("[guard-13c] the rates on the repo's own texts", () => {
  const found = rates(ownSamples(), ({ isAttack }) => (isAttack ? "attacks" : "honest"));
  const share = (name: string): number => (found.get(name)?.flagged ?? 0) / (found.get(name)?.total ?? 1);

  it("do not fall for attacks, nor rise for honest texts", () => {
    expect(found.get("attacks")?.total).toBeGreaterThanOrEqual(300);
    expect(share("attacks")).toBeGreaterThanOrEqual(0.93);
    expect(share("honest")).toBeLessThanOrEqual(0.03);
  });

  it("are those of docs/detectors.md", () => {
    const page = readFileSync(REPORT_FILE, "utf8");
    expect(withSection(page, "own", ownSection())).toBe(page);
  });
});
