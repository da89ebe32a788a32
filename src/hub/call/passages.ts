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
      let masked: MaskedText | undefined;
      for (const finding of findings) {
        if (known.length + added.length >= MAX_PER_CALL) break;
        if (!isAtLeast(finding.severity, "medium")) continue;
        masked ??= new MaskedText(text, mask);
        added.push(passageOf(masked, finding));
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

function passageOf(text: MaskedText, finding: Finding): Passage {
  const { code, severity, place, score, rules, start, end } = finding;
  const last = Math.min(end, start + MAX_LENGTH);
  return {
    ...{ code, severity, place, score, rules },
    before: showHidden(text.slice(Math.max(0, start - AROUND), start)),
    text: showHidden(text.slice(start, last, { withCut: true })) + (last < end ? "…" : ""),
    after: showHidden(text.slice(end, end + AROUND)),
  };
}
