import { type FindingCode, isAtLeast, type Severity } from "../../model/finding.ts";
import type { Reading } from "./reading.ts";
import { LEAST_SCORE } from "./scores.ts";
import type { Steps } from "./steps.ts";

/** A suspicion, before it is a finding. Offsets are of the ORIGINAL text. */
export interface Suspicion {
  readonly code: FindingCode;
  readonly severity: Severity;
  readonly start: number;
  readonly end: number;
}

/** Must be linear in the text, must not throw, and yields often enough that no step is long. */
export interface Detector {
  readonly name: string;
  /** False where one look tells that it finds nothing: most texts are short, and starting costs more than looking. */
  mayFind(reading: Reading): boolean;
  find(reading: Reading): Steps<Suspicion[]>;
}

/** One scale for all detectors that add up evidence: of 10, an alarm from 8 on. Undefined: not worth a word. */
export function severityOf(score: number): Severity | undefined {
  if (score >= 8) return "high";
  if (score >= 5) return "medium";
  return score >= LEAST_SCORE ? "low" : undefined;
}

const MOST = 2_000;

/**
 * The suspicions of one detector. A text made to have millions of them gets a bounded list: the last one then grows
 * over all the rest, so that what is removed or refused by span still covers everything.
 */
export class SuspicionList {
  readonly #list: Suspicion[] = [];

  add(code: FindingCode, severity: Severity | undefined, span: { readonly start: number; readonly end: number }): void {
    if (severity === undefined) return;
    const last = this.#list.at(-1);
    if (this.#list.length < MOST || last === undefined) {
      this.#list.push({ code, severity, start: span.start, end: span.end });
      return;
    }
    this.#list[MOST - 1] = {
      code: last.code,
      severity: isAtLeast(severity, last.severity) ? severity : last.severity,
      start: Math.min(last.start, span.start),
      end: Math.max(last.end, span.end),
    };
  }

  all(): Suspicion[] {
    return this.#list;
  }
}
