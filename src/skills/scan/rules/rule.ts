/** A rule reads one file of a skill. */
import type { ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import type { Subject } from "../subject.ts";

export interface Rule {
  /** Found somewhere in every text that the rule can find something in; most texts have none and are not read further. */
  readonly hint: RegExp;
  /** Must be linear in the text and must not throw. Gives `undefined` where others may have a turn. */
  find(text: ScannedText, subject: Subject): Iterable<Sign | undefined>;
}

/** The signs of a rule in a text, without a turn for others: for texts that are known to be short. */
export function* signsOf(rule: Rule, text: ScannedText, subject: Subject): Generator<Sign> {
  for (const sign of findingSigns(rule, text, subject)) if (sign !== undefined) yield sign;
}

export function findingSigns({ hint, find }: Rule, text: ScannedText, subject: Subject): Iterable<Sign | undefined> {
  return hint.test(text.all) ? find(text, subject) : [];
}

/** A rule gives others a turn after so many lines. */
export const LINES_PER_TURN = 256;
