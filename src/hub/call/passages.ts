/**
 * The texts that findings are about, for the operator who asks to see one. They are attacks on whoever reads them, so they are in
 * no log, event or record: they are kept in memory only, for the last calls.
 */
import { showHidden } from "../../base/visible-text.ts";
import type { TextFindings } from "../../guard/scan-texts.ts";
import { type Finding, isAtLeast } from "../../model/finding.ts";
import { MaskedText } from "../../secrets/masked-text.ts";

const MAX_CALLS = 200;
const MAX_PER_CALL = 10;
/** Units of the text, and of what is before and after it. */
const MAX_LENGTH = 2000;
const AROUND = 160;
/** Masked as well, so that a secret is known as one where it is cut. More than any has; a whole result takes too long. */
const MARGIN = 32 * 1024;

/** Hidden characters are written as `\u{…}`. */
export interface Passage extends Pick<Finding, "code" | "severity" | "place" | "score"> {
  readonly rules: readonly string[];
  readonly before: string;
  readonly text: string;
  readonly after: string;
}

export class Passages {
  readonly #byCall = new Map<string, readonly Passage[]>();

  /** @param mask Hides secrets, which a result may hold where the config says so. */
  keep(callId: string, found: TextFindings, mask: (text: string) => string): void {
    const known = this.#byCall.get(callId) ?? [];
    const added: Passage[] = [];
    for (const [text, findings] of found) {
      for (const finding of findings) {
        if (known.length + added.length >= MAX_PER_CALL) break;
        if (isAtLeast(finding.severity, "medium")) added.push(passageOf(text, finding, mask));
      }
    }
    if (added.length === 0) return;
    this.#byCall.delete(callId);
    for (const oldest of this.#byCall.keys()) {
      if (this.#byCall.size < MAX_CALLS) break;
      this.#byCall.delete(oldest);
    }
    this.#byCall.set(callId, [...known, ...added]);
  }

  /** Empty for a call without findings, and for one that is no longer kept. */
  of(callId: string): readonly Passage[] {
    return this.#byCall.get(callId) ?? [];
  }
}

function passageOf(text: string, finding: Finding, mask: (text: string) => string): Passage {
  const { code, severity, place, score, rules, start, end } = finding;
  const last = Math.min(end, start + MAX_LENGTH);
  const near = maskedAround(text, start - AROUND, last + AROUND, mask);
  const behind = last < end ? maskedAround(text, end, end + AROUND, mask) : near;
  return {
    ...{ code, severity, place, score, rules },
    before: near(start - AROUND, start),
    text: near(start, last, { withCut: true }) + (last < end ? "…" : ""),
    after: behind(end, end + AROUND),
  };
}

/** Slices of a part of the text, by positions in the whole. */
function maskedAround(text: string, from: number, to: number, mask: (text: string) => string) {
  const first = Math.max(0, from - MARGIN);
  const part = new MaskedText(text.slice(first, to + MARGIN), mask);
  return (start: number, end: number, options?: { readonly withCut: boolean }): string =>
    showHidden(part.slice(Math.max(0, start - first), end - first, options));
}
