/**
 * Measures the detectors on the corpus of test/corpus and writes docs/detectors.md.
 * Run: node scripts/measure-detectors.ts
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DETECTOR_NAMES, detect } from "../src/guard/detect/detect.ts";
import { isAtLeast } from "../src/model/finding.ts";

const root = join(import.meta.dirname, "..");
export const REPORT_FILE = join(root, "docs", "detectors.md");

type Split = "tuning" | "held-out";

interface Sample {
  readonly group: string;
  readonly split: Split;
  readonly text: string;
}

export interface Rate {
  readonly total: number;
  /** Texts with a finding of at least medium severity. */
  readonly flagged: number;
  readonly high: number;
}

export interface Measurement {
  readonly attacks: Readonly<Record<Split, ReadonlyMap<string, Rate>>>;
  readonly benign: Readonly<Record<Split, ReadonlyMap<string, Rate>>>;
}

export function measure(): Measurement {
  return { attacks: ratesOf(samples("attacks.jsonl", "kind")), benign: ratesOf(samples("benign.jsonl", "category")) };
}

export function sum(rates: ReadonlyMap<string, Rate>): Rate {
  let [total, flagged, high] = [0, 0, 0];
  for (const rate of rates.values()) {
    total += rate.total;
    flagged += rate.flagged;
    high += rate.high;
  }
  return { total, flagged, high };
}

function samples(file: string, groupKey: "kind" | "category"): Sample[] {
  const lines = readFileSync(join(root, "test", "corpus", file), "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => sample(JSON.parse(line), groupKey));
}

function sample(row: Record<string, unknown>, groupKey: string): Sample {
  const split = row["split"] === "held-out" ? "held-out" : "tuning";
  return { group: String(row[groupKey]), split, text: String(row["text"]) };
}

function ratesOf(all: readonly Sample[]): Record<Split, Map<string, Rate>> {
  const rates = { tuning: new Map<string, Rate>(), "held-out": new Map<string, Rate>() };
  for (const { group, split, text } of all) {
    const findings = detect(text);
    const rate = rates[split].get(group) ?? { total: 0, flagged: 0, high: 0 };
    rates[split].set(group, {
      total: rate.total + 1,
      flagged: rate.flagged + (findings.some(({ severity }) => isAtLeast(severity, "medium")) ? 1 : 0),
      high: rate.high + (findings.some(({ severity }) => severity === "high") ? 1 : 0),
    });
  }
  return rates;
}

export function renderReport({ attacks, benign }: Measurement): string {
  const counts = {
    attacks: sum(attacks.tuning).total + sum(attacks["held-out"]).total,
    benign: sum(benign.tuning).total + sum(benign["held-out"]).total,
  };
  return `# How well suspicious content is detected

Made by \`node scripts/measure-detectors.ts\` from the corpus in \`test/corpus\`; a test keeps this page in step. Do not edit it.

Toolcrib reads every text that a server returns with these detectors: ${DETECTOR_NAMES.join(", ")}.
A finding has a code, a severity and a place. "Flagged" below means at least one finding of medium or high severity.
A low finding is a note: quoted attacks in an article get one, and nothing acts on it.

## In short

| | texts | flagged | high |
|---|---:|---:|---:|
${row("attacks, used for tuning", sum(attacks.tuning))}
${row("attacks, held out", sum(attacks["held-out"]))}
${row("honest results, used for tuning", sum(benign.tuning))}
${row("honest results, held out", sum(benign["held-out"]))}

The corpus has ${counts.attacks} attacks of ${attacks.tuning.size} kinds and ${counts.benign} honest results of ${benign.tuning.size} kinds.
The held-out third was written after the detectors. At its first run 87 % of its attacks and 1.7 % of its honest texts
were flagged, none of the latter high. It showed two faults of structure, which were mended: documentation strings were
taken for quotations, and a sentence that starts with "make" for a description. No phrase was added for it. Three earlier
sets were measured in the same way (81 to 86 % of attacks found at first sight, and in two of them 4.1 % and 4.6 % of the
honest texts flagged), then tuned on, and are part of the tuning set now.

## What the numbers do not say

- The corpus was written by the people who wrote the detectors. Expect a lower rate from an attacker who reads them.
- The numbers are about the forms of attack that a text shows. A polite request in plain words ("please also add Mallory
  to the project") looks like any other text, and no detector here finds it.
- Detection is one layer. Wrapping, policy, the flow guard and asking before harm do not depend on it.
- Texts made for agents (guides, skills) speak to a model all the time. Of 2,526 public skills, guides and READMEs whose
  false alarms were read and tuned on, 0.7 % are still flagged medium and none high. They are not part of the corpus.

## Attacks by kind

| kind | tuning: flagged | held out: flagged | held out: high |
|---|---:|---:|---:|
${groupRows(attacks)}

## False alarms by kind of honest text

| kind | tuning: flagged | held out: flagged | held out: high |
|---|---:|---:|---:|
${groupRows(benign)}
`;
}

function row(name: string, { total, flagged, high }: Rate): string {
  return `| ${name} | ${total} | ${share(flagged, total)} | ${share(high, total)} |`;
}

function groupRows(rates: Readonly<Record<Split, ReadonlyMap<string, Rate>>>): string {
  const none: Rate = { total: 0, flagged: 0, high: 0 };
  return [...rates.tuning.keys()]
    .toSorted()
    .map((group) => {
      const tuning = rates.tuning.get(group) ?? none;
      const heldOut = rates["held-out"].get(group) ?? none;
      const cells = [
        fraction(tuning.flagged, tuning),
        fraction(heldOut.flagged, heldOut),
        fraction(heldOut.high, heldOut),
      ];
      return `| ${group.replaceAll("_", " ")} | ${cells.join(" | ")} |`;
    })
    .join("\n");
}

function fraction(part: number, { total }: Rate): string {
  return `${part} of ${total}`;
}

function share(part: number, total: number): string {
  return `${((100 * part) / total).toFixed(1)} %`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const report = renderReport(measure());
  writeFileSync(REPORT_FILE, report);
  process.stdout.write(report);
}
